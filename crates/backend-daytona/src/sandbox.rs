//! [`DaytonaSandbox`]: a hosted sandbox as a backend.

mod backend;
mod keep_alive;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use backend_core::ops::StopMode;
use backend_core::{Operation, Result, Sandbox};
use bytes::Bytes;
use sandbox_shell::{HostedSandbox, Sampler, Stats};

use crate::account;
use crate::api::Change;
use crate::archive;
use crate::machine::{DaytonaMachine, MachineConfig, Recipe};
use crate::options::{Connection, PreviewUrl};
use crate::settings::{Settings, ValidSettings};
use crate::state::InstanceState;

/// A hosted sandbox as a backend. Clones share it.
///
/// The first operation creates the sandbox and waits until it runs. One that is stopped,
/// paused or archived is started again by the next operation. If it was deleted from
/// outside, operations are `Unavailable`, and only [`start`](Sandbox::start) creates a new
/// one: its files are gone, and that should not go unnoticed.
///
/// When the last clone is dropped, a sandbox that it created is deleted, or with
/// [`keep`](crate::DaytonaBuilder::keep) stopped. This happens in the background, provided
/// the process lives long enough; call [`stop`](Sandbox::stop) to be sure. Sandboxes with a
/// name, or that were attached to, are left as they are.
///
/// See [`DaytonaBuilder`](crate::DaytonaBuilder) for an example.
#[derive(Debug, Clone)]
pub struct DaytonaSandbox(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    hosted: HostedSandbox<DaytonaMachine>,
    sampler: Sampler,
    /// Whether a task tells the service of activity.
    watched: AtomicBool,
}

impl DaytonaSandbox {
    pub(crate) fn new(valid: ValidSettings) -> Result<Self> {
        let settings = valid.settings.clone();
        Ok(Self::assemble(machine_config(valid)?, &settings))
    }

    /// Creates a sandbox now, and refers to it by its id only.
    pub(crate) async fn create(valid: ValidSettings) -> Result<Self> {
        let settings = valid.settings.clone();
        let config = machine_config(valid)?;
        let machine = DaytonaMachine::new(config.clone());
        let created = account::run(async move { machine.create_new().await });
        let id = created
            .await
            .map_err(|error| error.during(Operation::Start))?;
        let bound = MachineConfig {
            id: Some(id),
            recipe: None,
            ..config
        };
        Ok(Self::assemble(bound, &settings))
    }

    pub(crate) fn assemble(config: MachineConfig, settings: &Settings) -> Self {
        let machine = DaytonaMachine::new(config);
        let hosted = HostedSandbox::new(machine, settings.mode, settings.idle_timeout);
        Self(Arc::new(Inner {
            hosted,
            sampler: Sampler::default(),
            watched: AtomicBool::new(false),
        }))
    }

    fn machine(&self) -> &DaytonaMachine {
        self.0.hosted.machine()
    }

    /// Returns the sandbox's name.
    pub fn name(&self) -> &str {
        self.machine().name()
    }

    /// Returns the sandbox's id, once it is known.
    pub fn instance_id(&self) -> Option<String> {
        self.machine().instance_id()
    }

    /// Returns the way into the sandbox, once it is chosen.
    pub fn connection(&self) -> Option<Connection> {
        self.machine().connection()
    }

    /// Returns the sandbox's state. Never starts it.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the service does not answer.
    pub async fn state(&self) -> Result<InstanceState> {
        let machine = self.machine().clone();
        let found = account::run(async move { machine.find().await }).await?;
        Ok(found.map_or(InstanceState::Missing, |found| found.state))
    }

    /// Freezes the sandbox with its memory. The next operation resumes it.
    ///
    /// # Errors
    ///
    /// `Config` if its kind cannot be paused; `Unavailable` if it does not run or the
    /// service does not answer.
    pub async fn pause(&self) -> Result<()> {
        self.change(Change::Pause).await
    }

    /// Stops the sandbox and moves its files to an archive, which costs less. The next
    /// operation restores it.
    ///
    /// # Errors
    ///
    /// `Unavailable` if there is no sandbox or the service does not answer.
    pub async fn archive(&self) -> Result<()> {
        self.stop(StopMode::Keep).await?;
        self.change(Change::Archive).await
    }

    /// Recovers the sandbox from an error, if the service can.
    ///
    /// # Errors
    ///
    /// `Config` if it cannot; `Unavailable` if there is no sandbox or the service does not
    /// answer.
    pub async fn recover(&self) -> Result<()> {
        self.change(Change::Recover).await
    }

    /// Ends the sessions and the agent that were started in the sandbox through this object
    /// and its clones, with all that they run. The sandbox stays as it is. If the last clone
    /// is dropped, this is done in the background for a sandbox that was attached to.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the service does not answer.
    pub async fn leave(&self) -> Result<()> {
        let machine = self.machine().clone();
        account::run(async move { machine.leave().await }).await
    }

    async fn change(&self, change: Change) -> Result<()> {
        let machine = self.machine().clone();
        account::run(async move { machine.change(change).await }).await
    }

    /// Deletes the sandbox and its files, like [`stop`](Sandbox::stop) with `Purge`.
    /// Volumes are kept.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the service does not answer.
    pub async fn remove(&self) -> Result<()> {
        self.stop(StopMode::Purge).await
    }

    /// Tells the service that the sandbox is used. Operations do so by themselves.
    ///
    /// # Errors
    ///
    /// `Unavailable` if there is no sandbox or the service does not answer.
    pub async fn keep_alive(&self) -> Result<()> {
        let machine = self.machine().clone();
        account::run(async move { machine.touch().await }).await
    }

    /// Returns the address under which a port of the sandbox can be reached.
    ///
    /// # Errors
    ///
    /// `Unavailable` if there is no sandbox or the service does not answer.
    pub async fn preview_url(&self, port: u16) -> Result<PreviewUrl> {
        let machine = self.machine().clone();
        account::run(async move { machine.preview_url(port).await }).await
    }

    /// Unpacks a tar archive in a directory, which is created if it is missing. Starts the
    /// sandbox if it does not run. It needs `tar` in the sandbox.
    ///
    /// # Errors
    ///
    /// `Unavailable` if it cannot be unpacked.
    pub async fn put_tar(&self, directory: &str, archive: Bytes) -> Result<()> {
        let (machine, directory) = (self.machine().clone(), directory.to_owned());
        let put = async move {
            let toolbox = machine.started_toolbox().await?;
            archive::put(&toolbox, &directory, &archive).await
        };
        account::run(put).await
    }

    /// Packs a file or directory into a tar archive of at most `limit` bytes. Starts the
    /// sandbox if it does not run. It needs `tar` in the sandbox.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none; `TooLarge` if it is larger; `Unavailable` if it cannot
    /// be packed.
    pub async fn get_tar(&self, path: &str, limit: usize) -> Result<Bytes> {
        let (machine, path) = (self.machine().clone(), path.to_owned());
        let get = async move {
            let toolbox = machine.started_toolbox().await?;
            archive::get(&toolbox, &path, limit).await
        };
        account::run(get).await
    }

    /// Returns the current resource usage, as the sandbox sees it. The CPU usage is
    /// measured since the previous call.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the sandbox is gone; `Unsupported` if it does not show its usage.
    pub async fn stats(&self) -> Result<Stats> {
        self.0.sampler.sample(&self.0.hosted).await
    }
}

/// Returns the configuration of a machine that creates its sandbox.
fn machine_config(valid: ValidSettings) -> Result<MachineConfig> {
    let ValidSettings {
        settings,
        account,
        source,
        working_dir,
    } = valid;
    let random = || format!("agentbox-{:016x}", fastrand::u64(..));
    let agents = settings.agents.located(settings.mode);
    Ok(MachineConfig {
        account,
        name: settings.name.clone().unwrap_or_else(random),
        id: None,
        working_dir,
        foreign: false,
        recover: settings.recover,
        agents: agents.map_err(|error| error.on("daytona"))?,
        start_timeout: settings.start_timeout(&source),
        recipe: Some(Recipe { settings, source }),
    })
}
