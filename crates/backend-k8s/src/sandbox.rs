//! [`K8sSandbox`]: a pod as a backend.

mod backend;
mod idle;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use backend_core::ops::StopMode;
use backend_core::sync::lock;
use backend_core::{Error, Operation, Result, Sandbox};
use sandbox_shell::PortableSandbox;
use sandbox_wire::agent::AgentBinary;
use sandbox_wire::{AgentOptions, AgentSandbox, engine};

use crate::cluster;
use crate::labels::Disposal;
use crate::machine::{K8sMachine, MachineConfig, Recipe, Run, StartReason};
use crate::options::{Mode, Relaxation};
use crate::settings::{Settings, ValidSettings};
use crate::stats::{self, Counters, Stats};
use idle::Busy;

/// A pod as a backend. Clones share it.
///
/// The first operation creates the pod. If it was deleted from outside, evicted, or lost
/// with its node, operations are `Unavailable`, and only [`start`](Sandbox::start) creates
/// a new one: its files are gone, and that should not go unnoticed. Where the working
/// directory is on a [claim](crate::Volume::claim), its files are not gone, and the next
/// operation creates the pod again.
///
/// A pod cannot be stopped and started again. [`stop`](Sandbox::stop) with `Keep` ends all
/// commands and leaves the pod, which keeps its files and its place on its node; where the
/// working directory is on a claim, it deletes the pod. With `Purge` the pod is deleted in
/// both cases. Claims are never deleted.
///
/// When the last clone is dropped, a pod that it created is deleted, unless it has a name
/// or is [kept](crate::K8sBuilder::keep). This happens in the background, provided the
/// process lives long enough; call [`stop`](Sandbox::stop) to be sure. Pods that were
/// attached to are left as they are.
///
/// See [`K8sBuilder`](crate::K8sBuilder) for an example.
#[derive(Debug, Clone)]
pub struct K8sSandbox(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    machine: K8sMachine,
    agent: Option<Arc<dyn Sandbox>>,
    /// The architectures that there are agents for.
    agent_architectures: Vec<&'static str>,
    portable: Option<Arc<dyn Sandbox>>,
    /// The agent or the portable sandbox, once the choice is made.
    chosen: OnceLock<Arc<dyn Sandbox>>,
    /// The action to take on the pod in the end; `None` if it is bound to one pod.
    disposal: Option<Disposal>,
    relaxed: Vec<Relaxation>,
    /// The number of operations in progress, and when the last one ended.
    activity: Mutex<(usize, SystemTime)>,
    idle_timeout: Option<Duration>,
    watched: AtomicBool,
    counters: Mutex<Option<Counters>>,
}

impl K8sSandbox {
    pub(crate) fn new(valid: ValidSettings) -> Result<Self> {
        let settings = valid.settings.clone();
        let disposal = Some(settings.disposal());
        Ok(Self::assemble(machine_config(valid)?, settings, disposal))
    }

    /// Creates a pod now, and refers to this one only.
    pub(crate) async fn create(valid: ValidSettings) -> Result<Self> {
        let settings = valid.settings.clone();
        let config = machine_config(valid)?;
        let machine = K8sMachine::new(config.clone());
        let created = cluster::run(async move { machine.create_new().await });
        let uid = created.await.map_err(during(Operation::Start))?;
        let bound = MachineConfig {
            uid: Some(uid),
            recipe: None,
            ..config
        };
        Ok(Self::assemble(bound, settings, None))
    }

    pub(crate) fn assemble(
        config: MachineConfig,
        settings: Settings,
        disposal: Option<Disposal>,
    ) -> Self {
        let mode = settings.agent.mode;
        let architectures = config.agents.iter().map(AgentBinary::arch).collect();
        let machine = K8sMachine::new(config);
        let shared = Arc::new(machine.clone());
        let agent = (mode != Mode::Portable).then(|| -> Arc<dyn Sandbox> {
            let options = AgentOptions::default();
            Arc::new(AgentSandbox::new(Arc::clone(&shared), options))
        });
        let portable = (mode != Mode::Agent).then(|| -> Arc<dyn Sandbox> {
            let portable = PortableSandbox::new(Arc::clone(&shared));
            Arc::new(portable.without_warning())
        });
        Self(Arc::new(Inner {
            agent,
            agent_architectures: architectures,
            portable,
            machine,
            chosen: OnceLock::new(),
            disposal,
            relaxed: settings.relaxed.into_iter().collect(),
            activity: Mutex::new((0, SystemTime::now())),
            idle_timeout: settings.idle_timeout,
            watched: AtomicBool::new(false),
            counters: Mutex::default(),
        }))
    }

    /// Returns the pod's name.
    pub fn pod_name(&self) -> &str {
        self.0.machine.name()
    }

    /// Returns the parts of the hardening that were given up by
    /// [`relax`](crate::K8sBuilder::relax). An overlay can give up more.
    pub fn relaxations(&self) -> &[Relaxation] {
        &self.0.relaxed
    }

    /// Deletes the pod and its files, like [`stop`](Sandbox::stop) with `Purge`. Claims are
    /// kept.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the cluster does not answer.
    pub async fn remove(&self) -> Result<()> {
        self.stop(StopMode::Purge).await
    }

    /// Returns the current resource usage, as the sandbox sees it, without a request to
    /// the cluster. The CPU usage is measured since the previous call.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the pod is gone; `Unsupported` if it does not show its usage.
    pub async fn stats(&self) -> Result<Stats> {
        let before = *lock(&self.0.counters);
        let busy = self.busy();
        let served = self.active_sandbox(&busy).await?;
        let (stats, counters) = stats::sample(&**served, before).await?;
        *lock(&self.0.counters) = Some(counters);
        Ok(stats)
    }

    async fn ready(&self, reason: StartReason) -> Result<()> {
        let machine = self.0.machine.clone();
        let ready = cluster::run(async move { machine.ready(reason).await });
        ready.await.map_err(during(Operation::Start))
    }

    /// Makes sure that the pod runs and returns the run of its container. If that has
    /// changed when a command ends, the container ended with the command.
    async fn current_run(&self) -> Result<Option<Run>> {
        if !self.0.machine.runs() {
            self.ready(StartReason::OnDemand).await?;
        }
        Ok(self.0.machine.run())
    }

    /// Returns the sandbox that serves the operations. The first operation makes the
    /// choice, and creates the pod if its node must be asked for it.
    async fn active_sandbox(&self, _: &Busy<'_>) -> Result<&Arc<dyn Sandbox>> {
        let inner = &*self.0;
        self.watch();
        if let Some(chosen) = inner.chosen.get() {
            return Ok(chosen);
        }
        let mut why = None;
        let chosen = match (&inner.agent, &inner.portable) {
            (Some(agent), None) => agent,
            (None, Some(portable)) => portable,
            (Some(agent), Some(portable)) => {
                why = self.missing_agent().await?;
                if why.is_some() { portable } else { agent }
            }
            (None, None) => {
                return Err(crate::check::wrong("no agent is available; provide one"));
            }
        };
        Ok(inner.chosen.get_or_init(|| {
            if let Some(why) = why {
                tracing::warn!(
                    pod = self.pod_name(),
                    "{why}: the image's own tools are used, which is slower; `agentbox agent install` makes one"
                );
            }
            Arc::clone(chosen)
        }))
    }

    /// Returns why no agent can serve the pod; `None` if one can. If the pod cannot be
    /// created, that error is reported instead.
    async fn missing_agent(&self) -> Result<Option<&'static str>> {
        let ours = &self.0.agent_architectures;
        if ours.len() == 1 {
            // It is taken to fit.
            return Ok(None);
        }
        self.ready(StartReason::OnDemand).await?;
        let machine = self.0.machine.clone();
        if machine.has_agent() {
            return Ok(None);
        }
        if ours.is_empty() {
            return Ok(Some("there is no sandbox-agent"));
        }
        let node = cluster::run(async move { machine.architecture().await }).await;
        let node = node.map_err(during(Operation::Start))?;
        let fits = node.is_empty() || ours.contains(&node.as_str());
        Ok((!fits).then_some("there is no sandbox-agent for the node's processor"))
    }
}

fn during(operation: Operation) -> impl FnOnce(Error) -> Error {
    move |error| error.during(operation)
}

/// Returns the configuration of a machine that creates its pod.
fn machine_config(valid: ValidSettings) -> Result<MachineConfig> {
    let ValidSettings {
        settings,
        cluster,
        image,
        working_dir,
    } = valid;
    let random = || format!("agentbox-{:016x}", fastrand::u64(..));
    Ok(MachineConfig {
        cluster,
        name: settings.name.clone().unwrap_or_else(random),
        working_dir,
        uid: None,
        foreign: false,
        agents: settings.agent.binaries()?,
        start_timeout: settings.start_timeout,
        grace: settings.grace,
        recipe: Some(Recipe { settings, image }),
    })
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.disposal != Some(Disposal::Remove) {
            return;
        }
        let Some(closing) = self.machine.close() else {
            return;
        };
        let pod = self.machine.name().to_owned();
        if let Ok(handle) = engine::handle() {
            handle.spawn(async move {
                if let Err(error) = closing.await {
                    tracing::warn!(pod, "a pod was left behind: {}", error.chain());
                }
            });
        }
    }
}
