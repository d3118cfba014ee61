//! Forwards every operation to the [`HostedSandbox`](sandbox_shell::HostedSandbox).

use backend_core::{Backend, Sandbox, delegate};

use super::DockerSandbox;

#[deny(clippy::missing_trait_methods)]
impl Backend for DockerSandbox {
    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        Some(self)
    }

    delegate! {
        |self| self.0.hosted => info, working_dir, resolve, stat, ls, read, read_text, write, edit,
        create_dir, delete, rename, copy, glob, grep, watch
    }
}

#[deny(clippy::missing_trait_methods)]
impl Sandbox for DockerSandbox {
    delegate! {
        |self| self.0.hosted => id, last_activity, command_names, start, stop, is_alive, trace,
        execute, stream, shell_start, shell_read, shell_write, shell_kill, shell_list,
        connect, shell_attach, shell_resize, shell_signal
    }
}
