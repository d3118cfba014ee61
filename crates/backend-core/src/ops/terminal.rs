//! Terminals of background shells: their size, and signals.

use crate::error::{Error, Result};

/// The size of a terminal, in characters.
///
/// ```
/// use backend_core::ops::{Command, TerminalSize};
/// let size = TerminalSize::new(24, 80);
/// assert!(Command::new("vi notes.md").terminal(size).check().is_ok());
/// assert!(TerminalSize::new(0, 80).check().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TerminalSize {
    /// Number of lines.
    pub rows: u16,
    /// Number of characters in a line.
    pub columns: u16,
}

impl TerminalSize {
    /// Creates a size.
    pub const fn new(rows: u16, columns: u16) -> Self {
        Self { rows, columns }
    }

    /// Validates the size.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if one of the two is zero.
    pub fn check(self) -> Result<()> {
        if self.rows == 0 || self.columns == 0 {
            return Err(Error::invalid_input(
                "a terminal has at least one row and one column; give both",
            ));
        }
        Ok(())
    }
}

/// 24 rows of 80 columns.
impl Default for TerminalSize {
    fn default() -> Self {
        Self::new(24, 80)
    }
}

/// A signal to a background shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Signal {
    /// `SIGINT`, as Ctrl-C.
    Interrupt,
    /// `SIGQUIT`, as Ctrl-\\.
    Quit,
    /// `SIGTERM`.
    Terminate,
    /// `SIGHUP`.
    Hangup,
    /// `SIGKILL`.
    Kill,
    /// `SIGTSTP`, as Ctrl-Z.
    Stop,
    /// `SIGCONT`.
    Continue,
    /// `SIGUSR1`.
    User1,
    /// `SIGUSR2`.
    User2,
}
