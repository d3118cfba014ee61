//! [`K8sMachine`]: a pod, as the transports see it.

mod agent;
mod create;
mod events;
mod lifecycle;
mod program;
mod state;
mod wait;

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::sync::lock;
use backend_core::{Error, Result, VPath};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use sandbox_shell::{Agents, HostedMachine, OnDemand, Presence, StartReason};
use sandbox_wire::{Machine, Process, Spawn};
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::reason::PodState;
use crate::settings::Settings;

use state::{Look, PodFacts, Run, State};

/// The pause between looks at a pod that may have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The time for looks at a pod that fail but may succeed later. What ended a stream can make
/// the cluster busy for a moment, and its failure would hide the reason.
const LOOK_TIMEOUT: Duration = Duration::from_secs(3);

/// A pod, created or not created yet. Clones refer to the same pod.
#[derive(Debug, Clone)]
pub(crate) struct K8sMachine(OnDemand<Core>);

#[derive(Debug)]
pub(crate) struct Core {
    config: MachineConfig,
    /// A random number by which it recognizes the pods that it created.
    creation: String,
    state: Mutex<State>,
}

/// The pod of a machine, and how it is used.
#[derive(Debug, Clone)]
pub(crate) struct MachineConfig {
    pub(crate) cluster: Cluster,
    /// The pod's name, used in all requests. It is chosen before the pod is created, so
    /// that one whose creation was cancelled is found again.
    pub(crate) name: String,
    pub(crate) working_dir: VPath,
    /// Its options and image, if it creates pods; `None` if it is bound to one.
    pub(crate) recipe: Option<Recipe>,
    /// The uid of the pod that it is bound to.
    pub(crate) uid: Option<String>,
    /// Whether a pod that this crate did not create may be used.
    pub(crate) foreign: bool,
    pub(crate) agents: Agents,
    pub(crate) start_timeout: Duration,
    pub(crate) grace: Duration,
}

/// The options and the image of a new pod.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    pub(crate) settings: Settings,
    pub(crate) image: String,
}

impl MachineConfig {
    /// Whether a new pod has the files of the working directory.
    fn keeps_files(&self) -> bool {
        let recipe = self.recipe.as_ref();
        recipe.is_some_and(|recipe| recipe.settings.keeps_files(&self.working_dir))
    }

    /// A pod that was attached to exists.
    fn initial_presence(&self) -> Presence {
        match self.recipe {
            Some(_) => Presence::Unseen,
            None => Presence::Seen,
        }
    }
}

impl K8sMachine {
    pub(crate) fn new(config: MachineConfig) -> Self {
        Self(OnDemand::new(Core {
            creation: format!("{:032x}", fastrand::u128(..)),
            state: Mutex::new(State::new(config.initial_presence())),
            config,
        }))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.config.name
    }

    /// Returns a machine that is bound to a pod, which was just read.
    pub(crate) fn attached(config: MachineConfig, pod: &Pod) -> Self {
        let runs = PodState::of(pod) == PodState::Running;
        Self::bound(config, runs.then(|| PodFacts::of(pod)))
    }

    /// Returns a machine that is bound to a pod. It runs if there are facts about it.
    fn bound(config: MachineConfig, pod: Option<PodFacts>) -> Self {
        let machine = Self::new(config);
        machine.0.state().look = pod.map(|pod| Look::now(Some(pod)));
        machine
    }

    /// Creates a new pod, never an existing one of this name. Returns a machine that is bound
    /// to it.
    pub(crate) async fn create_new(&self) -> Result<Self> {
        let create = |core: OnDemand<Core>| async move { core.create_new().await };
        self.0.exclusively(create).await?;
        let pod = self.0.state().pod.clone();
        let pod = pod.ok_or_else(|| self.0.deleted())?;
        let config = MachineConfig {
            uid: Some(pod.run.uid.clone()),
            recipe: None,
            ..self.0.config.clone()
        };
        Ok(Self::bound(config, Some(pod)))
    }
}

impl Core {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Explains a failed call on the pod: the pod's state if that is the reason, else the
    /// cluster's message.
    async fn explain(&self, error: Error) -> Error {
        match self.diagnosis_soon().await {
            Some(reason) => reason,
            // The pod is there, so a missing object is another one.
            None if error.is_not_found() => Error::unavailable(error.message().to_owned()),
            None => error,
        }
    }

    /// Returns why the pod does not answer, or `None` if it should. After a stream has
    /// ended, waits for the cluster to hear of the reason.
    async fn diagnosis_soon(&self) -> Option<Error> {
        let may_fail_until = Instant::now() + LOOK_TIMEOUT;
        loop {
            let until = match self.diagnosis().await {
                Ok(Some(reason)) => return Some(reason),
                Ok(None) => self.state().suspect_until,
                Err(error) if !error.is_retryable() || may_fail_until <= Instant::now() => {
                    self.state().set_not_running();
                    return Some(error);
                }
                Err(error) => {
                    tracing::debug!("a pod was not looked at: {}", error.chain());
                    Some(may_fail_until)
                }
            };
            if until.is_none_or(|until| until <= Instant::now()) {
                return None;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

#[async_trait]
impl Machine for K8sMachine {
    fn name(&self) -> Cow<'static, str> {
        "k8s".into()
    }

    fn id(&self) -> String {
        self.0.config.name.clone()
    }

    fn working_dir(&self) -> VPath {
        self.0.config.working_dir.clone()
    }

    async fn start(&self) -> Result<()> {
        self.0.start(StartReason::OnDemand).await
    }

    async fn stop(&self, mode: StopMode) -> Result<()> {
        self.0.stop(mode).await
    }

    async fn is_alive(&self) -> Result<bool> {
        let Some(found) = self.0.find().await? else {
            return Ok(false);
        };
        let state = self.0.state();
        let is_ours = self.0.is_used(&state, &found);
        Ok(is_ours && !state.stopped && PodState::of(&found) == PodState::Running)
    }

    async fn agent(&self) -> Result<Vec<String>> {
        self.0.agent_command().await
    }

    async fn spawn(&self, program: Spawn) -> Result<Process> {
        self.start_program(program).await
    }

    async fn diagnose(&self) -> Option<Error> {
        self.0.diagnosis_soon().await
    }
}

#[async_trait]
impl HostedMachine for K8sMachine {
    type Run = Option<Run>;

    fn current_run(&self) -> Option<Run> {
        self.0.state().run().cloned()
    }

    fn is_running(&self) -> bool {
        self.0.is_running()
    }

    async fn start_explicit(&self) -> Result<()> {
        self.0.start(StartReason::Explicit).await
    }

    async fn missing_agent(&self) -> Result<Option<&'static str>> {
        if self.0.config.agents.len() == 1 {
            // It is taken to fit.
            return Ok(None);
        }
        // If the pod cannot be created, that error is reported instead.
        self.start().await?;
        self.0.missing_agent().await
    }

    fn ended_meanwhile(&self) -> Error {
        let core = &self.0;
        let restarted = {
            let state = core.state();
            state.pod.as_ref().and_then(|pod| pod.restarted.clone())
        };
        let text = match restarted {
            Some(reason) => format!("was restarted while the command ran: it {reason}"),
            None => "ended while the command ran".to_owned(),
        };
        core.unavailable(&text, "run it again")
    }

    fn close(&self) -> Option<BoxFuture<'static, Result<()>>> {
        let recipe = self.0.config.recipe.as_ref()?;
        self.0.close(recipe.settings.disposal().stop_mode()?)
    }
}

#[cfg(test)]
mod tests;
