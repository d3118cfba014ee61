//! [`State`]: the settings of a backend's commands, the process that starts
//! them, and their shutdown.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use backend_core::limits::KILL_GRACE;
use backend_core::ops::{Command, LevelTooLow, StopMode};
use backend_core::sync::lock;
use backend_core::{Enforcement, Error, ErrorKind, Quoted, Result};
use backend_run::{Activity, Shells};
use tokio::sync::watch;
use tokio::time::Instant;

use super::client::SupervisorClient;
use super::commands::Commands;
use super::direct::{self, Direct};
use super::job::Job;
use super::locate::{self, Program};
use super::process::StartRequest;
use super::supervised::Supervised;
use super::temp_dir::TempDir;
use super::views::Views;
use crate::engine;
use crate::fs::RootedFs;
use crate::random::random;
use crate::supervisor::limits::Launch;
use crate::supervisor::protocol::Hello;
use crate::supervisor::{Confinement, Policy};

/// The time that processes left behind by a finished command may go on printing
/// before they are killed, unless [`Commands::linger`](crate::Commands::linger)
/// sets another. Enough for the last filter of a pipeline that its shell did
/// not wait for.
pub(super) const LINGER: Duration = Duration::from_millis(50);

/// The reasons for levels that a choice decides.
const UNCONFINED: &str = "commands are not confined; choose `Confinement::Landlock` with `Landlock::views`, and a supervisor";
const NOT_ASKED: &str = "views are off; switch them on with `Landlock::views(true)`";

/// The time that a stop waits for commands to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// State shared by a runner and its tasks on the engine.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) id: String,
    shell: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    /// The supervisor that starts commands. Without one, this process does.
    supervisor: Option<SupervisorSlot>,
    /// Without a supervisor: whether a command has run, or could, since the last
    /// stop.
    is_used: AtomicBool,
    /// A counter of supervisors and commands, for their markers.
    numbers: AtomicU64,
    /// The number of stops. Each task ends its command when this changes.
    pub(super) stops: watch::Sender<u64>,
    pub(crate) activity: Activity,
    pub(crate) shells: Shells,
    /// Whether commands can open sockets.
    has_network: bool,
    /// The time that leftover processes of a command may go on printing.
    pub(super) linger: Duration,
    _temporary: Option<TempDir>,
    /// The views of commands, if they are asked for, and the directory for their
    /// masks.
    views: Option<(Views, TempDir)>,
    is_confined: bool,
}

/// A supervisor, which the first command starts.
#[derive(Debug)]
struct SupervisorSlot {
    program: Program,
    policy: Option<Policy>,
    launch: Option<Launch>,
    /// The reason why there are no views, once it is known.
    limit: OnceLock<String>,
    connection: Mutex<Connection>,
    /// Held while a supervisor is started, so that only one is.
    starting: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Connection {
    client: Option<Arc<SupervisorClient>>,
    /// Whether the backend was dropped.
    closed: bool,
}

impl SupervisorSlot {
    fn running(&self) -> Option<Arc<SupervisorClient>> {
        let client = lock(&self.connection).client.clone();
        client.filter(|client| client.is_alive())
    }

    /// Stores a supervisor, or closes it if the backend was dropped meanwhile.
    fn store(&self, client: &Arc<SupervisorClient>) {
        let mut connection = lock(&self.connection);
        if connection.closed {
            client.close();
        } else {
            connection.client = Some(Arc::clone(client));
        }
    }

    fn close(&self) {
        let mut connection = lock(&self.connection);
        connection.closed = true;
        if let Some(client) = connection.client.take() {
            client.close();
        }
    }
}

impl State {
    /// Checks the settings for commands beside the files of `fs`.
    pub(super) fn open(commands: &Commands, fs: &Arc<RootedFs>, read_only: bool) -> Result<Self> {
        let directories = &fs.host_directories();
        if let Some(name) = commands.environment.broken() {
            return Err(Error::new(
                ErrorKind::Config,
                format!(
                    "{} is not a valid environment variable",
                    Quoted::new(&name.to_string_lossy())
                ),
            ));
        }
        let id = format!("local-{:016x}", random());
        let mut variables = commands.environment.resolve(std::env::vars_os());
        let is_confined = !matches!(commands.confinement, Confinement::Off);
        let temporary = is_confined.then(TempDir::new).transpose()?;
        if let Some(temporary) = &temporary {
            // An empty home breaks fewer programs than an unreadable one.
            for name in ["TMPDIR", "HOME"] {
                if !commands.environment.decides(name) {
                    variables.insert(name.into(), temporary.path.clone().into());
                }
            }
        }
        let activity = Activity::default();
        activity.touch();
        Ok(Self {
            id,
            shell: commands.shell.clone(),
            environment: variables.into_iter().collect(),
            supervisor: supervisor_slot(commands, directories, read_only, temporary.as_ref())?,
            is_used: AtomicBool::new(false),
            numbers: AtomicU64::new(1),
            stops: watch::channel(0).0,
            activity,
            shells: Shells::new(engine::handle),
            has_network: commands.confinement.has_network(),
            linger: commands.linger.unwrap_or(LINGER),
            _temporary: temporary,
            views: match commands.confinement.has_views() {
                true => Some((Views::new(fs), TempDir::new()?)),
                false => None,
            },
            is_confined,
        })
    }

    /// Returns a variable of the commands' environment.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        let mut variables = self.environment.iter();
        variables.find_map(|(key, value)| (key == name).then_some(value.as_os_str()))
    }

    pub(crate) fn is_alive(&self) -> bool {
        match &self.supervisor {
            Some(slot) => slot.running().is_some(),
            None => self.is_used.load(Ordering::SeqCst),
        }
    }

    /// Whether commands can open sockets.
    pub(crate) fn has_network(&self) -> bool {
        self.has_network
    }

    pub(super) fn is_supervised(&self) -> bool {
        self.supervisor.is_some()
    }

    /// Whether confinement or limits are asked of the supervisor.
    pub(super) fn is_demanding(&self) -> bool {
        let demands = |slot: &SupervisorSlot| slot.policy.is_some() || slot.launch.is_some();
        self.supervisor.as_ref().is_some_and(demands)
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) async fn ready(&self) -> Result<()> {
        match &self.supervisor {
            Some(slot) => self.client(slot).await.map(drop),
            None => {
                self.is_used.store(true, Ordering::SeqCst);
                Ok(())
            }
        }
    }

    /// Returns the supervisor that runs commands, starting one if needed.
    async fn client(&self, slot: &SupervisorSlot) -> Result<Arc<SupervisorClient>> {
        if let Some(client) = slot.running() {
            return Ok(client);
        }
        let _starting = slot.starting.lock().await;
        if let Some(client) = slot.running() {
            return Ok(client);
        }
        let bytes = |text: &OsString| text.as_bytes().to_vec();
        let variables = self.environment.iter();
        let shell = self.find_shell()?.into_os_string().into_vec();
        let views = self.views.as_ref().filter(|_| slot.limit.get().is_none());
        let masks = views.map(|(_, masks)| bytes(&masks.path.clone().into_os_string()));
        let hello = |views| Hello {
            host: rustix::process::getpid().as_raw_nonzero().get(),
            shell: shell.clone(),
            environment: variables
                .clone()
                .map(|(name, value)| (bytes(name), bytes(value)))
                .collect(),
            marker: format!("{}-{}-", self.id, self.number()),
            policy: slot.policy.clone(),
            launch: slot.launch.clone(),
            views,
        };
        let start = |hello| SupervisorClient::start(&slot.program, &self.environment, hello);
        let client = match start(hello(masks)).await? {
            Ok(client) => client,
            Err(limit) => {
                tracing::warn!(limit, "commands have no views");
                let _ = slot.limit.set(limit);
                let plain = start(hello(None)).await?;
                plain.map_err(|_| {
                    Error::internal("a supervisor made views that nothing asked for")
                })?
            }
        };
        slot.store(&client);
        Ok(client)
    }

    /// Returns the level at which paths are kept from commands, and the reason why it is
    /// not higher.
    pub(crate) fn enforcement(&self) -> (Enforcement, Option<String>) {
        let Some(slot) = self.supervisor.as_ref().filter(|_| self.is_confined) else {
            return (Enforcement::Words, Some(UNCONFINED.into()));
        };
        match (&self.views, slot.limit.get()) {
            (None, _) => (Enforcement::Landlock, Some(NOT_ASKED.into())),
            (Some(_), Some(limit)) => (Enforcement::Landlock, Some(limit.clone())),
            (Some(_), None) => (Enforcement::View, None),
        }
    }

    /// Returns an error for a command that must not run at the level here.
    fn check_level(&self, command: &Command) -> Result<()> {
        let (level, limit) = self.enforcement();
        let limit = limit.map(Into::into);
        Ok(LevelTooLow::check(command.view.required, level, limit)?)
    }

    /// Whether commands may run in views.
    pub(crate) fn keeps_views(&self) -> bool {
        self.views.is_some()
    }

    /// Masks again what a file operation has replaced, in views with commands. May block.
    pub(crate) fn mask_again(&self) {
        if let Some((views, _)) = &self.views {
            views.mask_again();
        }
    }

    fn find_shell(&self) -> Result<PathBuf> {
        locate::shell(self.shell.as_deref(), self.variable("PATH"))
    }

    /// Starts a command. The clock starts before the request is sent: the
    /// command may have run for a while when the answer arrives.
    pub(super) async fn launch(
        &self,
        start: StartRequest,
        command: &Command,
    ) -> Result<(Job, Instant)> {
        match &self.supervisor {
            Some(slot) => {
                let client = self.client(slot).await?;
                self.check_level(command)?;
                let views = self.views.as_ref().filter(|_| slot.limit.get().is_none());
                let view = match views.filter(|_| !command.view.is_empty()) {
                    Some((views, _)) => Some(views.enter(&client, command).await?),
                    None => None,
                };
                let began = Instant::now();
                let job = Supervised::start(client, start, view).await?;
                Ok((Job::Supervised(job), began))
            }
            None => {
                self.check_level(command)?;
                let marker = format!("{}-0-{}", self.id, self.number());
                let shell = self.find_shell()?;
                let began = Instant::now();
                let job = Direct::start(&shell, &self.environment, &marker, start)?;
                self.is_used.store(true, Ordering::SeqCst);
                Ok((Job::Direct(job), began))
            }
        }
    }

    /// Returns the work that ends leftovers of commands without a supervisor,
    /// by their marker.
    fn sweep(&self) -> Option<impl FnOnce() + Send + 'static> {
        let has_run = !self.is_supervised() && self.is_alive();
        let marker = format!("{}-0-", self.id);
        has_run.then_some(move || direct::sweep(marker))
    }

    /// Ends every command and the supervisor, and waits until they are gone.
    pub(super) async fn stop(&self, mode: StopMode) -> Result<()> {
        self.stops.send_modify(|stops| *stops += 1);
        let waited = tokio::time::timeout(KILL_GRACE + PATIENCE, self.activity.idle()).await;
        // Ends processes that finished commands left behind.
        let slot = self.supervisor.as_ref();
        let client = slot.and_then(|slot| lock(&slot.connection).client.take());
        if let Some(client) = client {
            client.stop().await;
        }
        if let Some(sweep) = self.sweep() {
            let _ = tokio::task::spawn_blocking(sweep).await;
        }
        self.is_used.store(false, Ordering::SeqCst);
        if mode == StopMode::Purge {
            self.shells.remove_ended();
        }
        waited.map_err(|_| {
            Error::unavailable("a process does not end even when killed; check for a broken disk")
        })
    }

    /// Ends every command and the supervisor for good, without waiting.
    pub(super) fn close(&self) {
        self.stops.send_modify(|stops| *stops += 1);
        if let Some(slot) = &self.supervisor {
            slot.close();
        }
    }
}

/// Returns the supervisor to start, if there is one. Confinement and limits need
/// it.
fn supervisor_slot(
    commands: &Commands,
    directories: &[&Path],
    read_only: bool,
    temporary: Option<&TempDir>,
) -> Result<Option<SupervisorSlot>> {
    let place = temporary.map_or(Path::new("/nonexistent"), |made| made.path.as_path());
    let policy = commands.confinement.policy(directories, read_only, place)?;
    let launch = commands.limits.launch()?;
    match locate::supervisor(&commands.supervisor)? {
        Some(program) => Ok(Some(SupervisorSlot {
            program,
            policy,
            launch,
            limit: OnceLock::new(),
            connection: Mutex::default(),
            starting: tokio::sync::Mutex::default(),
        })),
        None if policy.is_some() || launch.is_some() => Err(Error::unsupported(
            "confinement and limits need a supervisor; call `supervisor::run_if_asked` first thing in `main` or install agentbox-supervisor beside this program",
        )),
        None => Ok(None),
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let (Some(sweep), Ok(engine)) = (self.sweep(), engine::handle()) {
            backend_run::spawn_blocking(engine, sweep);
        }
    }
}
