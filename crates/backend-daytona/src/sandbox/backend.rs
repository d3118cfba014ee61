//! Forwards every operation to the [`HostedSandbox`](sandbox_shell::HostedSandbox).

use backend_core::{Backend, Sandbox, delegate};

use super::DaytonaSandbox;

#[deny(clippy::missing_trait_methods)]
impl Backend for DaytonaSandbox {
    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        Some(self)
    }

    delegate! {
        |self| self.0.hosted => info, working_dir
    }

    delegate! {
        |self| self.used() => resolve, stat, ls, read, read_text, write, edit, create_dir, delete,
        rename, copy, glob, grep, watch
    }
}

#[deny(clippy::missing_trait_methods)]
impl Sandbox for DaytonaSandbox {
    delegate! {
        |self| self.0.hosted => id, last_activity, command_names, stop, is_alive
    }

    delegate! {
        |self| self.used() => start, trace, execute, stream, shell_start, shell_read, shell_write,
        shell_kill, shell_list, connect, shell_attach, shell_resize, shell_signal
    }
}
