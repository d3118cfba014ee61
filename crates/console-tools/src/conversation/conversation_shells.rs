//! The background shells of a conversation. It reaches only these, and they end with
//! it.

use std::sync::{Arc, Mutex};

use backend_core::limits::SHELLS;
use backend_core::ops::{ShellId, ShellInfo};
use backend_core::sync::lock;
use backend_core::{Backend, Error, Result};
use futures_executor::block_on;

/// Number of shells above which those that their sandbox has forgotten are dropped.
const PRUNE_ABOVE: usize = 2 * SHELLS;

/// The background shells that a conversation started. Dropping it ends the remaining
/// ones on a separate thread, because there may be no runtime.
#[derive(Debug, Default)]
pub(crate) struct ConversationShells(Mutex<Vec<StartedShell>>);

#[derive(Debug)]
struct StartedShell {
    sandbox: String,
    shell: ShellId,
    /// A backend that can end the shell without asking.
    backend: Arc<dyn Backend>,
}

impl StartedShell {
    fn matches(&self, sandbox: &str, shell: &ShellId) -> bool {
        self.shell == *shell && self.sandbox == sandbox
    }

    /// Ends the shell. Returns `true` if it was still running.
    async fn kill(&self) -> Result<bool> {
        let Some(sandbox) = self.backend.as_sandbox() else {
            return Ok(false);
        };
        let ended = Error::none_if_missing(sandbox.shell_kill(&self.shell).await)?;
        Ok(ended.unwrap_or(false))
    }
}

impl ConversationShells {
    /// Records a shell of this call. `backend` can end it without asking.
    pub(crate) fn record(&self, backend: &Arc<dyn Backend>, sandbox: String, shell: ShellId) {
        lock(&self.0).push(StartedShell {
            sandbox,
            shell,
            backend: Arc::clone(backend),
        });
    }

    /// Forgets shells that the sandbox of `backend` has forgotten, if there are many.
    pub(crate) async fn prune(&self, backend: &dyn Backend, sandbox: &str) {
        let of_sandbox = |started: &&StartedShell| started.sandbox == sandbox;
        if lock(&self.0).iter().filter(of_sandbox).count() <= PRUNE_ABOVE {
            return;
        }
        let Some(shells) = backend.as_sandbox() else {
            return;
        };
        if let Ok(listed) = shells.shell_list().await {
            let is_listed =
                |started: &StartedShell| listed.iter().any(|shell| shell.id == started.shell);
            let keep = |started: &StartedShell| started.sandbox != sandbox || is_listed(started);
            lock(&self.0).retain(keep);
        }
    }

    /// Returns `true` if the conversation started this shell.
    pub(crate) fn contains(&self, sandbox: &str, shell: &ShellId) -> bool {
        let all = lock(&self.0);
        all.iter().any(|started| started.matches(sandbox, shell))
    }

    pub(crate) fn filter(&self, sandbox: &str, mut listed: Vec<ShellInfo>) -> Vec<ShellInfo> {
        listed.retain(|shell| self.contains(sandbox, &shell.id));
        listed
    }

    fn pop(&self) -> Option<StartedShell> {
        lock(&self.0).pop()
    }

    fn take(&self, sandbox: &str, shell: &ShellId) -> Option<StartedShell> {
        let mut all = lock(&self.0);
        let is_it = |started: &StartedShell| started.matches(sandbox, shell);
        let at = all.iter().position(is_it)?;
        Some(all.remove(at))
    }

    /// Ends all shells and returns how many were still running. Shells that could not
    /// be ended stay recorded.
    pub(crate) async fn kill_all(&self) -> Result<usize> {
        let mut running = 0;
        let mut left = Vec::new();
        let mut failed = Ok(());
        // One by one: if the future is dropped, the remaining shells stay recorded.
        while let Some(started) = self.pop() {
            match started.kill().await {
                Ok(was_running) => running += usize::from(was_running),
                Err(error) => {
                    left.push(started);
                    failed = failed.and(Err(error));
                }
            }
        }
        lock(&self.0).append(&mut left);
        failed.map(|()| running)
    }
}

impl Drop for ConversationShells {
    fn drop(&mut self) {
        kill_on_thread(std::mem::take(&mut *lock(&self.0)));
    }
}

fn kill_on_thread(shells: Vec<StartedShell>) {
    if shells.is_empty() {
        return;
    }
    let end = move || {
        for started in shells {
            if let Err(error) = block_on(started.kill()) {
                let shell = started.shell.as_str();
                tracing::warn!(target: "console_tools", shell, %error, "a shell was not ended");
            }
        }
    };
    let thread = std::thread::Builder::new().name("end-shells".to_owned());
    if let Err(error) = thread.spawn(end) {
        tracing::warn!(target: "console_tools", %error, "shells were not ended");
    }
}

/// A shell whose call waits for it. If the call is dropped or fails, the shell is ended.
pub(crate) struct ForegroundShell<'c> {
    shells: &'c ConversationShells,
    sandbox: String,
    shell: ShellId,
    is_kept: bool,
}

impl<'c> ForegroundShell<'c> {
    /// Records a shell of this call. `backend` can end it without asking.
    pub(crate) fn new(
        shells: &'c ConversationShells,
        backend: &Arc<dyn Backend>,
        sandbox: String,
        shell: ShellId,
    ) -> Self {
        shells.record(backend, sandbox.clone(), shell.clone());
        Self {
            shells,
            sandbox,
            shell,
            is_kept: false,
        }
    }

    /// Forgets the shell: it has ended, and the reply contains its whole output.
    pub(crate) fn forget(self) {
        self.shells.take(&self.sandbox, &self.shell);
    }

    /// Keeps the shell running in the background.
    pub(crate) fn keep_running(mut self) {
        self.is_kept = true;
    }
}

impl Drop for ForegroundShell<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            let running = self.shells.take(&self.sandbox, &self.shell);
            kill_on_thread(running.into_iter().collect());
        }
    }
}
