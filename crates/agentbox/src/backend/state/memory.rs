//! [`MemorySandbox`]: files in memory as the sandbox of a session, without commands.

use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Backend, Error, Result, Sandbox, delegate};
use backend_state::StateBackend;

/// Files in memory as the sandbox of a session, without commands.
#[derive(Debug)]
pub(super) struct MemorySandbox {
    files: StateBackend,
    created: SystemTime,
}

impl MemorySandbox {
    pub(super) fn new(files: StateBackend) -> Self {
        Self {
            files,
            created: SystemTime::now(),
        }
    }

    fn commands(&self) -> Result<&dyn Sandbox> {
        Err(Error::unsupported("files in memory have no commands"))
    }
}

impl Backend for MemorySandbox {
    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        Some(self)
    }

    delegate! {
        |self| self.files => info, working_dir, resolve, stat, ls, read, read_text, write, edit,
        create_dir, delete, rename, copy, glob, grep, watch
    }
}

#[async_trait]
impl Sandbox for MemorySandbox {
    fn id(&self) -> String {
        "memory".to_owned()
    }

    async fn start(&self) -> Result<()> {
        Ok(())
    }

    async fn stop(&self, _: StopMode) -> Result<()> {
        Ok(())
    }

    async fn is_alive(&self) -> Result<bool> {
        Ok(true)
    }

    /// The session knows when it was used.
    fn last_activity(&self) -> SystemTime {
        self.created
    }

    delegate! {
        |self| self.commands()? => execute, stream, shell_start, shell_read, shell_write,
        shell_kill, shell_list, connect, shell_attach, shell_resize, shell_signal
    }
}
