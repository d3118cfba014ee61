//! Linux and macOS.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
pub(crate) use std::os::fd::AsFd as Stream;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, kill_process_group};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::Holder;
use crate::exit;

/// Hears the signals that want the program to end.
#[derive(Debug)]
pub(crate) struct Stops {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Stops {
    /// Listens from now on; to the end of the terminal only if that is wanted.
    pub(crate) fn listen(to_hangup: bool) -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: match to_hangup {
                true => Some(signal(SignalKind::hangup())?),
                false => None,
            },
        })
    }

    /// The exit code that the next signal asks for.
    pub(crate) async fn next(&mut self) -> u8 {
        let signal = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            Some(_) = next(&mut self.hangup) => SignalKind::hangup(),
        };
        exit::signalled(signal.as_raw_value())
    }
}

/// The next of a signal, if it is listened to.
async fn next(listener: &mut Option<Signal>) -> Option<()> {
    match listener {
        Some(listener) => listener.recv().await,
        None => std::future::pending().await,
    }
}

/// Whether this program was started so that it stays when the terminal goes, as by `nohup`.
pub(crate) fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let bit = u32::try_from(SignalKind::hangup().as_raw_value() - 1).unwrap_or_default();
    mask.unwrap_or_default()
        .checked_shr(bit)
        .unwrap_or_default()
        & 1
        == 1
}

/// How the terminal was before anybody changed it.
#[derive(Debug, Clone)]
pub(crate) struct Terminal(Option<Termios>);

impl Terminal {
    pub(crate) fn now() -> Self {
        Self(tcgetattr(io::stdin()).ok())
    }

    /// Leaves it as it was. The editor's thread may be in the middle of a line.
    pub(crate) fn restore(&self) {
        if let Some(state) = &self.0 {
            // What is no terminal any more needs nothing.
            let _ = tcsetattr(io::stdin(), OptionalActions::Drain, state);
        }
    }
}

/// How many columns a terminal has, if it says.
pub(crate) fn columns_of(terminal: impl Stream) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Who has a file.
pub(crate) fn holder(found: &Metadata) -> Holder {
    Holder {
        is_own: found.uid() == rustix::process::geteuid().as_raw(),
        is_root: found.uid() == 0,
        mode: found.mode(),
    }
}

pub(crate) fn is_executable(found: &Metadata) -> bool {
    found.mode() & 0o111 != 0
}

/// Lets everybody run a file, and nobody but its owner change it.
pub(crate) fn make_executable(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o755))
}

/// A file that is created is its owner's alone.
pub(crate) fn make_private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Makes a directory and those above it.
pub(crate) fn make_directories(directory: &Path, mode: u32) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(mode).create(directory)
}

/// Whether an open file is the one at `path`.
pub(crate) fn is_same(file: &File, path: &Path) -> io::Result<bool> {
    let (ours, there) = (file.metadata()?, std::fs::metadata(path));
    Ok(there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())))
}

/// A command and all that it starts, which are killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Group(Option<Pid>);

impl Group {
    /// Lets a command that is to be started have a group of its own.
    pub(crate) fn lead(command: &mut Command) {
        use std::os::unix::process::CommandExt as _;
        command.process_group(0);
    }

    /// The group of a command that was started.
    pub(crate) fn of(child: &tokio::process::Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }

    /// It has ended by itself.
    pub(crate) fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may have ended by itself.
            let _ = kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}
