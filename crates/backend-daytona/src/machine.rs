//! [`DaytonaMachine`]: a hosted sandbox, as the transports see it.

mod agent;
mod create;
mod lifecycle;
mod program;
mod state;

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::sync::lock;
use backend_core::{Error, ErrorKind, Result, VPath};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use sandbox_shell::{Agents, HostedMachine, OnDemand, Presence, StartReason};
use sandbox_wire::{Machine, Process, Spawn};

use crate::account::Account;
use crate::api::Change;
use crate::carrier::Carriers;
use crate::instance::Instance;
use crate::options::{Connection, PreviewUrl};
use crate::secret::Secret;
use crate::settings::{Settings, Source};
use crate::state::InstanceState;
use crate::toolbox::Toolbox;

use agent::AgentState;
use state::State;

/// A hosted sandbox, created or not created yet. Clones refer to the same one.
#[derive(Debug, Clone)]
pub(crate) struct DaytonaMachine(OnDemand<Core>);

#[derive(Debug)]
pub(crate) struct Core {
    config: MachineConfig,
    /// A random number by which it recognizes the sandbox that it created.
    creation: String,
    state: Mutex<State>,
    carriers: Carriers,
}

/// The sandbox of a machine, and how it is used.
#[derive(Debug, Clone)]
pub(crate) struct MachineConfig {
    pub(crate) account: Account,
    /// The sandbox's name. It is chosen before the sandbox is created, so that one whose
    /// creation was cancelled is found again.
    pub(crate) name: String,
    /// The id of the sandbox that it is bound to.
    pub(crate) id: Option<String>,
    pub(crate) working_dir: VPath,
    /// Its options, if it creates sandboxes; `None` if it is bound to one.
    pub(crate) recipe: Option<Recipe>,
    /// Whether a sandbox that this crate did not create may be used.
    pub(crate) foreign: bool,
    /// Whether it is recovered from an error.
    pub(crate) recover: bool,
    pub(crate) agents: Agents,
    pub(crate) start_timeout: Duration,
}

/// The options and the content of a new sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    pub(crate) settings: Settings,
    pub(crate) source: Source,
}

impl MachineConfig {
    /// A sandbox that was attached to exists.
    fn initial_presence(&self) -> Presence {
        match self.recipe {
            Some(_) => Presence::Unseen,
            None => Presence::Seen,
        }
    }
}

impl DaytonaMachine {
    pub(crate) fn new(config: MachineConfig) -> Self {
        let carriers = Carriers::new(config.working_dir.clone());
        Self(OnDemand::new(Core {
            creation: format!("{:032x}", fastrand::u128(..)),
            state: Mutex::new(State::new(config.initial_presence())),
            carriers,
            config,
        }))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.config.name
    }

    pub(crate) fn instance_id(&self) -> Option<String> {
        self.0.known_id()
    }

    pub(crate) fn connection(&self) -> Option<Connection> {
        self.0.state().connection
    }

    /// Creates a new sandbox, never uses an existing one of this name. Returns its id.
    pub(crate) async fn create_new(&self) -> Result<String> {
        let create = |core: OnDemand<Core>| async move { core.create_new().await };
        self.0.exclusively(create).await?;
        self.instance_id().ok_or_else(|| self.0.deleted())
    }

    /// Ends the sessions and the agent that were started in the sandbox.
    pub(crate) async fn leave(&self) -> Result<()> {
        let (toolbox, listener) = {
            let mut state = self.0.state();
            state.connected = None;
            (state.toolbox.clone(), state.listener.take())
        };
        let Some(toolbox) = toolbox else {
            return Ok(());
        };
        self.0.carriers.end(&toolbox).await?;
        match listener {
            Some(listener) => toolbox.delete_session(&listener.session).await,
            None => Ok(()),
        }
    }

    pub(crate) async fn find(&self) -> Result<Option<Instance>> {
        self.0.find().await
    }

    /// Changes the state of the sandbox, which must exist.
    pub(crate) async fn change(&self, change: Change) -> Result<()> {
        let change = move |core: OnDemand<Core>| async move { core.change(change).await };
        self.0.exclusively(change).await
    }

    pub(crate) async fn touch(&self) -> Result<()> {
        let id = self.existing_id()?;
        self.0.config.account.touch(&id).await
    }

    pub(crate) async fn touch_if_running(&self) -> Result<()> {
        match self.0.is_running() {
            true => self.touch().await,
            false => Ok(()),
        }
    }

    pub(crate) async fn preview_url(&self, port: u16) -> Result<PreviewUrl> {
        let id = self.existing_id()?;
        let (url, token) = self.0.config.account.preview(&id, port).await?;
        let token = Secret::new(token);
        Ok(PreviewUrl { url, token })
    }

    /// Returns the toolbox of the sandbox, which is started if it does not run.
    pub(crate) async fn started_toolbox(&self) -> Result<Toolbox> {
        self.start().await?;
        self.0.toolbox()
    }

    fn existing_id(&self) -> Result<String> {
        self.instance_id().ok_or_else(|| self.0.deleted())
    }
}

impl Core {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn toolbox(&self) -> Result<Toolbox> {
        let known = self.state().toolbox.clone();
        known.ok_or_else(|| self.deleted())
    }

    /// Explains a failed call on the sandbox: its state if that is the reason, else the
    /// service's message.
    async fn explain(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::Unavailable | ErrorKind::NotFound | ErrorKind::Timeout => {}
            _ => return error,
        }
        match self.diagnosis().await {
            Some(reason) => reason,
            // The sandbox is there, so something else is missing.
            None if error.is_not_found() => Error::unavailable(error.message().to_owned()),
            None => error,
        }
    }
}

#[async_trait]
impl Machine for DaytonaMachine {
    fn name(&self) -> Cow<'static, str> {
        "daytona".into()
    }

    fn id(&self) -> String {
        self.0.config.name.clone()
    }

    fn working_dir(&self) -> VPath {
        self.0.config.working_dir.clone()
    }

    /// No request is made for a sandbox that is known to run. If it has ended, the next
    /// use of it shows that.
    async fn start(&self) -> Result<()> {
        if self.0.is_running() {
            return Ok(());
        }
        self.0.start(StartReason::OnDemand).await
    }

    async fn stop(&self, mode: StopMode) -> Result<()> {
        self.0.stop(mode).await
    }

    async fn is_alive(&self) -> Result<bool> {
        let found = self.0.find().await?;
        Ok(found.is_some_and(|found| found.state == InstanceState::Started))
    }

    async fn agent(&self) -> Result<Vec<String>> {
        self.0.agent_command().await
    }

    async fn spawn(&self, program: Spawn) -> Result<Process> {
        if agent::is_agent(&program) {
            self.start_agent().await
        } else {
            self.start_program(program).await
        }
    }

    async fn diagnose(&self) -> Option<Error> {
        self.0.diagnosis().await
    }

    /// Without an agent, each piece of input is a request.
    fn is_distant(&self) -> bool {
        true
    }

    fn stream_bytes(&self) -> Option<u64> {
        Some(self.0.carriers.stream_bytes())
    }
}

#[async_trait]
impl HostedMachine for DaytonaMachine {
    /// How often this object has seen the sandbox start.
    type Run = u64;

    fn current_run(&self) -> u64 {
        self.0.state().starts
    }

    fn is_running(&self) -> bool {
        self.0.is_running()
    }

    async fn start_explicit(&self) -> Result<()> {
        self.0.start(StartReason::Explicit).await
    }

    async fn missing_agent(&self) -> Result<Option<&'static str>> {
        // If the sandbox cannot be created, that error is reported instead.
        self.start().await?;
        if self.0.config.agents.is_empty() {
            return Ok(Some(
                "there is no sandbox-agent; `agentbox agent install` makes one",
            ));
        }
        match self.connect_agent().await? {
            AgentState::Connected(process) => {
                // The next call uses it.
                let run = self.current_run();
                self.0.state().connected = Some((run, process));
                Ok(None)
            }
            AgentState::Unfit => Ok(Some("no sandbox-agent runs on the sandbox's processor")),
            AgentState::Refused => Ok(Some("the service passes no stream to a sandbox-agent")),
        }
    }

    fn ended_meanwhile(&self) -> Error {
        self.0
            .unavailable("ended while the command ran", "run it again")
    }

    fn close(&self) -> Option<BoxFuture<'static, Result<()>>> {
        let Some(recipe) = &self.0.config.recipe else {
            let machine = self.clone();
            return Some(async move { machine.leave().await }.boxed());
        };
        self.0.close(recipe.settings.disposal().stop_mode()?)
    }
}
