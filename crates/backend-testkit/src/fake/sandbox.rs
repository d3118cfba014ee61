//! A sandbox without a machine.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_core::ops::{
    Command, CommandStatus, ExecuteOutcome, ShellId, ShellInfo, ShellOutput, ShellState, Signal,
    StopMode, TerminalSize,
};
use backend_core::sync::lock;
use backend_core::{
    Backend, CommandPaths, Connection, Enforcement, Error, ErrorKind, EventStream, Result, Sandbox,
    TracedPath, VPath,
};
use bytes::Bytes;
use tokio::sync::watch;

use super::clock::PausedClock;

/// The command line that [`FakeSandbox`] runs until it is told to finish.
pub const HOLD: &str = "hold";

/// A sandbox on the files of another backend, whose life a test controls.
///
/// Commands succeed at once and print nothing; [`HOLD`] runs until
/// [`finish`](Self::finish). Times are those of a [`PausedClock`]. Clones are the same
/// sandbox.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> backend_core::Result<()> {
/// use backend_core::{BackendExt as _, Sandbox as _};
/// use backend_state::StateBackend;
/// use backend_testkit::fake::{FakeSandbox, PausedClock};
///
/// let sandbox = FakeSandbox::new("one", StateBackend::new(), PausedClock::new());
/// sandbox.write_file("a.txt", "x").await?;
/// assert!(sandbox.is_alive().await?);
/// sandbox.kill();
/// assert!(sandbox.exists("a.txt").await.is_err());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct FakeSandbox<B> {
    id: Arc<str>,
    files: B,
    clock: PausedClock,
    life: Arc<Mutex<Life>>,
    used: Arc<Mutex<Used>>,
    level: (Enforcement, Option<Cow<'static, str>>),
    held: Arc<watch::Sender<u64>>,
}

/// The use through one handle, as each process has its own.
#[derive(Debug)]
struct Used {
    running: usize,
    last: SystemTime,
}

#[derive(Debug, Default)]
struct Life {
    is_alive: bool,
    is_killed: bool,
    fails_to_stop: bool,
    starts: usize,
    start_time: Duration,
    stops: usize,
    shells: BTreeMap<ShellId, ShellInfo>,
    /// Bytes typed into terminals, which show them.
    typed: BTreeMap<ShellId, Vec<u8>>,
    /// Commands that arrived to be run.
    commands: Vec<Command>,
}

impl Used {
    fn since(clock: &PausedClock) -> Arc<Mutex<Self>> {
        let last = clock.now();
        Arc::new(Mutex::new(Self { running: 0, last }))
    }
}

/// A command under way.
struct Running<'a>(&'a Mutex<Used>, &'a PausedClock);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut used = lock(self.0);
        used.running -= 1;
        used.last = self.1.now();
    }
}

impl<B> FakeSandbox<B> {
    /// Creates a sandbox that is not started.
    pub fn new(id: impl Into<Arc<str>>, files: B, clock: PausedClock) -> Self {
        Self {
            id: id.into(),
            files,
            life: Arc::default(),
            used: Used::since(&clock),
            level: Default::default(),
            held: Arc::default(),
            clock,
        }
    }

    /// Sets the level at which it claims to keep paths from commands, and the reason why
    /// that is not higher.
    #[must_use]
    pub fn enforcing(mut self, level: Enforcement, limit: Option<&'static str>) -> Self {
        self.level = (level, limit.map(Cow::Borrowed));
        self
    }

    /// Takes the commands that arrived to be run since the last call.
    pub fn commands(&self) -> Vec<Command> {
        std::mem::take(&mut lock(&self.life).commands)
    }

    /// Returns the same sandbox as another process knows it: with times of use of its own.
    #[must_use]
    pub fn attached(&self) -> Self
    where
        B: Clone,
    {
        Self {
            used: Used::since(&self.clock),
            ..self.clone()
        }
    }

    /// Makes it die: it never starts again, and every call is `Unavailable`.
    pub fn kill(&self) {
        let mut life = lock(&self.life);
        life.is_alive = false;
        life.is_killed = true;
        life.shells.clear();
        drop(life);
        self.finish();
    }

    /// Lets all held commands finish.
    pub fn finish(&self) {
        self.held.send_modify(|round| *round += 1);
    }

    /// Sets whether it fails to stop.
    pub fn fail_to_stop(&self, fails: bool) {
        lock(&self.life).fails_to_stop = fails;
    }

    /// Sets how long a start takes.
    pub fn set_start_time(&self, start_time: Duration) {
        lock(&self.life).start_time = start_time;
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        lock(&self.life).is_alive
    }

    /// Returns how often it was started.
    pub fn starts(&self) -> usize {
        lock(&self.life).starts
    }

    /// Returns how often it was stopped.
    pub fn stops(&self) -> usize {
        lock(&self.life).stops
    }

    /// Starts it if necessary, for a call.
    fn ready(&self) -> Result<&B> {
        let mut life = lock(&self.life);
        if life.is_killed {
            return Err(Error::unavailable("the sandbox was killed"));
        }
        if !life.is_alive {
            life.is_alive = true;
            life.starts += 1;
        }
        lock(&self.used).last = self.clock.now();
        Ok(&self.files)
    }

    fn running(&self) -> Result<Running<'_>> {
        self.ready()?;
        lock(&self.used).running += 1;
        Ok(Running(&self.used, &self.clock))
    }

    /// Changes a shell, if there is one.
    fn shell<T>(&self, id: &ShellId, change: impl FnOnce(&mut ShellInfo) -> T) -> Result<T> {
        self.ready()?;
        let mut life = lock(&self.life);
        let shell = life.shells.get_mut(id);
        let missing = || Error::new(ErrorKind::NotFound, "there is no such shell");
        Ok(change(shell.ok_or_else(missing)?))
    }
}

#[deny(clippy::missing_trait_methods)]
impl<B: Backend> Backend for FakeSandbox<B> {
    fn info(&self) -> backend_core::BackendInfo {
        let mut info = self.files.info();
        info.capabilities = info.capabilities.with_commands();
        let (level, limit) = self.level.clone();
        info.containment(backend_core::Containment::Isolated)
            .enforcement(level)
            .enforcement_limit(limit)
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        Some(self)
    }

    backend_core::delegate! { |self| self.files => working_dir }

    backend_core::delegate! {
        |self| self.ready()? => resolve, stat, ls, read, read_text, write, edit, create_dir,
        delete, rename, copy, glob, grep, watch
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<B: Backend> Sandbox for FakeSandbox<B> {
    fn id(&self) -> String {
        self.id.to_string()
    }

    async fn start(&self) -> Result<()> {
        let start_time = lock(&self.life).start_time;
        if !start_time.is_zero() {
            tokio::time::sleep(start_time).await;
        }
        self.ready().map(|_| ())
    }

    async fn stop(&self, _mode: StopMode) -> Result<()> {
        let mut life = lock(&self.life);
        if life.fails_to_stop {
            return Err(Error::unavailable("the sandbox does not stop"));
        }
        life.is_alive = false;
        life.stops += 1;
        life.shells.clear();
        drop(life);
        self.finish();
        Ok(())
    }

    async fn is_alive(&self) -> Result<bool> {
        Ok(self.is_running())
    }

    fn last_activity(&self) -> SystemTime {
        let used = lock(&self.used);
        if used.running > 0 {
            self.clock.now()
        } else {
            used.last
        }
    }

    fn command_names(&self, _directory: &VPath) -> CommandPaths {
        CommandPaths::default()
    }

    async fn trace(&self, _directory: &VPath, paths: &[String]) -> Result<Vec<TracedPath>> {
        self.ready()?;
        let inside =
            |path: &String| VPath::parse(path).map_or(TracedPath::Unknown, TracedPath::Inside);
        Ok(paths.iter().map(inside).collect())
    }

    async fn execute(&self, command: Command) -> Result<ExecuteOutcome> {
        command.check_without_terminal()?;
        command.check_level(&self.info())?;
        let _running = self.running()?;
        lock(&self.life).commands.push(command.clone());
        if command.line == HOLD {
            let mut held = self.held.subscribe();
            // Cannot fail: the sender lives as long as `self`.
            let _ = held.changed().await;
        }
        if !self.is_running() {
            return Err(Error::unavailable("the sandbox ended during the command"));
        }
        Ok(ExecuteOutcome::new(CommandStatus::Exited(0)))
    }

    async fn stream(&self, command: Command) -> Result<EventStream> {
        command.check_without_terminal()?;
        command.check_level(&self.info())?;
        lock(&self.life).commands.push(command);
        Err(Error::unsupported("a fake sandbox streams nothing"))
    }

    async fn shell_start(&self, command: Command) -> Result<ShellInfo> {
        command.check()?;
        command.check_level(&self.info())?;
        self.ready()?;
        let mut life = lock(&self.life);
        life.commands.push(command.clone());
        let id = ShellId::new(format!("bg_{}", life.shells.len() + 1));
        let mut shell = ShellInfo::new(id.clone(), command.line, None);
        shell.terminal = command.terminal;
        life.shells.insert(id, shell.clone());
        Ok(shell)
    }

    async fn shell_read(&self, id: &ShellId, _wait: Duration) -> Result<ShellOutput> {
        let mut output = self.shell(id, |shell| ShellOutput::new(shell.state))?;
        let typed = lock(&self.life).typed.remove(id);
        output.stdout = typed.unwrap_or_default().into();
        Ok(output)
    }

    async fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()> {
        let shows = self.shell(id, |shell| shell.terminal.is_some())?;
        if let (true, Some(input)) = (shows, input) {
            let mut life = lock(&self.life);
            life.typed.entry(id.clone()).or_default().extend(input);
        }
        Ok(())
    }

    async fn shell_kill(&self, id: &ShellId) -> Result<bool> {
        self.shell(id, |shell| {
            let was_running = shell.state == ShellState::Running;
            shell.state = ShellState::Ended(CommandStatus::Signalled(15));
            was_running
        })
    }

    async fn shell_list(&self) -> Result<Vec<ShellInfo>> {
        self.ready()?;
        Ok(lock(&self.life).shells.values().cloned().collect())
    }

    async fn connect(&self, _port: u16) -> Result<Connection> {
        Err(Error::unsupported("a fake sandbox has no ports"))
    }

    async fn shell_attach(&self, _id: &ShellId) -> Result<Connection> {
        Err(Error::no_terminals())
    }

    async fn shell_resize(&self, _id: &ShellId, _size: TerminalSize) -> Result<()> {
        Err(Error::no_terminals())
    }

    async fn shell_signal(&self, _id: &ShellId, _signal: Signal) -> Result<()> {
        Err(Error::no_terminals())
    }
}
