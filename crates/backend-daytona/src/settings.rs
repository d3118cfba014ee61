//! [`Settings`]: the option values of a sandbox, and their validation.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use backend_core::{Result, VPath};
use sandbox_runtime::dockerfile::Style;
use sandbox_runtime::{Runtime, WORK_DIR, options};
use sandbox_shell::{Agents, Disposal, Mode};

use crate::account::Account;
use crate::check::{self, ensure};
use crate::options::{Network, Volume};
use crate::secret::Secret;

/// The directory that relative paths and commands start in, in the service's own
/// snapshots.
pub const DEFAULT_WORKING_DIR: &str = "/home/daytona";

/// The time that a sandbox has to start.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// The same for one whose image must be built or pulled first.
const BUILD_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// The longest start timeout.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A time that can be set, set to never, or left to the service.
pub(crate) type Timer = Option<Option<Duration>>;

#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) account: Option<Account>,
    pub(crate) snapshot: Option<String>,
    pub(crate) image: Option<String>,
    pub(crate) runtime: Option<Runtime>,
    pub(crate) working_dir: Option<String>,
    pub(crate) env: BTreeMap<String, Secret>,
    pub(crate) labels: BTreeMap<String, String>,
    /// Names of the organization's secrets, by variable.
    pub(crate) secrets: BTreeMap<String, String>,
    pub(crate) name: Option<String>,
    /// Whether an existing sandbox of that name is refused.
    pub(crate) exclusive: bool,
    /// Whether an unnamed sandbox is stopped in the end, not deleted.
    pub(crate) keep: bool,
    pub(crate) cpus: Option<u32>,
    pub(crate) gpus: Option<u32>,
    pub(crate) memory: Option<u64>,
    pub(crate) disk: Option<u64>,
    pub(crate) user: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) public: bool,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) network: Network,
    pub(crate) auto_stop: Timer,
    pub(crate) auto_pause: Timer,
    pub(crate) auto_archive: Timer,
    pub(crate) auto_delete: Timer,
    pub(crate) ttl: Timer,
    /// Whether a sandbox in an error is recovered.
    pub(crate) recover: bool,
    pub(crate) start_timeout: Option<Duration>,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) without_reaping: bool,
    pub(crate) agents: Agents,
    pub(crate) mode: Mode,
}

/// The content of a new sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A snapshot of the organization; `None` is its default.
    Snapshot(Option<String>),
    /// An image that the service builds, and the name under which it is shown.
    Dockerfile { image: String, content: String },
}

/// Settings that passed the checks, and what follows from them.
#[derive(Debug)]
pub(crate) struct ValidSettings {
    pub(crate) settings: Settings,
    pub(crate) account: Account,
    pub(crate) source: Source,
    pub(crate) working_dir: VPath,
}

impl Settings {
    /// Checks every option. Errors name this backend.
    pub(crate) fn validate(self) -> Result<ValidSettings> {
        self.checked().map_err(|error| error.on("daytona"))
    }

    fn checked(self) -> Result<ValidSettings> {
        let source = self.source()?;
        let working_dir = self.directory(&source)?;
        self.check_names()?;
        self.check_limits(&source)?;
        self.check_mounts()?;
        Ok(ValidSettings {
            account: self.required_account()?,
            settings: self,
            source,
            working_dir,
        })
    }

    pub(crate) fn required_account(&self) -> Result<Account> {
        let text = "no account is given; name one with `account`, such as `Account::from_env`";
        self.account.clone().ok_or_else(|| check::wrong(text))
    }

    fn source(&self) -> Result<Source> {
        let given = [
            self.snapshot.is_some(),
            self.image.is_some(),
            self.runtime.is_some(),
        ];
        ensure!(
            given.iter().filter(|given| **given).count() <= 1,
            "several of snapshot, image and runtime are given; choose one"
        );
        if let Some(image) = &self.image {
            return as_it_is(image.clone());
        }
        let Some(runtime) = &self.runtime else {
            let snapshot = self.snapshot.clone();
            snapshot
                .as_deref()
                .map_or(Ok(()), |snapshot| check::name("a snapshot", snapshot))?;
            return Ok(Source::Snapshot(snapshot));
        };
        let image = runtime.image_name()?;
        match runtime.dockerfile(Style::default())? {
            Some(content) => Ok(Source::Dockerfile { image, content }),
            None => as_it_is(image),
        }
    }

    fn directory(&self, source: &Source) -> Result<VPath> {
        let given = self.working_dir.as_deref();
        let runtime = self.runtime.as_ref().map(|runtime| &*runtime.work_dir);
        let usual = match source {
            Source::Snapshot(_) => DEFAULT_WORKING_DIR,
            Source::Dockerfile { .. } => WORK_DIR,
        };
        let directory = given
            .or(runtime.filter(|directory| !directory.is_empty()))
            .unwrap_or(usual);
        options::absolute_path("work", directory)
    }

    fn check_names(&self) -> Result<()> {
        for (name, value) in &self.env {
            options::variable(name, value.expose())?;
        }
        for (name, secret) in &self.secrets {
            options::variable(name, "")?;
            check::name("a secret", secret)?;
            ensure!(
                !self.env.contains_key(name),
                "the variable {name} has a value and a secret; leave one out"
            );
        }
        for (key, value) in &self.labels {
            check::label(key, value)?;
        }
        self.name.as_deref().map_or(Ok(()), check::sandbox)?;
        for (what, name) in [("a user", &self.user), ("a region", &self.target)] {
            let name = name.as_deref();
            name.map_or(Ok(()), |name| check::name(what, name))?;
        }
        if let Network::Allow { addresses, domains } = &self.network {
            for (what, list) in [("network", addresses), ("domain", domains)] {
                for one in list {
                    check::allowed(what, one)?;
                }
            }
            ensure!(
                !addresses.is_empty() || !domains.is_empty(),
                "the list of allowed networks and domains is empty; use Network::None"
            );
        }
        Ok(())
    }

    fn check_limits(&self, source: &Source) -> Result<()> {
        let has_limits = self.cpus.is_some()
            || self.gpus.is_some()
            || self.memory.is_some()
            || self.disk.is_some();
        ensure!(
            !has_limits || matches!(source, Source::Dockerfile { .. }),
            "a snapshot determines the resources of its sandboxes; leave out cpus, gpus, memory and disk, or give an image"
        );
        self.memory.map_or(Ok(()), options::memory)?;
        ensure!(
            self.cpus != Some(0) && self.disk != Some(0),
            "a sandbox needs a processor and disk space; give at least 1"
        );
        for (what, timer) in [
            ("time until a stop", self.auto_stop),
            ("time until a pause", self.auto_pause),
            ("time until it is archived", self.auto_archive),
            ("time to live", self.ttl),
        ] {
            if let Some(Some(time)) = timer {
                check::minutes(what, time)?;
            }
        }
        ensure!(
            !(is_on(self.auto_stop) && is_on(self.auto_pause)),
            "a time until a stop and one until a pause are given; leave one out"
        );
        if let Some(Some(time)) = self.auto_delete
            && !time.is_zero()
        {
            check::minutes("time until it is deleted", time)?;
        }
        ensure!(
            self.start_timeout
                .is_none_or(|time| !time.is_zero() && time <= LONGEST),
            "the start timeout is zero or longer than a day; give another one"
        );
        options::idle_timeout(self.idle_timeout)
    }

    fn check_mounts(&self) -> Result<()> {
        let mut taken = BTreeSet::new();
        for volume in &self.volumes {
            check::name("a volume", &volume.volume)?;
            let target = options::mount_point(&volume.target)?;
            ensure!(
                taken.insert(target.clone()),
                "two mounts are on '{target}'; leave one out"
            );
            if let Some(subpath) = &volume.subpath {
                check::name("a directory of a volume", subpath)?;
            }
        }
        Ok(())
    }

    /// Returns the time that a sandbox has to start.
    pub(crate) fn start_timeout(&self, source: &Source) -> Duration {
        self.start_timeout.unwrap_or(match source {
            Source::Snapshot(_) => START_TIMEOUT,
            Source::Dockerfile { .. } => BUILD_TIMEOUT,
        })
    }

    /// Returns the action to take on the sandbox when its owner is gone.
    pub(crate) fn disposal(&self) -> Disposal {
        if self.name.is_some() {
            Disposal::Keep
        } else if self.keep {
            Disposal::Stop
        } else {
            Disposal::Remove
        }
    }
}

/// Returns an image that is used as it is.
fn as_it_is(image: String) -> Result<Source> {
    options::image(&image)?;
    let content = format!("FROM {image}\n");
    Ok(Source::Dockerfile { image, content })
}

fn is_on(timer: Timer) -> bool {
    matches!(timer, Some(Some(_)))
}
