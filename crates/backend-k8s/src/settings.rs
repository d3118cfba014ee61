//! [`Settings`]: the option values of a sandbox, and their validation.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use backend_core::{Quoted, Result, VPath};
use sandbox_runtime::dockerfile::Style;
use sandbox_runtime::{Runtime, WORK_DIR, options};
use sandbox_shell::{Agents, Disposal, Mode};
use serde_json::Value;

use crate::check::{self, ensure};
use crate::cluster::Cluster;
use crate::options::{Delivery, Network, PullPolicy, Relaxation, Source, Volume};
use crate::overlay;

/// Default memory limit of a sandbox, in bytes.
pub const DEFAULT_MEMORY: u64 = 2 * 1024 * 1024 * 1024;

/// Default memory that is reserved for a sandbox, in bytes.
pub const DEFAULT_REQUEST_MEMORY: u64 = 256 * 1024 * 1024;

/// Default share of CPUs that is reserved for a sandbox.
pub const DEFAULT_REQUEST_CPUS: f64 = 0.1;

/// The user unless one is set.
pub(crate) const UNPRIVILEGED: (u32, u32) = (1000, 1000);

/// The time that a pod has to become ready.
const START_TIMEOUT: Duration = Duration::from_secs(120);

const SECOND: Duration = Duration::from_secs(1);
/// The seconds of a day.
const DAY: u64 = 24 * 60 * 60;
/// The longest time that can be given.
const LONGEST: Duration = Duration::from_secs(365 * DAY);

/// The time between TERM and KILL for programs that still run when a pod is deleted. The
/// program that keeps the pod alive ends at once.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) cluster: Option<Cluster>,
    pub(crate) image: Option<String>,
    pub(crate) runtime: Option<Runtime>,
    /// The images of runtimes that must be built, by the runtime's name.
    pub(crate) runtime_images: BTreeMap<String, String>,
    pub(crate) working_dir: Option<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) name: Option<String>,
    /// Whether an existing pod of that name is refused.
    pub(crate) exclusive: bool,
    /// Whether an unnamed pod stays in the end.
    pub(crate) keep: bool,
    /// [`DEFAULT_MEMORY`] by default.
    pub(crate) memory: Option<u64>,
    pub(crate) cpus: Option<f64>,
    pub(crate) request_memory: Option<u64>,
    pub(crate) request_cpus: Option<f64>,
    pub(crate) service_account: Option<String>,
    pub(crate) mount_token: bool,
    pub(crate) node_selector: BTreeMap<String, String>,
    pub(crate) tolerations: Vec<Value>,
    pub(crate) affinity: Option<Value>,
    pub(crate) runtime_class: Option<String>,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) image_pull_secrets: BTreeSet<String>,
    pub(crate) pull_policy: PullPolicy,
    pub(crate) user: Option<(u32, u32)>,
    pub(crate) relaxed: BTreeSet<Relaxation>,
    pub(crate) capabilities: BTreeSet<String>,
    pub(crate) active_deadline: Option<Duration>,
    pub(crate) network: Network,
    pub(crate) overlay: Option<Value>,
    pub(crate) owner_pod: Option<(String, String)>,
    /// [`START_TIMEOUT`] by default.
    pub(crate) start_timeout: Option<Duration>,
    /// [`GRACE`] by default.
    pub(crate) grace: Option<Duration>,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) without_reaping: bool,
    pub(crate) agents: Agents,
    pub(crate) delivery: Delivery,
    /// The image of the init container, for [`Delivery::Auto`].
    pub(crate) agent_image: Option<String>,
    pub(crate) mode: Mode,
}

/// Settings that passed the checks, and what follows from them.
#[derive(Debug)]
pub(crate) struct ValidSettings {
    pub(crate) settings: Settings,
    pub(crate) cluster: Cluster,
    pub(crate) image: String,
    pub(crate) working_dir: VPath,
}

impl Settings {
    /// Checks every option. Errors name this backend.
    pub(crate) fn validate(self) -> Result<ValidSettings> {
        self.checked().map_err(|error| error.on("k8s"))
    }

    fn checked(self) -> Result<ValidSettings> {
        let given = self.working_dir.as_deref();
        let runtime = self.runtime.as_ref().map(|runtime| &*runtime.work_dir);
        let working_dir = given
            .or(runtime.filter(|directory| !directory.is_empty()))
            .unwrap_or(WORK_DIR);
        let working_dir = check::mount_point(working_dir)?;
        let image = self.image_reference()?;
        self.check_names()?;
        self.check_limits()?;
        self.check_mounts()?;
        self.check_scheduling()?;
        self.check_delivery()?;
        self.overlay.as_ref().map_or(Ok(()), overlay::check)?;
        Ok(ValidSettings {
            cluster: self.required_cluster()?,
            settings: self,
            image,
            working_dir,
        })
    }

    pub(crate) fn required_cluster(&self) -> Result<Cluster> {
        let text = "no cluster is given; name one with `cluster`, such as `Cluster::from_env`";
        self.cluster.clone().ok_or_else(|| check::wrong(text))
    }

    /// Returns the image: the given one, or that of the runtime, which a cluster cannot
    /// build.
    fn image_reference(&self) -> Result<String> {
        ensure!(
            self.image.is_none() || self.runtime.is_none(),
            "an image and a runtime are given; choose one"
        );
        for image in self.runtime_images.values() {
            options::image(image)?;
        }
        let image = match (&self.image, &self.runtime) {
            (Some(image), _) => image.clone(),
            (None, Some(runtime)) => self.runtime_image(runtime)?,
            (None, None) => {
                return Err(check::wrong(
                    "no image is given; name an image or a runtime",
                ));
            }
        };
        options::image(&image)?;
        Ok(image)
    }

    fn runtime_image(&self, runtime: &Runtime) -> Result<String> {
        if let Some(image) = self.runtime_images.get(&runtime.name) {
            return Ok(image.clone());
        }
        let built = runtime.dockerfile(Style::default());
        let is_built = built?.is_some();
        let name = &runtime.name;
        ensure!(
            !is_built,
            "the runtime {} must be built, which a cluster cannot do: `agentbox runtimes build {name} --tag REF` makes an image to push, and `agentbox runtimes build {name} --output TAR` one to import on the nodes; then name it with `runtime_image`",
            Quoted::new(name)
        );
        runtime.image_name()
    }

    /// Returns the agents to choose from. An init container brings its own.
    pub(crate) fn located_agents(&self) -> Result<Agents> {
        let is_brought =
            matches!(self.delivery, Delivery::Init { .. }) || self.agent_image.is_some();
        match self.agents.located(self.mode) {
            Err(_) if is_brought => Ok(Agents::default()),
            located => located.map_err(|error| error.on("k8s")),
        }
    }

    fn check_delivery(&self) -> Result<()> {
        self.agent_image.as_deref().map_or(Ok(()), options::image)?;
        let Delivery::Init { image } = &self.delivery else {
            return Ok(());
        };
        ensure!(
            self.mode != Mode::Portable,
            "the portable mode takes no agent; leave out Delivery::Init"
        );
        options::image(image)
    }

    fn check_names(&self) -> Result<()> {
        for (name, value) in &self.env {
            options::variable(name, value)?;
        }
        for (key, value) in &self.labels {
            check::label(key, value)?;
        }
        for (key, value) in &self.annotations {
            check::annotation(key, value)?;
        }
        for capability in &self.capabilities {
            options::capability(capability)?;
        }
        self.name.as_deref().map_or(Ok(()), check::pod)?;
        for secret in &self.image_pull_secrets {
            check::name("a secret", secret)?;
        }
        if let Some(account) = &self.service_account {
            check::name("a service account", account)?;
        }
        if let Some(class) = &self.runtime_class {
            check::name("a runtime class", class)?;
        }
        if let Some((name, uid)) = &self.owner_pod {
            check::name("a pod", name)?;
            check::name("the uid of a pod", uid)?;
        }
        ensure!(
            self.relaxed(Relaxation::Root) || self.user.is_none_or(|(uid, _)| uid != 0),
            "the user is root, which is a relaxation; use Relaxation::Root, or another user"
        );
        Ok(())
    }

    fn check_limits(&self) -> Result<()> {
        let memory = self.memory();
        options::memory(memory)?;
        if let Some(request) = self.request_memory {
            ensure!(
                request <= memory,
                "{request} bytes of memory are reserved and {memory} are the limit; reserve less, or raise the limit"
            );
        }
        for cpus in self.cpus.into_iter().chain(self.request_cpus) {
            options::cpus(cpus)?;
        }
        if let (Some(request), Some(limit)) = (self.request_cpus, self.cpus) {
            ensure!(
                request.total_cmp(&limit).is_le(),
                "{request} processors are reserved and {limit} are the limit; reserve less, or raise the limit"
            );
        }
        for (what, time) in [
            ("active deadline", self.active_deadline),
            ("start timeout", self.start_timeout),
        ] {
            ensure!(
                time.is_none_or(|time| (SECOND..=LONGEST).contains(&time)),
                "the {what} is shorter than a second or longer than {} days; give another one",
                LONGEST.as_secs() / DAY
            );
        }
        ensure!(
            self.grace() <= LONGEST,
            "the time to end is longer than {} days; give a shorter one",
            LONGEST.as_secs() / DAY
        );
        options::idle_timeout(self.idle_timeout)
    }

    fn check_mounts(&self) -> Result<()> {
        let mut taken = BTreeSet::new();
        for volume in &self.volumes {
            let target = check::mount_point(&volume.target)?;
            ensure!(
                taken.insert(target.clone()),
                "two mounts are on '{target}'; leave one out"
            );
            if let Source::Claim(name) = &volume.source {
                check::name("a claim", name)?;
            }
        }
        Ok(())
    }

    fn check_scheduling(&self) -> Result<()> {
        for (key, value) in &self.node_selector {
            check::node_label(key, value)?;
        }
        for toleration in &self.tolerations {
            check::object("a toleration", toleration)?;
        }
        if let Some(affinity) = &self.affinity {
            check::object("the affinity", affinity)?;
        }
        Ok(())
    }

    pub(crate) fn memory(&self) -> u64 {
        self.memory.unwrap_or(DEFAULT_MEMORY)
    }

    pub(crate) fn start_timeout(&self) -> Duration {
        self.start_timeout.unwrap_or(START_TIMEOUT)
    }

    pub(crate) fn grace(&self) -> Duration {
        self.grace.unwrap_or(GRACE)
    }

    pub(crate) fn relaxed(&self, relaxation: Relaxation) -> bool {
        self.relaxed.contains(&relaxation)
    }

    /// Returns the user that commands run as; `None` for that of the image.
    pub(crate) fn user(&self) -> Option<(u32, u32)> {
        let runtime = || self.runtime.as_ref()?.run_as_uid;
        let given = self.user.or_else(|| runtime().map(|uid| (uid, uid)));
        given.or((!self.relaxed(Relaxation::Root)).then_some(UNPRIVILEGED))
    }

    /// Returns the action to take on the pod when its owner is gone.
    pub(crate) fn disposal(&self) -> Disposal {
        if self.name.is_some() || self.keep {
            Disposal::Keep
        } else {
            Disposal::Remove
        }
    }

    /// Whether the files of the working directory survive the pod: they are on a claim.
    pub(crate) fn keeps_files(&self, working_dir: &VPath) -> bool {
        let volumes = self.volumes.iter();
        let nearest = volumes.filter_map(|volume| {
            let target = VPath::parse(&volume.target).ok()?;
            working_dir.starts_with(&target).then_some((target, volume))
        });
        let nearest = nearest.max_by_key(|(target, _)| target.as_str().len());
        nearest.is_some_and(|(_, volume)| matches!(volume.source, Source::Claim(_)))
    }
}
