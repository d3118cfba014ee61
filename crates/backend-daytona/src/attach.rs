//! [`Attach`]: an object for an existing sandbox.

use std::time::Duration;

use backend_core::{Error, ErrorKind, Result};
use sandbox_runtime::options;
use sandbox_shell::Mode;
use sandbox_wire::agent::AgentBinary;

use crate::account::{self, Account};
use crate::check;
use crate::instance::Instance;
use crate::labels;
use crate::machine::MachineConfig;
use crate::sandbox::DaytonaSandbox;
use crate::settings::{DEFAULT_WORKING_DIR, Settings, Source};
use crate::state::InstanceState;
use crate::toolbox::Toolbox;

/// Options for attaching to a sandbox, from [`DaytonaSandbox::attach`].
#[derive(Debug, Clone)]
#[must_use = "this does nothing until `open`"]
pub struct Attach {
    sandbox: String,
    foreign: bool,
    id: Option<String>,
    /// Of these, only the options that are set here have an effect.
    settings: Settings,
}

impl DaytonaSandbox {
    /// Attaches to a sandbox by its name or id, in any state. One that is stopped, paused
    /// or archived is started by the first operation.
    ///
    /// ```no_run
    /// # async fn example() -> backend_core::Result<()> {
    /// use backend_daytona::{Account, DaytonaSandbox};
    /// let account = Account::from_env()?;
    /// let sandbox = DaytonaSandbox::attach("my-box").account(account).open().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn attach(sandbox: impl Into<String>) -> Attach {
        Attach::new(sandbox.into(), Settings::default())
    }
}

impl Attach {
    pub(crate) fn new(sandbox: String, settings: Settings) -> Self {
        Self {
            sandbox,
            foreign: false,
            id: None,
            settings,
        }
    }

    backend_core::setters! {
        /// Sets the account. Required.
        fn account(self, account: Account) { self.settings.account = Some(account) }

        /// Sets the directory that relative paths and commands start in. Defaults to that
        /// with which it was created, or else to the toolbox's.
        fn working_dir(self, working_dir: impl Into<String>) {
            self.settings.working_dir = Some(working_dir.into());
        }

        /// Whether sandboxes that this crate did not create are accepted. With this, any
        /// sandbox of the organization can be used, stopped and deleted by name.
        fn allow_foreign(self, foreign: bool) { self.foreign = foreign }

        /// Requires the id of the sandbox, so that another one of its name is not used.
        fn id(self, id: impl Into<String>) { self.id = Some(id.into()) }

        /// Stops the sandbox after this time without activity through this object.
        fn idle_timeout(self, idle_timeout: impl Into<Option<Duration>>) {
            self.settings.idle_timeout = idle_timeout.into();
        }

        /// Sets how long it may take to start. Two minutes by default.
        fn start_timeout(self, timeout: Duration) { self.settings.start_timeout = Some(timeout) }

        /// Whether it is recovered from an error, as
        /// [`DaytonaBuilder::recover`](crate::DaytonaBuilder::recover) does.
        fn recover(self, recover: bool) { self.settings.recover = recover }

        /// Adds an agent binary, as [`DaytonaBuilder::agent`](crate::DaytonaBuilder::agent)
        /// does.
        fn agent(self, agent: AgentBinary) { self.settings.agents.add(agent) }

        /// Sets whether the agent or the image's own tools serve the operations.
        fn mode(self, mode: Mode) { self.settings.mode = mode }
    }

    /// Looks up the sandbox, and binds the object to it by its id. Nothing is started yet.
    ///
    /// # Errors
    ///
    /// `Config` for invalid options; `NotFound` if there is no such sandbox;
    /// `PermissionDenied` if this crate did not create it; `Unavailable` if the service
    /// does not answer.
    pub async fn open(self) -> Result<DaytonaSandbox> {
        self.attached().await.map_err(|error| error.on("daytona"))
    }

    async fn attached(self) -> Result<DaytonaSandbox> {
        let Self {
            sandbox,
            foreign,
            id,
            settings,
        } = self;
        check::sandbox(&sandbox)?;
        let account = settings.required_account()?;
        options::idle_timeout(settings.idle_timeout)?;
        let agents = settings.agents.located(settings.mode)?;
        let (asked, key) = (account.clone(), sandbox.clone());
        let found = account::run(async move { asked.find(&key).await }).await?;
        let Some(found) = found.filter(|found| !found.state.is_gone()) else {
            return Err(missing(&sandbox));
        };
        if id.is_some_and(|id| id != found.id) {
            let text =
                format!("the sandbox {sandbox} was deleted, and there is another of its name");
            return Err(Error::new(ErrorKind::NotFound, text));
        }
        if !foreign && !found.is_ours() {
            return Err(Error::new(
                ErrorKind::PermissionDenied,
                format!(
                    "the sandbox {sandbox} was not created by this program; set `allow_foreign` to use it"
                ),
            ));
        }
        let working_dir = match settings.working_dir.clone() {
            Some(directory) => directory,
            None => known_directory(&account, &found).await?,
        };
        let config = MachineConfig {
            account,
            name: found.name,
            id: Some(found.id),
            working_dir: options::absolute_path("work", &working_dir)?,
            recipe: None,
            foreign,
            recover: settings.recover,
            agents,
            start_timeout: settings.start_timeout(&Source::Snapshot(None)),
        };
        Ok(DaytonaSandbox::assemble(config, &settings))
    }
}

fn missing(sandbox: &str) -> Error {
    let text = format!("there is no sandbox {sandbox} in the organization; create one");
    Error::new(ErrorKind::NotFound, text)
}

/// Returns the directory that a sandbox was created with, or that of its toolbox, which is
/// only known while it runs.
async fn known_directory(account: &Account, found: &Instance) -> Result<String> {
    if let Some(directory) = found.labels.get(labels::WORKING_DIR) {
        return Ok(directory.clone());
    }
    let usual = DEFAULT_WORKING_DIR.to_owned();
    if found.state != InstanceState::Started {
        return Ok(usual);
    }
    let (account, found) = (account.clone(), found.clone());
    account::run(async move {
        let url = account.toolbox_url(&found).await?;
        let directory = Toolbox::new(account, url).work_dir().await?;
        // A sandbox is not used as a whole.
        let directory = directory.filter(|directory| directory != "/");
        Ok(directory.unwrap_or(usual))
    })
    .await
}
