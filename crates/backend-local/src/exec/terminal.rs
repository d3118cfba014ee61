//! Terminals: a device of which a command gets one end, and the controls of a shell.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use backend_core::ops::{Signal, TerminalSize};
use backend_core::{Error, ErrorKind, Result};
use backend_run::Controls;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::pty::OpenptFlags;
use rustix::termios::{InputModes, OptionalActions, SpecialCodeIndex, Winsize};
use tokio::net::unix::pipe;

use super::pump::{ChildEnds, Pipes};
use crate::supervisor::process;

/// The value of `TERM` unless the command sets another.
pub(crate) const TERM: (&str, &str) = ("TERM", "xterm-256color");

/// The host's end of a terminal.
#[derive(Debug)]
pub(crate) struct Device(OwnedFd);

/// Opens a terminal, with the host's ends of its streams and the command's. Must run on
/// the engine.
pub(crate) fn open(size: TerminalSize) -> Result<(Device, Pipes, ChildEnds)> {
    open_device(size).map_err(|error| {
        let answer = match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::AGAIN | Errno::NOSPC) => Error::too_large(
                "the system has no terminal left; end some shells or raise `kernel.pty.max`",
            ),
            Some(Errno::MFILE | Errno::NFILE) => Error::unavailable(
                "too many files are open for another terminal; end some shells and try again",
            ),
            _ => Error::unsupported(
                "the system gives no terminal; mount `devpts` on /dev/pts, or start the shell without one",
            ),
        };
        answer.with_source(error)
    })
}

fn open_device(size: TerminalSize) -> io::Result<(Device, Pipes, ChildEnds)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let device = rustix::pty::openpt(flags)?;
    rustix::pty::unlockpt(&device)?;
    let end = open_end(&device, flags)?;
    let mut modes = rustix::termios::tcgetattr(&end)?;
    // Without it, the key that erases a character erases one byte of it.
    modes.input_modes |= InputModes::IUTF8;
    rustix::termios::tcsetattr(&end, OptionalActions::Now, &modes)?;
    let device = Device(device);
    device.set_size(size)?;
    // Both halves and the controls share the device's flags.
    let flags = rustix::fs::fcntl_getfl(&device.0)?;
    rustix::fs::fcntl_setfl(&device.0, flags | OFlags::NONBLOCK)?;
    let pipes = Pipes {
        stdin: Some(pipe::Sender::from_owned_fd_unchecked(
            device.0.try_clone()?,
        )?),
        stdout: pipe::Receiver::from_owned_fd_unchecked(device.0.try_clone()?)?,
        stderr: None,
    };
    let ends = ChildEnds {
        stdin: Some(end.try_clone()?),
        stdout: end,
        stderr: None,
    };
    Ok((device, pipes, ends))
}

/// Opens the command's end.
fn open_end(device: &OwnedFd, flags: OpenptFlags) -> io::Result<OwnedFd> {
    match rustix::pty::ioctl_tiocgptpeer(device, flags) {
        // A kernel that knows terminals only by name.
        Err(Errno::INVAL | Errno::NOTTY | Errno::NOSYS) => {
            let name = rustix::pty::ptsname(device, Vec::new())?;
            let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
            Ok(rustix::fs::open(&*name, flags, Mode::empty())?)
        }
        end => Ok(end?),
    }
}

impl Device {
    fn set_size(&self, size: TerminalSize) -> rustix::io::Result<()> {
        let size = Winsize {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&self.0, size)
    }

    /// Returns the process group in the foreground.
    fn foreground(&self) -> Option<i32> {
        let group = rustix::termios::tcgetpgrp(self.0.as_fd()).ok()?;
        Some(group.as_raw_nonzero().get())
    }
}

/// The controls of a running shell.
#[derive(Debug)]
pub(crate) struct ShellControls {
    pub(crate) terminal: Option<Device>,
    /// Its first process, which leads its group and, in a terminal, its session.
    pub(crate) leader: i32,
    /// The time before its start, in [`process::ticks`].
    pub(crate) since: u64,
}

impl ShellControls {
    /// Tells the processes of a terminal that it is gone: an interactive shell ends then,
    /// but not when it is terminated.
    pub(crate) fn hang_up(&self) {
        if self.terminal.is_some() {
            let _ = self.signal(Signal::Hangup);
            let _ = self.send(self.leader, rustix::process::Signal::HUP);
        }
    }

    /// Sends a signal to a process group of this shell.
    fn send(&self, group: i32, signal: rustix::process::Signal) -> Result<()> {
        let ended = || Error::new(ErrorKind::Conflict, "it has ended; start another shell");
        let (all, _) = process::all().map_err(|error| {
            Error::unavailable("it needs /proc to send signals").with_source(error)
        })?;
        // A number may have been given to other processes since.
        let is_own = |process: &process::Process| {
            process.alive
                && process.group == group
                && process.start >= self.since
                && (group == self.leader || process.session == self.leader)
        };
        if !all.iter().any(is_own) {
            return Err(ended());
        }
        let group = Pid::from_raw(group).ok_or_else(ended)?;
        match rustix::process::kill_process_group(group, signal) {
            Ok(()) => Ok(()),
            Err(Errno::SRCH) => Err(ended()),
            Err(error) => Err(Error::not_permitted().with_source(io::Error::from(error))),
        }
    }
}

impl Controls for ShellControls {
    fn resize(&self, size: TerminalSize) -> Result<()> {
        let conflict = |text| Error::new(ErrorKind::Conflict, text);
        let terminal = self.terminal.as_ref();
        let terminal =
            terminal.ok_or_else(|| conflict("it has no terminal; start one that has"))?;
        terminal.set_size(size).map_err(|error| {
            conflict("its terminal is gone; start another shell")
                .with_source(io::Error::from(error))
        })
    }

    fn end_of_file(&self) -> Option<u8> {
        let modes = rustix::termios::tcgetattr(&self.terminal.as_ref()?.0).ok()?;
        Some(modes.special_codes[SpecialCodeIndex::VEOF])
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        use rustix::process::Signal as S;
        let signal = match signal {
            Signal::Interrupt => S::INT,
            Signal::Quit => S::QUIT,
            Signal::Terminate => S::TERM,
            Signal::Hangup => S::HUP,
            Signal::Kill => S::KILL,
            Signal::Stop => S::TSTP,
            Signal::Continue => S::CONT,
            Signal::User1 => S::USR1,
            Signal::User2 => S::USR2,
            _ => {
                return Err(Error::unsupported(
                    "this signal cannot be sent; choose another",
                ));
            }
        };
        let foreground = self.terminal.as_ref().and_then(Device::foreground);
        let foreground = foreground.filter(|group| *group != self.leader);
        // The last program may have ended before its shell is in the foreground again.
        match foreground.map(|group| self.send(group, signal)) {
            Some(Ok(())) => Ok(()),
            _ => self.send(self.leader, signal),
        }
    }
}
