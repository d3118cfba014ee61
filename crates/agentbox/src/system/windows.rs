//! Windows. Compiled, but not tested yet.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
pub(crate) use std::os::windows::io::AsHandle as Stream;
use std::path::Path;
use std::process::Command;

use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, ctrl_break, ctrl_c, ctrl_close};

use super::FileOwner;
use crate::exit;

/// The numbers of the corresponding signals on Unix.
const HANGUP: i32 = 1;
const INTERRUPT: i32 = 2;
const TERMINATE: i32 = 15;

/// Receives events that ask the program to end.
#[derive(Debug)]
pub(crate) struct StopSignals {
    interrupt: CtrlC,
    terminate: CtrlBreak,
    /// The window is closed; the system then ends the program anyway.
    close: CtrlClose,
}

impl StopSignals {
    pub(crate) fn listen(_: bool) -> io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            terminate: ctrl_break()?,
            close: ctrl_close()?,
        })
    }

    /// Returns the exit code for the next event.
    pub(crate) async fn next(&mut self) -> u8 {
        exit::signalled(tokio::select! {
            _ = self.interrupt.recv() => INTERRUPT,
            _ = self.terminate.recv() => TERMINATE,
            _ = self.close.recv() => HANGUP,
        })
    }
}

/// Returns `false`: no program outlives its window.
pub(crate) fn ignores_hangup() -> bool {
    false
}

/// There is no such limit here.
pub(crate) fn allow_open_files(_: u64) {}

/// The state of the terminal, which the line editor restores itself here.
#[derive(Debug, Clone)]
pub(crate) struct TerminalState;

impl TerminalState {
    pub(crate) fn now() -> Self {
        Self
    }

    pub(crate) fn restore(&self) {}
}

/// Restores nothing: no command changes the terminal here.
pub(crate) fn restore_terminal() {}

/// Returns the number of columns of a terminal, if it reports them.
pub(crate) fn columns_of(terminal: impl Stream) -> Option<usize> {
    let (columns, _) = terminal_size::terminal_size_of(terminal)?;
    Some(usize::from(columns.0)).filter(|columns| *columns > 0)
}

/// Returns an unknown owner: access control lists are not read.
pub(crate) fn file_owner(_: &Metadata) -> FileOwner {
    FileOwner {
        is_own: false,
        is_root: false,
        mode: 0,
    }
}

/// Returns `true`: programs are recognized by their names here.
pub(crate) fn is_executable(_: &Metadata) -> bool {
    true
}

pub(crate) fn make_executable(_: &File) -> io::Result<()> {
    Ok(())
}

/// Changes nothing: a file inherits the permissions of its directory here.
pub(crate) fn make_private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// Creates a directory and its parents.
pub(crate) fn make_directories(directory: &Path, _: u32) -> io::Result<()> {
    std::fs::create_dir_all(directory)
}

/// Returns `true` if an open file is the one at `path`.
pub(crate) fn is_same(file: &File, path: &Path) -> io::Result<bool> {
    let ours = same_file::Handle::from_file(file.try_clone()?)?;
    Ok(same_file::Handle::from_path(path).is_ok_and(|there| there == ours))
}

/// A command. The processes that it starts are not tracked here.
#[derive(Debug)]
pub(crate) struct ProcessGroup;

impl ProcessGroup {
    pub(crate) fn lead(_: &mut Command) {}

    pub(crate) fn of(_: &tokio::process::Child) -> Self {
        Self
    }

    pub(crate) fn ended(self) {}
}
