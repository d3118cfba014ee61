//! Runs one command from its start to the end of its last process, on the
//! engine.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use backend_core::limits::KILL_GRACE;
use backend_core::ops::{Command, CommandStatus, Streams, TerminalSize};
use backend_core::{Error, Result};
use backend_run::{CommandResult, Controls, Launched, RunMode, Sinks, Stdin, UseGuard};
use futures_util::FutureExt;
use futures_util::future::FusedFuture;
use tokio::sync::watch;
use tokio::time::Instant;

use super::job::Job;
use super::process::{Exited, StartRequest, spawn_error};
use super::pump::{ChildEnds, OverLimit, Pipes, pipes, pump};
use super::state::{LINGER, State};
use super::terminal::{self, Device, ShellControls};
use crate::supervisor::kill::Scope;
use crate::supervisor::process;

/// The time allowed for a killed process to disappear.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Task {
    _running: UseGuard,
    state: Arc<State>,
    command: Command,
    directory: Option<Arc<OwnedFd>>,
    /// Changes when the sandbox stops.
    stopped: watch::Receiver<u64>,
    /// The time of the start request.
    began: Instant,
}

impl Task {
    pub(crate) fn new(state: &Arc<State>, command: Command, directory: Arc<OwnedFd>) -> Self {
        Self {
            _running: state.activity.command(),
            state: Arc::clone(state),
            command,
            directory: Some(directory),
            stopped: state.stops.subscribe(),
            began: Instant::now(),
        }
    }

    /// Opens a terminal, and sets its variable.
    fn open_terminal(&mut self, size: TerminalSize) -> Result<(Device, Pipes, ChildEnds)> {
        if !self.state.is_supervised() {
            return Err(Error::unsupported(
                "terminals need a supervisor; call `supervisor::run_if_asked` first thing in `main` or install agentbox-supervisor beside this program",
            ));
        }
        let (name, value) = terminal::TERM;
        let environment = &mut self.command.environment;
        if environment.iter().all(|(set, _)| set != name) {
            environment.push((name.into(), value.into()));
        }
        terminal::open(size)
    }
}

impl backend_run::Task for Task {
    type Job = (Job, Pipes, Option<Arc<ShellControls>>);

    fn command(&self) -> &Command {
        &self.command
    }

    async fn launch(&mut self, mode: RunMode) -> Result<Launched<Self::Job>> {
        let directory = self.directory.take();
        let directory = directory.ok_or_else(|| Error::internal("a command started twice"))?;
        let (device, mut pipes, ends) = match self.command.terminal {
            Some(size) => {
                let (device, pipes, ends) = self.open_terminal(size)?;
                (Some(device), pipes, ends)
            }
            None => {
                let is_merged = self.command.streams == Streams::Merged;
                let pipes = pipes(mode == RunMode::Shell, is_merged);
                let (pipes, ends) = pipes.map_err(|error| spawn_error(false, error))?;
                (None, pipes, ends)
            }
        };
        let start = StartRequest {
            line: std::mem::take(&mut self.command.line),
            environment: std::mem::take(&mut self.command.environment),
            directory,
            ends,
            announce: mode != RunMode::Execute,
            terminal: device.is_some(),
        };
        let since = process::ticks();
        let (mut job, began) = self.state.launch(start, &self.command).await?;
        self.began = began;
        let pid = if mode == RunMode::Execute {
            None
        } else {
            Some(job.started().await?)
        };
        let controls = pid.filter(|_| mode == RunMode::Shell).map(|pid| {
            Arc::new(ShellControls {
                terminal: device,
                leader: pid.cast_signed(),
                since,
            })
        });
        let stdin = pipes.stdin.take();
        Ok(Launched {
            job: (job, pipes, controls.clone()),
            pid,
            stdin: stdin.map(|stdin| Box::pin(stdin) as Stdin),
            controls: controls.map(|controls| controls as Arc<dyn Controls>),
        })
    }

    async fn drive(
        &mut self,
        (mut job, pipes, controls): Self::Job,
        sinks: &mut Sinks,
        cancel: impl Future<Output = ()> + Send,
    ) -> Result<CommandResult> {
        let Self {
            state,
            command,
            stopped,
            began,
            ..
        } = self;
        let left = AtomicU64::new(command.hard_output_bytes);
        let (finish, finishing) = watch::channel(false);
        let pumps = async {
            let out = pump(
                Some(pipes.stdout),
                &mut sinks.stdout,
                &left,
                finishing.clone(),
            );
            let err = pump(pipes.stderr, &mut sinks.stderr, &left, finishing.clone());
            tokio::try_join!(out, err).map(|_| ())
        };
        let mut output = OutputPump {
            pumps: pin!(pumps.fuse()),
            over: false,
            finish,
        };
        let mut cancel = pin!(cancel.fuse());
        let mut deadline = pin!(tokio::time::sleep(command.timeout.unwrap_or(Duration::MAX)));
        // Output comes last: otherwise a command that never stops printing would
        // use up this task's time before the other branches are polled.
        let reason = loop {
            tokio::select! {
                biased;
                () = &mut cancel => break Reason::Cancelled,
                _ = stopped.changed() => break Reason::Stopped,
                () = &mut deadline => break Reason::TimedOut,
                exited = job.exited() => break Reason::Exited(exited?),
                pumped = &mut output.pumps => if pumped.is_err() { break Reason::OverLimit },
            }
        };
        let mut ending = CommandResult {
            status: CommandStatus::OutputLimited,
            leftovers: 0,
            duration: began.elapsed(),
            stopped: matches!(reason, Reason::Stopped),
        };
        match reason {
            Reason::Exited(exited) => {
                ending.status = exited.status;
                ending.leftovers = output
                    .settle(&mut job, exited, command, state.linger)
                    .await?;
            }
            _ => {
                if let Some(controls) = controls {
                    let hang_up = tokio::task::spawn_blocking(move || controls.hang_up());
                    let _ = output.during(hang_up).await;
                }
                let exited = output.end_tree(&mut job).await?;
                ending.duration = began.elapsed();
                ending.status = match reason {
                    Reason::TimedOut => CommandStatus::TimedOut,
                    Reason::OverLimit => CommandStatus::OutputLimited,
                    _ => exited.map_or(CommandStatus::Signalled(9), |exited| exited.status),
                };
            }
        }
        // A slow reader gets all output. A reader that has left, or a sandbox that
        // stops, ends the wait.
        tokio::select! {
            biased;
            () = &mut cancel => {}
            _ = stopped.changed(), if !ending.stopped => ending.stopped = true,
            () = output.finish(ending.stopped) => {}
        }
        if output.over
            && matches!(
                ending.status,
                CommandStatus::Exited(_) | CommandStatus::Signalled(_)
            )
        {
            ending.status = CommandStatus::OutputLimited;
        }
        Ok(ending)
    }
}

/// The reason why the first wait is over.
enum Reason {
    Exited(Exited),
    TimedOut,
    OverLimit,
    Cancelled,
    Stopped,
}

/// The output, which is pumped while waiting for other things.
struct OutputPump<'a, P> {
    pumps: Pin<&'a mut P>,
    /// Whether there was more output than allowed.
    over: bool,
    finish: watch::Sender<bool>,
}

impl<P: FusedFuture<Output = Result<(), OverLimit>>> OutputPump<'_, P> {
    /// Pumps output while waiting for `other`.
    async fn during<T>(&mut self, other: impl Future<Output = T>) -> T {
        let mut other = pin!(other);
        loop {
            tokio::select! {
                biased;
                done = &mut other => return done,
                pumped = &mut self.pumps => self.over |= pumped.is_err(),
            }
        }
    }

    /// Waits for the end of the output, until a deadline.
    async fn wait(&mut self, until: Instant) {
        if self.pumps.is_terminated() {
            return;
        }
        let pumped = tokio::time::timeout_at(until, &mut self.pumps).await;
        self.over |= matches!(pumped, Ok(Err(OverLimit)));
    }

    /// Reads the rest of the pipes and no more.
    async fn finish(&mut self, hurry: bool) {
        self.finish.send_replace(true);
        if hurry {
            self.wait(Instant::now() + KILL_GRACE).await;
        } else if !self.pumps.is_terminated() {
            self.over |= (&mut self.pumps).await.is_err();
        }
    }

    /// Handles the leftovers of a command that exited by itself: processes of
    /// its group, and pending output. Returns the number of processes.
    async fn settle(
        &mut self,
        job: &mut Job,
        exited: Exited,
        command: &Command,
        linger: Duration,
    ) -> Result<u32> {
        let mut until = Instant::now() + KILL_GRACE;
        let mut leftovers = 0;
        // The jobs of a terminal are not in the group of its shell.
        let scope = match command.terminal {
            Some(_) if !command.keep_leftovers => Scope::Tree,
            _ => Scope::Group,
        };
        if exited.group || scope == Scope::Tree {
            self.wait(Instant::now() + linger).await;
            // A longer time to print must not shorten the time to clean up.
            if linger > LINGER {
                until = Instant::now() + KILL_GRACE;
            }
            let grace = until.saturating_duration_since(Instant::now());
            let grace = (!command.keep_leftovers).then_some(grace);
            leftovers = self.during(job.end(scope, grace)).await?;
        }
        self.wait(until).await;
        Ok(leftovers)
    }

    /// Ends everything that the command started. Returns the command's own exit
    /// status.
    async fn end_tree(&mut self, job: &mut Job) -> Result<Option<Exited>> {
        self.during(job.end(Scope::Tree, Some(KILL_GRACE))).await?;
        let exited = self
            .during(tokio::time::timeout(PATIENCE, job.exited()))
            .await;
        exited.ok().transpose()
    }
}
