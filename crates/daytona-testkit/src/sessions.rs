//! Sessions: shells that run one command after the other.
//!
//! A shell reads its commands from its standard input and runs each in itself, so that
//! it keeps what a command sets, and ends if a command ends it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};
use tokio::process::ChildStdin;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::root::Root;
use crate::session_log::{Log, STDERR, STDOUT};
use crate::{id, processes};

/// The time that processes of a deleted session have to end themselves.
const GRACE: Duration = Duration::from_secs(5);

/// The interval between looks at processes that are ending.
const LOOK: Duration = Duration::from_millis(20);

/// The sessions of a sandbox.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<BTreeMap<String, Arc<Session>>>);

impl Sessions {
    /// Creates a session. Returns `false` if the name is taken.
    pub(crate) async fn create(&self, root: &Root, name: &str) -> io::Result<bool> {
        if self.get(name).is_some() {
            return Ok(false);
        }
        let session = Arc::new(Session::start(root).await?);
        let is_new = {
            let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = sessions.entry(name.to_owned());
            Arc::ptr_eq(kept.or_insert_with(|| Arc::clone(&session)), &session)
        };
        if !is_new {
            session.end().await;
        }
        Ok(is_new)
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Session>> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<(String, Arc<Session>)> {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let copied = sessions.iter();
        copied
            .map(|(name, it)| (name.clone(), Arc::clone(it)))
            .collect()
    }

    /// Takes a session out, to be ended.
    pub(crate) fn take(&self, name: &str) -> Option<Arc<Session>> {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.remove(name)
    }

    /// Forgets all sessions, whose processes have ended.
    pub(crate) fn clear(&self) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for session in std::mem::take(&mut *sessions).into_values() {
            session.cancelled.cancel();
        }
    }
}

/// A shell and its commands.
#[derive(Debug)]
pub(crate) struct Session {
    leader: u32,
    logs: TempDir,
    queue: mpsc::UnboundedSender<Prepared>,
    has_ended: watch::Receiver<bool>,
    commands: Mutex<Vec<Arc<SessionCommand>>>,
    /// Set when the session is deleted.
    pub(crate) cancelled: CancellationToken,
}

/// A command of a session.
#[derive(Debug)]
pub(crate) struct SessionCommand {
    pub(crate) id: String,
    pub(crate) line: String,
    pub(crate) log: Arc<Log>,
    /// Its exit code, once it has ended and all its output was read.
    pub(crate) exit_code: watch::Receiver<Option<i32>>,
    is_echoing: bool,
    input: Option<Sender>,
}

/// A command whose pipes are open, waiting for the shell.
#[derive(Debug)]
struct Prepared {
    script: String,
    pipes: PathBuf,
    log: Arc<Log>,
    stdout: Receiver,
    stderr: Receiver,
    status: Receiver,
    exit_code: watch::Sender<Option<i32>>,
}

impl Session {
    async fn start(root: &Root) -> io::Result<Self> {
        let logs = tempfile::tempdir()?;
        let mut command = root.command(&root.home(), &[root.shell()]).await?;
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut shell = command.stderr(Stdio::null()).spawn()?;
        let leader = shell.id().unwrap_or_default();
        let (queue, commands) = mpsc::unbounded_channel();
        let (ended, has_ended) = watch::channel(false);
        let cancelled = CancellationToken::new();
        if let Some(input) = shell.stdin.take() {
            let run = run_all(input, commands, has_ended.clone());
            tokio::spawn(cancelled.clone().run_until_cancelled_owned(run));
        }
        tokio::spawn(async move {
            let _ = shell.wait().await;
            ended.send_replace(true);
        });
        Ok(Self {
            leader,
            logs,
            queue,
            has_ended,
            commands: Mutex::default(),
            cancelled,
        })
    }

    /// Gives a command to the shell. With `is_async`, its input is open.
    ///
    /// Fails with a broken pipe if the shell has ended.
    pub(crate) fn execute(
        &self,
        root: &Root,
        line: String,
        is_async: bool,
        is_echoing: bool,
    ) -> io::Result<Arc<SessionCommand>> {
        if *self.has_ended.borrow() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let id = id::random();
        let log = Arc::new(Log::new(self.logs.path().join(&id))?);
        let (pipes, inside) = root.create_pipes()?;
        fs::write(pipes.join("command"), format!("{line}\n"))?;
        for name in ["stdin", "stdout", "stderr", "status"] {
            mkfifoat(CWD, pipes.join(name), Mode::RUSR | Mode::WUSR)?;
        }
        // Both ends, so that it never ends for the command.
        let sender = OpenOptions::new()
            .read_write(true)
            .open_sender(pipes.join("stdin"))?;
        let input = is_async.then_some(sender);
        let receiver = |name| OpenOptions::new().open_receiver(pipes.join(name));
        let (sender, exit_code) = watch::channel(None);
        let stdin = if is_async { "'$/stdin'" } else { "/dev/null" };
        let script = format!(
            "{{ . '$/command'; }} <{stdin} >'$/stdout' 2>'$/stderr'; echo \"$?\" >'$/status'\n"
        );
        let prepared = Prepared {
            script: script.replace("'$/", &format!("'{inside}/")),
            log: Arc::clone(&log),
            stdout: receiver("stdout")?,
            stderr: receiver("stderr")?,
            status: receiver("status")?,
            exit_code: sender,
            pipes,
        };
        let command = Arc::new(SessionCommand {
            id,
            line,
            log,
            exit_code,
            is_echoing,
            input,
        });
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        commands.push(Arc::clone(&command));
        self.queue
            .send(prepared)
            .map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(command)
    }

    pub(crate) fn commands(&self) -> Vec<Arc<SessionCommand>> {
        let commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        commands.clone()
    }

    pub(crate) fn command(&self, id: &str) -> Option<Arc<SessionCommand>> {
        self.commands().into_iter().find(|it| it.id == id)
    }

    /// Ends the shell and all that it started: first politely, then by force.
    pub(crate) async fn end(&self) {
        self.cancelled.cancel();
        let mut ids = processes::family(self.leader);
        processes::signal(&ids, Signal::TERM);
        let deadline = Instant::now() + GRACE;
        loop {
            ids.extend(processes::family(self.leader));
            ids = processes::alive(&ids);
            if ids.is_empty() {
                break;
            }
            if Instant::now() > deadline {
                processes::signal(&ids, Signal::KILL);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl SessionCommand {
    /// Sends a line to the command. Returns `false` if it has ended or takes no input.
    pub(crate) async fn send(&self, line: &str) -> io::Result<bool> {
        let Some(input) = self
            .input
            .as_ref()
            .filter(|_| self.exit_code.borrow().is_none())
        else {
            return Ok(false);
        };
        if self.is_echoing {
            self.log.echo(line)?;
        }
        let line = format!("{line}\n");
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            input.writable().await?;
            match input.try_write(rest) {
                Ok(n_written) => rest = &rest[n_written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Runs commands one after the other, until the shell has ended.
async fn run_all(
    mut shell: ChildStdin,
    mut commands: mpsc::UnboundedReceiver<Prepared>,
    mut has_ended: watch::Receiver<bool>,
) {
    while let Some(command) = commands.recv().await {
        if shell.write_all(command.script.as_bytes()).await.is_err() {
            break;
        }
        let (pipes, sender) = (command.pipes.clone(), command.exit_code.clone());
        // An ended shell never finishes this command, nor those after it.
        let Some(exit_code) = copy(command, &mut has_ended).await else {
            break;
        };
        let _ = fs::remove_dir_all(pipes);
        sender.send_replace(Some(exit_code));
    }
}

/// Copies the output of a command until all programs have closed it, and returns its exit
/// code.
async fn copy(mut command: Prepared, has_ended: &mut watch::Receiver<bool>) -> Option<i32> {
    let (stdout, stderr) = tokio::join!(
        command.log.copy(command.stdout, STDOUT),
        command.log.copy(command.stderr, STDERR),
    );
    stdout.and(stderr).ok()?;
    let mut status = String::new();
    tokio::select! {
        biased;
        read = command.status.read_to_string(&mut status) => read.ok()?,
        _ = has_ended.wait_for(|ended| *ended) => return None,
    };
    status.trim().parse().ok()
}
