//! The agent of a sandbox: which one it is, where, and the connection to it.

use std::time::Duration;

use backend_core::Result;
use sandbox_shell::HostedMachine as _;
use sandbox_wire::agent::AgentBinary;
use sandbox_wire::websocket::Token;
use sandbox_wire::{Process, Spawn};

use super::state::Listener;
use super::{Core, DaytonaMachine};
use crate::agent::{self, Launch};
use crate::client::Repeat;
use crate::connect::{self, Opened};
use crate::toolbox::Toolbox;

/// The time for a program that prints the name of the processor.
const UNAME_TIMEOUT: Duration = Duration::from_secs(10);

/// The time for an agent that listens to be reached.
const REACH_TIMEOUT: Duration = Duration::from_secs(10);

/// The names of processors as `uname` prints them and as images have them, where they
/// differ.
const PROCESSORS: [(&str, &str); 3] = [
    ("x86_64", "amd64"),
    ("aarch64", "arm64"),
    ("loongarch64", "loong64"),
];

/// The result of an attempt to use the agent.
pub(super) enum AgentState {
    Connected(Process),
    /// It does not run there.
    Unfit,
    /// No stream can be opened to it.
    Refused,
}

/// Whether a program is the agent.
pub(super) fn is_agent(program: &Spawn) -> bool {
    let first = program.argv.first();
    first.is_some_and(|program| agent::is_path(program))
}

impl Core {
    /// Returns the command line of the agent, which is placed when it is started.
    pub(super) async fn agent_command(&self) -> Result<Vec<String>> {
        let loaded = self.fitting_agent().await?.load().await?;
        let directory = self.config.working_dir.to_string();
        let path = agent::path(&loaded);
        Ok(vec![path, "--directory".to_owned(), directory])
    }

    /// Returns the agent for the sandbox's processor. If there is only one, it is taken to
    /// fit: to find out would take as long as to start it.
    async fn fitting_agent(&self) -> Result<AgentBinary> {
        let architecture = match self.config.agents.len() {
            0 | 1 => String::new(),
            _ => self.architecture().await?,
        };
        let agents = &self.config.agents;
        let agent = agents.require(&architecture, "sandbox", "sandbox")?;
        Ok(agent.clone())
    }

    /// Returns the processor of the running sandbox. Empty if it is not known.
    async fn architecture(&self) -> Result<String> {
        let known = self.state().architecture.clone();
        if !known.is_empty() {
            return Ok(known);
        }
        let toolbox = self.toolbox()?;
        let asked = toolbox.execute("uname -m", &[], UNAME_TIMEOUT, Repeat::Safe);
        let printed = asked.await?.printed;
        let name = printed.trim();
        let found = PROCESSORS.iter().find(|(theirs, _)| *theirs == name);
        let found = found.map_or(name, |(_, ours)| ours).to_owned();
        self.state().architecture.clone_from(&found);
        Ok(found)
    }

    /// Starts the agent in the sandbox.
    async fn launch(&self, toolbox: &Toolbox) -> Result<Option<Listener>> {
        let loaded = self.fitting_agent().await?.load().await?;
        let token = Token::generate()?;
        let session = agent::new_session();
        let directory = self.config.working_dir.as_str();
        let launched = agent::launch(toolbox, &loaded, &session, &token, directory).await;
        match launched {
            Ok(Launch::Listening(port)) => Ok(Some(Listener {
                session,
                port,
                token,
            })),
            Ok(Launch::Unfit) => {
                self.end_session(toolbox, session);
                Ok(None)
            }
            Err(error) => {
                self.end_session(toolbox, session);
                Err(error)
            }
        }
    }

    /// Ends a session, in the background. One that stays ends with the sandbox.
    fn end_session(&self, toolbox: &Toolbox, session: String) {
        let toolbox = toolbox.clone();
        tokio::spawn(async move {
            if let Err(error) = toolbox.delete_session(&session).await {
                tracing::debug!("a session was left behind: {}", error.chain());
            }
        });
    }

    /// Opens a stream to an agent, which may take some time to be reached.
    async fn open(
        &self,
        toolbox: &Toolbox,
        listener: &Listener,
        patience: Duration,
    ) -> Result<Option<Process>> {
        let (preferred, id) = {
            let state = self.state();
            (state.connection, state.id.clone())
        };
        let id = id.ok_or_else(|| self.deleted())?;
        let (port, token) = (listener.port, &listener.token);
        let opened = connect::open(toolbox, &id, port, token, preferred, patience).await?;
        Ok(opened.map(
            |Opened {
                 process,
                 connection,
             }| {
                self.state().connection = Some(connection);
                process
            },
        ))
    }
}

impl DaytonaMachine {
    /// Starts the agent, and connects to it.
    pub(super) async fn start_agent(&self) -> Result<Process> {
        let core = &self.0;
        let waiting = core.state().connected.take();
        if let Some((run, process)) = waiting
            && run == self.current_run()
        {
            return Ok(process);
        }
        match self.connect_agent().await? {
            AgentState::Connected(process) => Ok(process),
            AgentState::Unfit => Err(core.unavailable(
                "does not run the agent",
                "give one for its processor, or use the portable mode",
            )),
            AgentState::Refused => Err(core.unavailable(
                "cannot be reached: the service passes no websocket to it, neither through the toolbox nor through a preview",
                "use the automatic or the portable mode",
            )),
        }
    }

    /// Connects to the agent that listens, or else to a new one.
    pub(super) async fn connect_agent(&self) -> Result<AgentState> {
        let mut may_restart = true;
        loop {
            match self.try_agent().await {
                Ok(state) => return Ok(state),
                Err(error) => self.restarted(error, &mut may_restart).await?,
            }
        }
    }

    async fn try_agent(&self) -> Result<AgentState> {
        let core = &self.0;
        let toolbox = core.toolbox()?;
        // The agent that lost its connection waits a while for the next.
        let known = core.state().listener.take();
        if let Some(listener) = known {
            if let Ok(Some(process)) = core.open(&toolbox, &listener, Duration::ZERO).await {
                core.state().listener = Some(listener);
                return Ok(AgentState::Connected(process));
            }
            core.end_session(&toolbox, listener.session);
        }
        let Some(listener) = core.launch(&toolbox).await? else {
            return Ok(AgentState::Unfit);
        };
        match core.open(&toolbox, &listener, REACH_TIMEOUT).await {
            Ok(Some(process)) => {
                core.state().listener = Some(listener);
                Ok(AgentState::Connected(process))
            }
            Ok(None) => {
                core.end_session(&toolbox, listener.session);
                Ok(AgentState::Refused)
            }
            Err(error) => {
                core.end_session(&toolbox, listener.session);
                Err(error)
            }
        }
    }
}
