//! Linux and macOS.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
pub(crate) use std::os::fd::AsFd as Stream;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use backend_core::ops::TerminalSize;
use backend_core::sync::lock;
use futures::future::OptionFuture;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, kill_process_group, setrlimit};
use rustix::termios::{OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::FileOwner;
use crate::exit;

/// Receives signals that ask the program to end.
#[derive(Debug)]
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl StopSignals {
    /// Starts to listen. SIGHUP is included only if `to_hangup` is set.
    pub(crate) fn listen(to_hangup: bool) -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: to_hangup
                .then(|| signal(SignalKind::hangup()))
                .transpose()?,
        })
    }

    /// Returns the exit code for the next signal.
    pub(crate) async fn next(&mut self) -> u8 {
        let hangup = OptionFuture::from(self.hangup.as_mut().map(|hangup| hangup.recv()));
        let signal = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            Some(Some(())) = hangup => SignalKind::hangup(),
        };
        exit::signalled(signal.as_raw_value())
    }
}

/// Returns `true` if this program was started to survive the terminal, as with `nohup`.
pub(crate) fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // The first bit stands for the first signal.
    let hangup = 1_u64 << (SignalKind::hangup().as_raw_value() - 1);
    mask.is_some_and(|mask| mask & hangup != 0)
}

/// Lets this process have so many files open, or as many as the system allows.
pub(crate) fn allow_open_files(count: u64) {
    let limit = getrlimit(Resource::Nofile);
    let count = limit.maximum.map_or(count, |most| most.min(count));
    if limit.current.is_some_and(|current| current < count) {
        let limit = Rlimit {
            current: Some(count),
            ..limit
        };
        // Without it, fewer connections can be open, which is told then.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// The original state of the terminal.
#[derive(Debug, Clone)]
pub(crate) struct TerminalState(Option<Termios>);

impl TerminalState {
    pub(crate) fn now() -> Self {
        Self(tcgetattr(io::stdin()).ok())
    }

    /// Restores the original state. The editor's thread may be in the middle of a line.
    pub(crate) fn restore(&self) {
        if let Some(state) = &self.0 {
            // Fails if it is not a terminal any more, which needs no restoring.
            let _ = tcsetattr(io::stdin(), OptionalActions::Drain, state);
        }
    }
}

/// The state before the terminal was made raw, while it is.
static ORIGINAL: Mutex<Option<Termios>> = Mutex::new(None);

/// A terminal that passes on every key as it is typed. Dropping it restores the state
/// before.
#[derive(Debug)]
pub(crate) struct RawTerminal(());

impl RawTerminal {
    pub(crate) fn enter() -> io::Result<Self> {
        let original = tcgetattr(io::stdin())?;
        let mut raw = original.clone();
        raw.make_raw();
        // Stored first: a signal may end the program at any time.
        *lock(&ORIGINAL) = Some(original);
        let entered = Self(());
        tcsetattr(io::stdin(), OptionalActions::Drain, &raw)?;
        Ok(entered)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// Restores the state before the terminal was made raw, if it is. Input that was not read
/// is dropped: output of the sandbox may have made the terminal answer, and the answer
/// must not be taken for a command by the shell that this program was started from.
pub(crate) fn restore_terminal() {
    if let Some(original) = lock(&ORIGINAL).take() {
        // Fails if it is not a terminal any more, which needs no restoring. A terminal that
        // shows nothing more must not delay it, so output is not waited for.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &original);
        let out = io::stdout();
        let mut writable = [PollFd::new(&out, PollFlags::OUT)];
        let at_once = Timespec::default();
        if matches!(poll(&mut writable, Some(&at_once)), Ok(1..)) {
            let _ = rustix::io::write(&out, RESET.as_bytes());
        }
    }
}

/// Undoes what a program that was left may have done to the screen: the alternate screen,
/// reports of the mouse and of pasted text, and with a soft reset a hidden cursor, other
/// keys, characters and colours.
const RESET: &str = "\x1b[?1047l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[!p";

/// Reads up to `max` bytes from a terminal, unless the other end of `withdrawn` is closed
/// first: then `None`. No bytes mean that the terminal is gone.
pub(crate) fn read_unless(
    withdrawn: &io::PipeReader,
    terminal: impl Stream,
    max: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut both = [
        PollFd::new(withdrawn, PollFlags::empty()),
        PollFd::new(&terminal, PollFlags::IN),
    ];
    loop {
        match poll(&mut both, None) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => drop(polled?),
        }
        let [is_withdrawn, is_typed] = both.each_ref().map(|one| !one.revents().is_empty());
        if is_withdrawn {
            return Ok(None);
        }
        if is_typed {
            let mut bytes = vec![0; max];
            let count = rustix::io::read(&terminal, &mut bytes)?;
            bytes.truncate(count);
            return Ok(Some(bytes));
        }
    }
}

/// Returns the size of the terminal, or the usual one if it does not report any.
pub(crate) fn terminal_size() -> TerminalSize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    let size = size.map(|size| TerminalSize::new(size.ws_row, size.ws_col));
    let size = size.ok().filter(|size| size.check().is_ok());
    size.unwrap_or_default()
}

/// Returns the number of columns of a terminal, if it reports them.
pub(crate) fn columns_of(terminal: impl Stream) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

pub(crate) fn file_owner(found: &Metadata) -> FileOwner {
    FileOwner {
        is_own: found.uid() == rustix::process::geteuid().as_raw(),
        is_root: found.uid() == 0,
        mode: found.mode(),
    }
}

pub(crate) fn is_executable(found: &Metadata) -> bool {
    found.mode() & 0o111 != 0
}

/// Lets all users execute a file, but only its owner change it.
pub(crate) fn make_executable(file: &File) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(0o755))
}

/// Makes created files accessible to their owner only.
pub(crate) fn make_private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Creates a directory and its parents.
pub(crate) fn make_directories(directory: &Path, mode: u32) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(mode).create(directory)
}

/// Returns `true` if an open file is the one at `path`.
pub(crate) fn is_same(file: &File, path: &Path) -> io::Result<bool> {
    let (ours, there) = (file.metadata()?, std::fs::metadata(path));
    Ok(there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())))
}

/// The process group of a command. It is killed on drop.
#[derive(Debug)]
pub(crate) struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// Puts a command that is not started yet into a new process group.
    pub(crate) fn lead(command: &mut Command) {
        use std::os::unix::process::CommandExt as _;
        command.process_group(0);
    }

    pub(crate) fn of(child: &tokio::process::Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.cast_signed())))
    }

    /// Marks the command as ended, so that nothing is killed.
    pub(crate) fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may have ended already.
            let _ = kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}
