//! [`Runner`]: the state that a backend's commands share, and their shutdown.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Waker};
use std::time::{Duration, SystemTime};

use backend_core::limits::KILL_GRACE;
use backend_core::ops::{Command, ExecuteOutcome, StopMode};
use backend_core::{Containment, Error, ErrorKind, EventStream, Quoted, Result};
use futures_util::StreamExt;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::Commands;
use super::client::{Settings, SupervisorClient};
use super::direct::{self, Direct};
use super::job::{Job, StartRequest, Supervised, spawn_error};
use super::locate::{self, Program};
use super::pump::{Pipes, pipes};
use super::run;
use super::shells::Shells;
use super::temp_dir::TempDir;
use crate::engine;
use crate::random::random;

/// The number of events buffered for a slow reader of a stream.
const EVENTS: usize = 16;

/// The time that a stop waits for commands to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts and ends the commands of one backend. Dropping it ends them too.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) state: Arc<State>,
    /// The working directory, opened for the first command. It stays the same
    /// directory for the backend's lifetime.
    pub(crate) working: OnceLock<Arc<OwnedFd>>,
}

/// State shared by a runner and its tasks on the engine.
#[derive(Debug)]
pub(crate) struct State {
    id: String,
    shell: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    program: Option<Program>,
    policy: Option<crate::supervisor::Policy>,
    launch: Option<crate::supervisor::limits::Launch>,
    /// The supervisor that runs commands.
    client: Mutex<Option<Arc<SupervisorClient>>>,
    /// Held while a supervisor is started, so that only one is.
    starting: tokio::sync::Mutex<()>,
    /// A counter of supervisors and commands, for their markers.
    numbers: AtomicU64,
    /// The number of stops. Each task ends its command when this changes.
    stops: watch::Sender<u64>,
    /// The number of running commands.
    busy: watch::Sender<usize>,
    /// Milliseconds since 1970.
    last_activity: AtomicU64,
    alive: AtomicBool,
    dropped: AtomicBool,
    pub(crate) shells: Shells,
    /// The time that leftover processes of a command may go on printing.
    pub(crate) linger: Duration,
    /// The directory for temporary files of confined commands.
    _temporary: Option<TempDir>,
}

impl State {
    /// Returns the home directory of commands, if their environment has one.
    pub(crate) fn home(&self) -> Option<&OsString> {
        let mut variables = self.environment.iter();
        variables.find_map(|(name, value)| (name == "HOME").then_some(value))
    }
}

impl Runner {
    /// Checks that the settings in `commands` can be enforced. `directories`
    /// are the host paths that the backend may access.
    pub(crate) fn open(
        commands: &Commands,
        directories: &[&Path],
        read_only: bool,
    ) -> Result<Self> {
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
        let mut variables = commands.environment.resolve(locate::host_variables());
        let confined = !matches!(commands.confinement, crate::Confinement::Off);
        let temporary = match confined {
            true => Some(TempDir::new()?),
            false => None,
        };
        if let Some(temporary) = &temporary {
            // An empty home breaks fewer programs than an unreadable one.
            for name in ["TMPDIR", "HOME"] {
                if !commands.environment.decides(name) {
                    variables.insert(name.into(), temporary.path().into());
                }
            }
        }
        let place = temporary
            .as_ref()
            .map_or(Path::new("/nonexistent"), TempDir::path);
        let policy = commands.confinement.policy(directories, read_only, place)?;
        let launch = commands.limits.launch()?;
        let program = locate::supervisor(&commands.supervisor)?;
        let demanding = policy.is_some() || launch.is_some();
        let state = State {
            id,
            shell: commands.shell.clone(),
            environment: variables.into_iter().collect(),
            program,
            policy,
            launch,
            client: Mutex::new(None),
            starting: tokio::sync::Mutex::new(()),
            numbers: AtomicU64::new(1),
            stops: watch::channel(0).0,
            busy: watch::channel(0).0,
            last_activity: AtomicU64::new(now()),
            alive: AtomicBool::new(false),
            dropped: AtomicBool::new(false),
            shells: Shells::default(),
            linger: commands.linger.unwrap_or(run::LINGER),
            _temporary: temporary,
        };
        let runner = Self {
            state: Arc::new(state),
            working: OnceLock::new(),
        };
        if demanding {
            runner.check_demands()?;
        }
        Ok(runner)
    }

    /// Starts the supervisor now, so that a confinement or limit that cannot be
    /// enforced fails before the first command.
    fn check_demands(&self) -> Result<()> {
        if self.state.program.is_none() {
            return Err(Error::unsupported(
                "confinement and limits need a supervisor; call `supervisor::run_if_asked` first thing in `main` or install agentbox-supervisor beside this program",
            ));
        }
        let (reply, answer) = std::sync::mpsc::sync_channel(1);
        let state = Arc::clone(&self.state);
        engine::handle()?.spawn(async move {
            let _ = reply.send(state.ready().await);
        });
        answer
            .recv()
            .unwrap_or_else(|_| Err(Error::internal("the supervisor's start panicked")))
    }

    /// Returns how reliably a command's processes are ended.
    pub(crate) fn containment(&self) -> Containment {
        match self.state.program {
            Some(_) => Containment::Supervised,
            None => Containment::BestEffort,
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.state.id
    }

    /// Records that the sandbox is in use.
    pub(crate) fn touch(&self) {
        self.state.touch();
    }

    pub(crate) fn last_activity(&self) -> SystemTime {
        if *self.state.busy.borrow() > 0 {
            return SystemTime::now();
        }
        let last = self.state.last_activity.load(Ordering::Relaxed);
        SystemTime::UNIX_EPOCH + Duration::from_millis(last)
    }

    /// Prepares for commands.
    pub(crate) async fn start(&self) -> Result<()> {
        self.touch();
        let state = Arc::clone(&self.state);
        on_engine(async move { state.ready().await }).await
    }

    /// Ends every command and the supervisor, and waits until they are gone.
    pub(crate) async fn stop(&self, mode: StopMode) -> Result<()> {
        self.touch();
        let state = Arc::clone(&self.state);
        on_engine(async move { state.stop(mode).await }).await
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.state.is_alive()
    }

    /// Runs a command to its end.
    pub(crate) async fn execute(
        &self,
        command: Command,
        directory: Arc<OwnedFd>,
    ) -> Result<ExecuteOutcome> {
        let task = self.task(command, directory);
        let (reply, answer) = oneshot::channel();
        let engine = engine::handle()?;
        let mut running = Box::pin(run::execute(task, reply));
        if self.state.program.is_some() && self.is_alive() {
            // The first step sends the command to the supervisor and never
            // blocks. Taking it here lets the supervisor work while the engine
            // wakes up.
            let _on_engine = engine.enter();
            let mut context = Context::from_waker(Waker::noop());
            if running.as_mut().poll(&mut context).is_pending() {
                engine.spawn(running);
            }
        } else {
            engine.spawn(running);
        }
        answer.await.unwrap_or_else(|_| Err(panicked()))
    }

    /// Runs a command and streams its output.
    pub(crate) async fn stream(
        &self,
        command: Command,
        directory: Arc<OwnedFd>,
    ) -> Result<EventStream> {
        let task = self.task(command, directory);
        let (started, has_started) = oneshot::channel();
        let (events, receiver) = mpsc::channel(EVENTS);
        engine::handle()?.spawn(run::stream(task, started, events));
        has_started.await.unwrap_or_else(|_| Err(panicked()))?;
        let next = |mut receiver: mpsc::Receiver<_>| async {
            receiver.recv().await.map(|event| (event, receiver))
        };
        Ok(futures_util::stream::unfold(receiver, next).boxed())
    }

    pub(crate) fn task(&self, command: Command, directory: Arc<OwnedFd>) -> Task {
        let stopped = self.state.stops.subscribe();
        Task {
            _busy: Busy::new(&self.state),
            state: Arc::clone(&self.state),
            command,
            directory: Some(directory),
            stopped,
            began: Instant::now(),
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.state.dropped.store(true, Ordering::SeqCst);
        self.state.stops.send_modify(|stops| *stops += 1);
        if let Some(client) = self.state.client().take() {
            client.close();
        }
    }
}

impl State {
    pub(crate) fn touch(&self) {
        self.last_activity.store(now(), Ordering::Relaxed);
    }

    fn is_alive(&self) -> bool {
        if self.program.is_some() {
            return self
                .client()
                .as_ref()
                .is_some_and(|client| client.is_alive());
        }
        self.alive.load(Ordering::SeqCst)
    }

    fn client(&self) -> MutexGuard<'_, Option<Arc<SupervisorClient>>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    async fn ready(&self) -> Result<()> {
        if let Some(program) = &self.program {
            self.supervisor(program).await?;
        }
        self.alive.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Returns the supervisor that runs commands, starting one if needed.
    async fn supervisor(&self, program: &Program) -> Result<Arc<SupervisorClient>> {
        let alive = || self.client().clone().filter(|client| client.is_alive());
        if let Some(client) = alive() {
            return Ok(client);
        }
        let _starting = self.starting.lock().await;
        if let Some(client) = alive() {
            return Ok(client);
        }
        let settings = Settings {
            shell: self.find_shell()?,
            environment: self.environment.clone(),
            policy: self.policy.clone(),
            launch: self.launch.clone(),
        };
        let marker = format!("{}-{}-", self.id, self.number());
        let client = SupervisorClient::start(program, &settings, marker).await?;
        *self.client() = Some(Arc::clone(&client));
        // The runner may have been dropped meanwhile, with no client to close.
        if self.dropped.load(Ordering::SeqCst) {
            client.close();
        }
        Ok(client)
    }

    fn find_shell(&self) -> Result<PathBuf> {
        let path = self.environment.iter().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, path)| path.as_os_str());
        locate::shell(self.shell.as_deref(), path.map(OsStr::new))
    }

    /// Starts a command. The clock starts before the request is sent: the
    /// command may have run for a while when the answer arrives.
    async fn launch(&self, start: StartRequest) -> Result<(Job, Instant)> {
        if let Some(program) = &self.program {
            let client = self.supervisor(program).await?;
            let began = Instant::now();
            let job = Supervised::start(client, start).await?;
            return Ok((Job::Supervised(job), began));
        }
        let marker = format!("{}-0-{}", self.id, self.number());
        let shell = self.find_shell()?;
        let began = Instant::now();
        let job = Direct::start(&shell, &self.environment, &marker, start)?;
        self.alive.store(true, Ordering::SeqCst);
        Ok((Job::Direct(job), began))
    }

    /// Returns the work that ends leftovers of commands without a supervisor,
    /// by their marker.
    fn sweep(&self) -> Option<impl FnOnce() + Send + 'static> {
        let ran = self.program.is_none() && self.alive.load(Ordering::SeqCst);
        let marker = format!("{}-0-", self.id);
        ran.then_some(move || direct::sweep(marker))
    }

    async fn stop(&self, mode: StopMode) -> Result<()> {
        self.stops.send_modify(|stops| *stops += 1);
        let mut busy = self.busy.subscribe();
        let idle = busy.wait_for(|busy| *busy == 0);
        let waited = tokio::time::timeout(KILL_GRACE + PATIENCE, idle).await;
        let waited = waited.map(drop);
        // Ends processes that finished commands left behind.
        let client = self.client().take();
        if let Some(client) = client {
            client.stop().await;
        }
        if let Some(sweep) = self.sweep() {
            let _ = tokio::task::spawn_blocking(sweep).await;
        }
        self.alive.store(false, Ordering::SeqCst);
        if mode == StopMode::Purge {
            self.shells.retain(|shell| shell.is_running());
        }
        waited.map_err(|_| {
            Error::unavailable("a process does not end even when killed; check for a broken disk")
        })
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let (Some(sweep), Ok(engine)) = (self.sweep(), engine::handle()) {
            engine.spawn_blocking(sweep);
        }
    }
}

/// A command that is about to run.
#[derive(Debug)]
pub(crate) struct Task {
    _busy: Busy,
    pub(crate) state: Arc<State>,
    pub(crate) command: Command,
    directory: Option<Arc<OwnedFd>>,
    /// Changes when the sandbox stops.
    pub(crate) stopped: watch::Receiver<u64>,
    /// The time of the start request.
    pub(crate) began: Instant,
}

impl Task {
    /// Starts the command.
    pub(crate) async fn launch(&mut self, stdin: bool, announce: bool) -> Result<(Job, Pipes)> {
        let directory = self.directory.take();
        let directory = directory.ok_or_else(|| Error::internal("a command started twice"))?;
        let (pipes, ends) =
            pipes(stdin, run::merged(&self.command)).map_err(|error| spawn_error(false, error))?;
        let start = StartRequest {
            line: std::mem::take(&mut self.command.line),
            environment: std::mem::take(&mut self.command.environment),
            directory,
            ends,
            announce,
        };
        let (job, began) = self.state.launch(start).await?;
        self.began = began;
        Ok((job, pipes))
    }
}

/// Counts a command as running while it exists.
#[derive(Debug)]
struct Busy(Arc<State>);

impl Busy {
    fn new(state: &Arc<State>) -> Self {
        state.touch();
        state.busy.send_modify(|busy| *busy += 1);
        Self(Arc::clone(state))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.touch();
        self.0
            .busy
            .send_modify(|busy| *busy = busy.saturating_sub(1));
    }
}

/// Runs `work` on the engine to its end, even if the caller goes away.
async fn on_engine(work: impl Future<Output = Result<()>> + Send + 'static) -> Result<()> {
    let task = engine::handle()?.spawn(work);
    task.await.unwrap_or_else(|_| Err(panicked()))
}

pub(crate) fn panicked() -> Error {
    Error::internal("a command's task panicked; please report this")
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let since = since.unwrap_or_default().as_millis();
    since.try_into().unwrap_or(u64::MAX)
}
