//! Terminals: shells on a pseudoterminal.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};

use crate::processes;
use crate::root::Root;

/// The size of one message of output.
const MAX_MESSAGE_BYTES: usize = 32 * 1024;

/// The number of messages that a client may be behind. It is then disconnected.
const MAX_MESSAGES_BEHIND: usize = 256;

/// The terminals of a sandbox.
#[derive(Debug, Default)]
pub(crate) struct Terminals(Mutex<BTreeMap<String, Arc<Terminal>>>);

impl Terminals {
    /// Adds a terminal. Returns `false` if its id is taken.
    pub(crate) fn add(&self, terminal: &Arc<Terminal>) -> bool {
        let mut terminals = self.lock();
        let is_new = !terminals.contains_key(&terminal.id);
        if is_new {
            terminals.insert(terminal.id.clone(), Arc::clone(terminal));
        }
        is_new
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<Terminal>> {
        self.lock().get(id).cloned()
    }

    pub(crate) fn take(&self, id: &str) -> Option<Arc<Terminal>> {
        self.lock().remove(id)
    }

    pub(crate) fn all(&self) -> Vec<Arc<Terminal>> {
        self.lock().values().cloned().collect()
    }

    /// Forgets all terminals, whose processes have ended.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Terminal>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a terminal's shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit(pub(crate) i32);

/// A terminal, whose shell may not have been started.
#[derive(Debug)]
pub(crate) struct Terminal {
    pub(crate) id: String,
    directory: String,
    environment: BTreeMap<String, String>,
    is_lazy: bool,
    created_at: String,
    size: Mutex<(u16, u16)>,
    shell: Mutex<Option<Shell>>,
    output: broadcast::Sender<Bytes>,
    exit: watch::Sender<Option<Exit>>,
}

/// A started shell.
#[derive(Debug)]
struct Shell {
    controller: File,
    leader: u32,
}

impl Terminal {
    pub(crate) fn new(
        id: String,
        directory: String,
        environment: BTreeMap<String, String>,
        (columns, rows): (u16, u16),
        is_lazy: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            directory,
            environment,
            is_lazy,
            created_at: Timestamp::now().to_string(),
            size: Mutex::new((columns, rows)),
            shell: Mutex::default(),
            output: broadcast::Sender::new(MAX_MESSAGES_BEHIND),
            exit: watch::Sender::new(None),
        })
    }

    /// Returns it as the API shows it.
    pub(crate) fn document(&self) -> Value {
        let (columns, rows) = *self.size.lock().unwrap_or_else(PoisonError::into_inner);
        json!({
            "id": self.id, "cwd": self.directory, "envs": self.environment, "cols": columns,
            "rows": rows, "createdAt": self.created_at, "lazyStart": self.is_lazy,
            "active": self.shell().is_some() && self.exit.borrow().is_none(),
        })
    }

    /// Returns its output from now on, and its end after all output.
    pub(crate) fn watch(&self) -> (broadcast::Receiver<Bytes>, watch::Receiver<Option<Exit>>) {
        (self.output.subscribe(), self.exit.subscribe())
    }

    /// Starts its shell, unless it was started.
    pub(crate) async fn start(self: &Arc<Self>, root: &Root) -> io::Result<()> {
        if self.shell().is_some() {
            return Ok(());
        }
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&controller)?;
        unlockpt(&controller)?;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let terminal = ioctl_tiocgptpeer(&controller, flags)?;
        let controller = File::from(controller);
        let size = *self.size.lock().unwrap_or_else(PoisonError::into_inner);
        set_size(&controller, size)?;
        let words = ["setsid", "--ctty", "--wait", root.shell()];
        let mut command = root.command(&self.directory, &words).await?;
        command
            .envs(&self.environment)
            .env("TERM", "xterm-256color");
        command
            .stdin(terminal.try_clone()?)
            .stdout(terminal.try_clone()?);
        command.stderr(terminal);
        let mut reader = controller.try_clone()?;
        let mut child = {
            let mut shell = self.shell();
            if shell.is_some() {
                return Ok(());
            }
            let child = command.spawn()?;
            let leader = child.id().unwrap_or_default();
            *shell = Some(Shell { controller, leader });
            child
        };
        // It holds the terminal open, which would never end.
        drop(command);
        let this = Arc::clone(self);
        let (read_all, all_read) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let mut buffer = vec![0; MAX_MESSAGE_BYTES];
            // An error is the end: no program has the terminal open.
            while let Ok(n_read @ 1..) = reader.read(&mut buffer) {
                // Without a client, output is lost.
                let _ = this.output.send(Bytes::copy_from_slice(&buffer[..n_read]));
            }
            let _ = read_all.send(());
        });
        let exit = self.exit.clone();
        tokio::spawn(async move {
            let status = child.wait().await;
            let _ = all_read.await;
            exit.send_replace(Some(Exit(status.map_or(-1, exit_code))));
        });
        Ok(())
    }

    /// Types something. Blocks.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let controller = match self.shell().as_ref() {
            Some(shell) => shell.controller.try_clone()?,
            None => return Err(io::ErrorKind::BrokenPipe.into()),
        };
        (&controller).write_all(bytes)
    }

    /// Changes its size.
    pub(crate) fn resize(&self, size: (u16, u16)) -> io::Result<()> {
        *self.size.lock().unwrap_or_else(PoisonError::into_inner) = size;
        match self.shell().as_ref() {
            Some(shell) => set_size(&shell.controller, size),
            None => Ok(()),
        }
    }

    /// Ends its shell and all that it started.
    pub(crate) fn end(&self) {
        let leader = self.shell().as_ref().map_or(0, |shell| shell.leader);
        processes::kill_family(leader);
    }

    fn shell(&self) -> MutexGuard<'_, Option<Shell>> {
        self.shell.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn set_size(controller: &File, (columns, rows): (u16, u16)) -> io::Result<()> {
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(tcsetwinsize(controller, size)?)
}

/// Returns the exit code of a shell, as a shell reports it.
fn exit_code(status: ExitStatus) -> i32 {
    let by_signal = || 128 + status.signal().unwrap_or_default();
    status.code().unwrap_or_else(by_signal)
}
