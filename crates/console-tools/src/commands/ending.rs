//! How a command ended, in words.

use backend_core::ops::{CommandStatus, ShellState};

/// A shell's state, as `read_output` says it.
pub(super) fn state(state: ShellState) -> String {
    match state {
        ShellState::Ended(CommandStatus::Exited(code)) => format!("exited (code {code})"),
        ShellState::Ended(status) => status.to_string(),
        _ => "running".into(),
    }
}

/// A shell's state, as `list_shells` says it.
pub(super) fn short_state(state: ShellState) -> String {
    match state {
        ShellState::Ended(CommandStatus::Exited(code)) => format!("exited({code})"),
        ShellState::Ended(status) => status.to_string(),
        _ => "running".into(),
    }
}

/// The code of a command that ended by itself.
pub(super) fn exit_code(status: CommandStatus) -> Option<i32> {
    match status {
        CommandStatus::Exited(code) => Some(code),
        _ => None,
    }
}

/// The signal that ended a command.
pub(super) fn signal(status: CommandStatus) -> Option<i32> {
    match status {
        CommandStatus::Signalled(signal) => Some(signal),
        _ => None,
    }
}
