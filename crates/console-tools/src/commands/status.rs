//! Formats the status of a command.

use backend_core::ops::{CommandStatus, ShellState};

/// Formats the state of a shell for `read_output`.
pub(super) fn state(state: ShellState) -> String {
    match state {
        ShellState::Ended(CommandStatus::Exited(code)) => format!("exited (code {code})"),
        ShellState::Ended(status) => status.to_string(),
        _ => "running".into(),
    }
}

/// Formats the state of a shell for `list_shells`.
pub(super) fn short_state(state: ShellState) -> String {
    match state {
        ShellState::Ended(CommandStatus::Exited(code)) => format!("exited({code})"),
        ShellState::Ended(status) => status.to_string(),
        _ => "running".into(),
    }
}

/// Returns the exit code of a command, unless a signal or a limit ended it.
pub(super) fn exit_code(status: CommandStatus) -> Option<i32> {
    match status {
        CommandStatus::Exited(code) => Some(code),
        _ => None,
    }
}

/// Returns the signal that ended a command.
pub(super) fn signal(status: CommandStatus) -> Option<i32> {
    match status {
        CommandStatus::Signalled(signal) => Some(signal),
        _ => None,
    }
}
