//! Commands: each is a separate program in the machine, supervised from here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backend_core::ops::{Command, ExecuteOutcome, Links, ShellInfo, StopMode, Streams};
use backend_core::{Error, EventStream, Result, VPath};
use backend_run::{
    Activity, CommandResult, Launched, RunMode, Shells, Sinks, UseGuard, panicked, stopped,
};
use futures::FutureExt as _;
use sandbox_wire::{Machine, Process, Spawn, engine};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout};

use crate::pool::Pool;
use crate::sentinel::random_word;
use crate::worker::{Request, WorkerError};

mod drive;
mod parser;

use parser::OutputParser;

const SCRIPT: &str = include_str!("command.sh");

/// The number of checks on a terminated process before it is killed. Each takes
/// the script 30 ms.
const KILL_LOOKS: u32 = 10;

/// The timeout for the start of a command, and its minimum for commands with a
/// shorter timeout.
const START: Duration = Duration::from_secs(120);
const SHORT_START: Duration = Duration::from_secs(10);

/// The timeout for ending leftover processes.
const LEFT_BEHIND: Duration = Duration::from_secs(5);

/// Runs the commands of one sandbox.
#[derive(Debug)]
pub(crate) struct Runner<M> {
    pool: Arc<Pool<M>>,
    activity: Activity,
    /// The number of stops of the sandbox.
    stops: watch::Sender<u64>,
    commands: AtomicU64,
    pub(crate) shells: Shells,
}

/// A command that is about to run, or runs.
#[derive(Debug)]
pub(crate) struct Task<M> {
    command: Command,
    pool: Arc<Pool<M>>,
    stops: watch::Receiver<u64>,
    /// The marker of its processes.
    mark: String,
    _running: UseGuard,
}

pub(crate) struct Job {
    process: Process,
    parser: OutputParser,
    pid: u32,
    began: Instant,
}

impl<M: Machine> Runner<M> {
    pub(crate) fn new(pool: Arc<Pool<M>>, activity: Activity) -> Self {
        Self {
            pool,
            activity,
            stops: watch::channel(0).0,
            commands: AtomicU64::new(0),
            shells: Shells::new(engine::handle),
        }
    }

    /// Creates the task of a command that was checked.
    fn task(&self, command: Command) -> Task<M> {
        let number = self.commands.fetch_add(1, Ordering::Relaxed);
        Task {
            command,
            pool: Arc::clone(&self.pool),
            stops: self.stops.subscribe(),
            mark: self.pool.mark(number),
            _running: self.activity.command(),
        }
    }

    pub(crate) async fn execute(&self, command: Command) -> Result<ExecuteOutcome> {
        command.check_without_terminal()?;
        let task = self.task(command);
        let (reply, answer) = oneshot::channel();
        backend_run::spawn(engine::handle()?, backend_run::execute(task, reply));
        answer.await.unwrap_or_else(|_| Err(panicked()))
    }

    pub(crate) async fn stream(&self, command: Command) -> Result<EventStream> {
        command.check_without_terminal()?;
        let task = self.task(command);
        backend_run::stream(engine::handle()?, task).await
    }

    pub(crate) async fn shell_start(&self, command: Command) -> Result<ShellInfo> {
        command.check()?;
        if command.terminal.is_some() {
            return Err(Error::no_terminals());
        }
        self.shells.start(self.task(command)).await
    }

    /// Ends every command and the machine.
    pub(crate) async fn stop(&self, mode: StopMode) -> Result<()> {
        self.stops.send_modify(|stops| *stops += 1);
        self.shells.clear();
        let ran = self.commands.load(Ordering::Relaxed) > 0;
        if ran && matches!(self.pool.machine.is_alive().await, Ok(true)) {
            let all = self.pool.mark_prefix();
            // Processes that are not ended here are ended by the machine.
            let _ = timeout(LEFT_BEHIND, self.pool.ask(kill("", &all))).await;
        }
        self.pool.close();
        self.pool.machine.stop(mode).await
    }
}

/// Returns the request that ends processes.
fn kill(group: &str, mark: &str) -> Request {
    Request::new("kill")
        .arg(group)
        .arg(mark)
        .arg(KILL_LOOKS.to_string())
}

impl<M: Machine> backend_run::Task for Task<M> {
    type Job = Job;

    fn command(&self) -> &Command {
        &self.command
    }

    async fn launch(&mut self, mode: RunMode) -> Result<Launched<Job>> {
        let mut job = self.start(mode == RunMode::Shell).await?;
        Ok(Launched {
            pid: Some(job.pid),
            stdin: job.process.stdin.take(),
            controls: None,
            job,
        })
    }

    async fn drive(
        &mut self,
        job: Job,
        sinks: &mut Sinks,
        cancel: impl Future<Output = ()> + Send,
    ) -> Result<CommandResult> {
        drive::drive(self, job, sinks, cancel).await
    }
}

impl<M: Machine> Task<M> {
    /// Starts the command and waits until it runs, or the sandbox stops.
    ///
    /// # Errors
    ///
    /// `Unavailable` if it does not start in time.
    async fn start(&self, stdin: bool) -> Result<Job> {
        let machine = &self.pool.machine;
        machine.start().await?;
        let directory = self.command.directory.clone();
        let directory = directory.unwrap_or_else(|| machine.working_dir());
        let word = random_word();
        let mut argv: Vec<String> = ["sh", "-c", SCRIPT, "sh", &word, directory.as_str()]
            .map(str::to_owned)
            .into();
        argv.push(if self.command.keep_leftovers { "k" } else { "" }.into());
        let merged = self.command.streams == Streams::Merged;
        argv.push(if merged { "m" } else { "" }.into());
        argv.push(self.mark.clone());
        argv.push(self.command.line.clone());
        let variables = self.command.environment.iter();
        argv.extend(variables.map(|(name, value)| format!("{name}={value}")));
        let spawn = Spawn::new(argv).stdin(stdin).directory(VPath::root());
        let began = Instant::now();
        let launched = async {
            let (process, ()) = tokio::join!(machine.spawn(spawn), self.pool.ensure_worker());
            let parser = OutputParser::new(&word, self.command.hard_output_bytes);
            let mut job = Job {
                process: process?,
                parser,
                pid: 0,
                began,
            };
            match job.started(&**machine).await {
                Ok(Some(pid)) => job.pid = pid,
                Ok(None) => return Err(self.no_directory(&directory).await),
                Err(error) => return Err(self.pool.explain(error).await),
            }
            Ok(job)
        };
        let limit = self.command.timeout.unwrap_or(START);
        let mut stops = self.stops.clone();
        tokio::select! {
            launched = timeout(limit.clamp(SHORT_START, START), launched) => {
                launched.unwrap_or_else(|_| {
                    self.end_later();
                    Err(WorkerError::Silent.error())
                })
            }
            () = drive::stopping(&mut stops) => Err(stopped()),
        }
    }

    /// Ends a command that may still start, after the caller got its error.
    fn end_later(&self) {
        let (pool, mark) = (Arc::clone(&self.pool), self.mark.clone());
        let end = async move {
            // A stopped machine is not started for this.
            if matches!(pool.machine.is_alive().await, Ok(true)) {
                let _ = timeout(LEFT_BEHIND, pool.ask(kill("", &mark))).await;
            }
        };
        tokio::spawn(end.boxed());
    }

    /// Returns the reason why a command's directory cannot be used.
    async fn no_directory(&self, directory: &VPath) -> Error {
        let error = match self.pool.resolve_entry(directory, Links::Follow).await {
            Ok(resolved) => match resolved.kind {
                b'n' => Error::not_found(),
                b'd' => Error::new(
                    backend_core::ErrorKind::PermissionDenied,
                    "the command may not enter its directory; choose another",
                ),
                _ => Error::not_a_directory(),
            },
            Err(error) => error,
        };
        error.at(backend_core::Operation::Execute, directory)
    }

    /// Ends everything that the command started.
    async fn end(&self, pid: u32) {
        let group = match pid {
            0 => String::new(),
            pid => pid.to_string(),
        };
        // Processes that cannot be ended end with the machine.
        let _ = self.pool.ask(kill(&group, &self.mark)).await;
    }
}

#[cfg(test)]
mod tests {
    use backend_core::ErrorKind;

    use super::*;
    use crate::worker::tests::{Talk, Talker};

    fn runner() -> Runner<Talker> {
        let machine = Arc::new(Talker(Talk::ComplainsFirst));
        Runner::new(Arc::new(Pool::new(machine)), Activity::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_shell_that_never_answers_gets_no_longer_than_the_command() {
        let seconds = Duration::from_secs;
        for (may_take, given_up) in [
            (Some(seconds(1)), SHORT_START),
            (Some(seconds(20)), seconds(20)),
            (None, START),
        ] {
            let task = runner().task(Command::new("true").timeout(may_take));
            let began = Instant::now();
            let error = task.start(false).await.map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            let taken = began.elapsed();
            assert!(taken < given_up + seconds(1), "{may_take:?}: {taken:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_that_has_not_begun_ends_with_the_sandbox() {
        let runner = runner();
        let task = runner.task(Command::new("true"));
        let began = Instant::now();
        let stop = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            runner.stop(StopMode::Keep).await.unwrap();
            began.elapsed()
        };
        let launch = async {
            let error = task.start(false).await.map(drop).unwrap_err();
            assert!(error.message().contains("was stopped"), "{error}");
            began.elapsed()
        };
        let (stopped, told) = tokio::join!(stop, launch);
        let short = Duration::from_secs(2);
        assert!(told < short, "{told:?}");
        assert!(stopped < short + LEFT_BEHIND, "{stopped:?}");
    }
}
