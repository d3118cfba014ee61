//! [`DaytonaBuilder`]: the options of a [`DaytonaSandbox`].

use std::time::Duration;

use backend_core::Result;
use sandbox_runtime::Runtime;
use sandbox_shell::Mode;
use sandbox_wire::agent::AgentBinary;

use crate::account::Account;
use crate::attach::Attach;
use crate::options::{Network, Volume};
use crate::sandbox::DaytonaSandbox;
use crate::secret::Secret;
use crate::settings::Settings;

/// Options of a [`DaytonaSandbox`], from [`DaytonaSandbox::builder`].
///
/// By default a sandbox is made from the organization's default snapshot and has no
/// network.
///
/// ```no_run
/// # async fn example() -> backend_core::Result<()> {
/// use backend_core::{BackendExt as _, Sandbox as _, ops::{Command, StopMode}};
/// use backend_daytona::{Account, DaytonaSandbox, Network};
///
/// let sandbox = DaytonaSandbox::builder()
///     .account(Account::from_env()?)
///     .image("python:3.12-slim")
///     .network(Network::Open)
///     .memory(2 * 1024 * 1024 * 1024)
///     .env("CI", "1")
///     .build()?;
/// let outcome = sandbox.execute(Command::new("python -V")).await?;
/// assert!(outcome.status.success());
/// sandbox.stop(StopMode::Purge).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "a builder does nothing until `build`"]
pub struct DaytonaBuilder {
    pub(crate) settings: Settings,
}

impl DaytonaSandbox {
    /// Returns a builder for a new sandbox.
    pub fn builder() -> DaytonaBuilder {
        DaytonaBuilder::default()
    }
}

impl DaytonaBuilder {
    backend_core::setters! {
        /// Sets the account. Required.
        fn account(self, account: Account) { self.settings.account = Some(account) }

        /// Sets the snapshot that it is made from. By default that of the organization.
        fn snapshot(self, snapshot: impl Into<String>) {
            self.settings.snapshot = Some(snapshot.into());
        }

        /// Sets the image that it is made from, which the service pulls.
        fn image(self, image: impl Into<String>) { self.settings.image = Some(image.into()) }

        /// Sets the runtime that it is made from. The service builds it, and keeps what it
        /// has built for a while.
        fn runtime(self, runtime: Runtime) { self.settings.runtime = Some(runtime) }

        /// Sets the directory that relative paths and commands start in, which is created
        /// if it is missing. Defaults to the runtime's directory; for images to
        /// `/workspace`, and for snapshots to `/home/daytona`.
        fn working_dir(self, working_dir: impl Into<String>) {
            self.settings.working_dir = Some(working_dir.into());
        }

        /// Sets an environment variable for every command. The service stores it.
        fn env(self, name: impl Into<String>, value: impl Into<String>) {
            self.settings.env.insert(name.into(), Secret::new(value));
        }

        /// Sets an environment variable to a secret of the organization, by its name there.
        fn secret(self, variable: impl Into<String>, secret: impl Into<String>) {
            self.settings.secrets.insert(variable.into(), secret.into());
        }

        /// Adds a label.
        fn label(self, key: impl Into<String>, value: impl Into<String>) {
            self.settings.labels.insert(key.into(), value.into());
        }

        /// Names the sandbox. An existing sandbox of that name that was created with the
        /// same options is reused. A named sandbox is not deleted when its object is
        /// dropped, and other programs can use it by its name.
        fn name(self, name: impl Into<String>) { self.settings.name = Some(name.into()) }

        /// Whether an existing sandbox of that name is refused. Off by default.
        fn exclusive(self, exclusive: bool) { self.settings.exclusive = exclusive }

        /// Whether an unnamed sandbox is stopped when its object is dropped, and after its
        /// process has crashed. Otherwise it is deleted. Off by default.
        fn keep(self, keep: bool) { self.settings.keep = keep }

        /// Sets the number of CPUs. Only for an image or a runtime; so are the three below.
        fn cpus(self, cpus: u32) { self.settings.cpus = Some(cpus) }

        /// Sets the number of GPUs.
        fn gpus(self, gpus: u32) { self.settings.gpus = Some(gpus) }

        /// Sets the memory in bytes, rounded up to whole GiB.
        fn memory(self, bytes: u64) { self.settings.memory = Some(bytes) }

        /// Sets the disk space in bytes, rounded up to whole GiB.
        fn disk(self, bytes: u64) { self.settings.disk = Some(bytes) }

        /// Sets the user that commands run as, by name. By default that of the snapshot or
        /// image.
        fn user(self, user: impl Into<String>) { self.settings.user = Some(user.into()) }

        /// Sets the region. By default that of the account.
        fn target(self, target: impl Into<String>) { self.settings.target = Some(target.into()) }

        /// Whether previews of its ports need no credential. Off by default.
        fn public(self, public: bool) { self.settings.public = public }

        /// Mounts a volume of the organization.
        fn volume(self, volume: Volume) { self.settings.volumes.push(volume) }

        /// Sets the network access. There is none by default.
        fn network(self, network: Network) { self.settings.network = network }

        /// Sets the time without activity after which the service stops it, in minutes
        /// rounded up; `None` is never. 15 minutes by default. Operations, and commands
        /// that run, are activity.
        fn auto_stop(self, time: impl Into<Option<Duration>>) {
            self.settings.auto_stop = Some(time.into());
        }

        /// Sets the time without activity after which the service pauses it, where its kind
        /// of sandbox can be paused; `None` is never.
        fn auto_pause(self, time: impl Into<Option<Duration>>) {
            self.settings.auto_pause = Some(time.into());
        }

        /// Sets the time for which a stopped sandbox stays before the service archives it.
        /// `None` is the longest that the service allows. Seven days by default.
        fn auto_archive(self, time: impl Into<Option<Duration>>) {
            self.settings.auto_archive = Some(time.into());
        }

        /// Sets the time for which a stopped sandbox stays before the service deletes it;
        /// `None` is forever, zero deletes it when it is stopped. Forever by default.
        fn auto_delete(self, time: impl Into<Option<Duration>>) {
            self.settings.auto_delete = Some(time.into());
        }

        /// Sets the time after which the service deletes it in any case; `None` is never,
        /// where the organization allows that.
        fn ttl(self, time: impl Into<Option<Duration>>) {
            self.settings.ttl = Some(time.into());
        }

        /// Whether a sandbox in an error that the service can recover from is recovered by
        /// the next operation. Off by default.
        fn recover(self, recover: bool) { self.settings.recover = recover }

        /// Sets how long a sandbox may take to start. Two minutes by default, and 15 for
        /// images and runtimes. After that the call fails with a
        /// [`CreateTimeout`](crate::CreateTimeout), and the next one waits on.
        fn start_timeout(self, timeout: Duration) { self.settings.start_timeout = Some(timeout) }

        /// Stops the sandbox after this time without activity, as
        /// [`stop`](backend_core::Sandbox::stop) with `Keep` does. The next call starts it
        /// again. Off by default: the service does so too.
        fn idle_timeout(self, idle_timeout: impl Into<Option<Duration>>) {
            self.settings.idle_timeout = idle_timeout.into();
        }

        /// Whether the first start in this process deletes sandboxes left by crashed
        /// processes of this host, in the background. On by default.
        fn reap_leftovers(self, reap: bool) { self.settings.without_reaping = !reap }

        /// Adds an agent binary, one per architecture; the one that fits the sandbox is
        /// used. The default is the binary next to this program.
        fn agent(self, agent: AgentBinary) { self.settings.agents.add(agent) }

        /// Sets whether the agent or the image's own tools serve the operations.
        fn mode(self, mode: Mode) { self.settings.mode = mode }
    }

    /// Checks the options. The sandbox is created by the first operation, or by
    /// [`start`](backend_core::Sandbox::start).
    ///
    /// # Errors
    ///
    /// `Config` for an invalid option.
    pub fn build(self) -> Result<DaytonaSandbox> {
        DaytonaSandbox::new(self.settings.validate()?)
    }

    /// Creates a new sandbox now, and returns an object that is bound to this one by its
    /// id.
    ///
    /// Unlike the object of [`build`](Self::build), it never uses an existing sandbox of
    /// the same name and never creates a second one: if the sandbox is deleted, operations
    /// and [`start`](backend_core::Sandbox::start) are `Unavailable`. Dropping it changes
    /// nothing: a sandbox without a name is then deleted by [`reap`](crate::reap) once this
    /// process has ended, one with a name stays. The same holds for the sandbox of a call
    /// that is dropped before it returns.
    ///
    /// The name of a sandbox is unique in its organization, so this is a lock between
    /// processes: of several that create a sandbox of one name, one succeeds.
    ///
    /// # Errors
    ///
    /// `Config` for an invalid option; `Conflict` if there is a sandbox of that name;
    /// `Timeout`, with a [`CreateTimeout`](crate::CreateTimeout), if it does not start in
    /// time; `Unavailable`, with the reason, if it cannot be started; `Auth`,
    /// `PermissionDenied` and `RateLimited` if the service says so.
    pub async fn create(mut self) -> Result<DaytonaSandbox> {
        self.settings.exclusive = true;
        DaytonaSandbox::create(self.settings.validate()?).await
    }

    /// Returns options for attaching to a sandbox, with the account, the agents, the mode,
    /// the start timeout and the choice of [`recover`](Self::recover) of this builder.
    pub fn attach(&self, sandbox: impl Into<String>) -> Attach {
        let settings = Settings {
            account: self.settings.account.clone(),
            agents: self.settings.agents.clone(),
            mode: self.settings.mode,
            recover: self.settings.recover,
            start_timeout: self.settings.start_timeout,
            ..Settings::default()
        };
        Attach::new(sandbox.into(), settings)
    }
}

#[cfg(test)]
mod tests;
