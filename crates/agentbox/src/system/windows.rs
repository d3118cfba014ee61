//! Windows. It is compiled, and not yet run by a test.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
pub(crate) use std::os::windows::io::AsHandle as Stream;
use std::path::Path;
use std::process::Command;

use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, ctrl_break, ctrl_c, ctrl_close};

use super::Holder;
use crate::exit;

/// The numbers that the like of these events have elsewhere.
const HANGUP: i32 = 1;
const INTERRUPT: i32 = 2;
const TERMINATE: i32 = 15;

/// Hears the events that want the program to end.
#[derive(Debug)]
pub(crate) struct Stops {
    interrupt: CtrlC,
    terminate: CtrlBreak,
    /// The window is closed, and the program with it, whatever it wants.
    close: CtrlClose,
}

impl Stops {
    /// Listens from now on.
    pub(crate) fn listen(_: bool) -> io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            terminate: ctrl_break()?,
            close: ctrl_close()?,
        })
    }

    /// The exit code that the next event asks for.
    pub(crate) async fn next(&mut self) -> u8 {
        exit::signalled(tokio::select! {
            _ = self.interrupt.recv() => INTERRUPT,
            _ = self.terminate.recv() => TERMINATE,
            _ = self.close.recv() => HANGUP,
        })
    }
}

/// No program outlives its window.
pub(crate) fn ignores_hangup() -> bool {
    false
}

/// The editor of lines restores the console itself.
#[derive(Debug, Clone)]
pub(crate) struct Terminal;

impl Terminal {
    pub(crate) fn now() -> Self {
        Self
    }

    pub(crate) fn restore(&self) {}
}

/// How many columns a terminal has, if it says.
pub(crate) fn columns_of(terminal: impl Stream) -> Option<usize> {
    let (columns, _) = terminal_size::terminal_size_of(terminal)?;
    Some(usize::from(columns.0)).filter(|columns| *columns > 0)
}

/// Files have lists of rights here, which are not read: nothing passes for our own.
pub(crate) fn holder(_: &Metadata) -> Holder {
    Holder {
        is_own: false,
        is_root: false,
        mode: 0,
    }
}

/// Programs are known by their names here.
pub(crate) fn is_executable(_: &Metadata) -> bool {
    true
}

pub(crate) fn make_executable(_: &File) -> io::Result<()> {
    Ok(())
}

/// A file has the rights of its directory here.
pub(crate) fn make_private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Makes a directory and those above it.
pub(crate) fn make_directories(directory: &Path, _: u32) -> io::Result<()> {
    std::fs::create_dir_all(directory)
}

/// Whether an open file is the one at `path`.
pub(crate) fn is_same(file: &File, path: &Path) -> io::Result<bool> {
    let ours = same_file::Handle::from_file(file.try_clone()?)?;
    Ok(same_file::Handle::from_path(path).is_ok_and(|there| there == ours))
}

/// A command. What it started itself is not known here.
#[derive(Debug)]
pub(crate) struct Group;

impl Group {
    pub(crate) fn lead(_: &mut Command) {}

    pub(crate) fn of(_: &tokio::process::Child) -> Self {
        Self
    }

    pub(crate) fn ended(self) {}
}
