//! The background shells of a conversation. It reaches only these, and they end with
//! it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backend_core::limits::SHELLS;
use backend_core::ops::{ShellId, ShellInfo};
use backend_core::{Backend, Error, Result};
use futures_executor::block_on;

use crate::Context;

/// Number of shells of one sandbox above which those that the sandbox has forgotten are
/// forgotten here too.
const KNOWN: usize = 2 * SHELLS;

/// The background shells that a conversation started. Dropping it ends the remaining
/// ones on a separate thread, because there may be no runtime.
#[derive(Debug, Default)]
pub(crate) struct OwnShells(Mutex<Vec<Own>>);

#[derive(Debug)]
struct Own {
    sandbox: String,
    shell: ShellId,
    /// A backend that can end the shell without asking.
    backend: Arc<dyn Backend>,
}

impl Own {
    fn is(&self, sandbox: &str, shell: &ShellId) -> bool {
        self.shell == *shell && self.sandbox == sandbox
    }

    /// Ends the shell. Returns `true` if it was still running.
    async fn end(&self) -> Result<bool> {
        let Some(sandbox) = self.backend.as_sandbox() else {
            return Ok(false);
        };
        let ended = Error::none_if_missing(sandbox.shell_kill(&self.shell).await)?;
        Ok(ended.unwrap_or(false))
    }
}

impl OwnShells {
    fn lock(&self) -> MutexGuard<'_, Vec<Own>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a shell that was started in this call.
    pub(super) fn started(&self, context: &Context, sandbox: String, shell: ShellId) {
        self.lock().push(Own {
            sandbox,
            shell,
            backend: Arc::clone(&context.quiet),
        });
    }

    /// Forgets shells that the sandbox has forgotten, if there are many.
    pub(super) async fn tidy(&self, context: &Context, sandbox: &str) {
        let of_it = |own: &&Own| own.sandbox == sandbox;
        if self.lock().iter().filter(of_it).count() <= KNOWN {
            return;
        }
        let Some(shells) = context.quiet.as_sandbox() else {
            return;
        };
        if let Ok(listed) = shells.shell_list().await {
            let is_listed = |own: &Own| listed.iter().any(|shell| shell.id == own.shell);
            let keep = |own: &Own| own.sandbox != sandbox || is_listed(own);
            self.lock().retain(keep);
        }
    }

    /// Returns `true` if the conversation started this shell.
    pub(super) fn has(&self, sandbox: &str, shell: &ShellId) -> bool {
        self.lock().iter().any(|own| own.is(sandbox, shell))
    }

    /// Filters a list to the shells that the conversation started.
    pub(super) fn of(&self, sandbox: &str, mut listed: Vec<ShellInfo>) -> Vec<ShellInfo> {
        listed.retain(|shell| self.has(sandbox, &shell.id));
        listed
    }

    fn pop(&self) -> Option<Own> {
        self.lock().pop()
    }

    fn take(&self, sandbox: &str, shell: &ShellId) -> Option<Own> {
        let mut all = self.lock();
        let at = all.iter().position(|own| own.is(sandbox, shell))?;
        Some(all.remove(at))
    }

    /// Ends all shells and returns how many were still running. Shells that could not
    /// be ended stay recorded.
    pub(crate) async fn end(&self) -> Result<usize> {
        let mut ran = 0;
        let mut left = Vec::new();
        let mut failed = Ok(());
        // One by one: if the future is dropped, the remaining shells stay recorded.
        while let Some(own) = self.pop() {
            match own.end().await {
                Ok(still) => ran += usize::from(still),
                Err(error) => {
                    left.push(own);
                    failed = failed.and(Err(error));
                }
            }
        }
        self.lock().append(&mut left);
        failed.map(|()| ran)
    }
}

impl Drop for OwnShells {
    fn drop(&mut self) {
        let all = std::mem::take(&mut *self.lock());
        end_elsewhere(all);
    }
}

/// Ends shells on a separate thread.
fn end_elsewhere(shells: Vec<Own>) {
    if shells.is_empty() {
        return;
    }
    let end = move || {
        for own in shells {
            if let Err(error) = block_on(own.end()) {
                let shell = own.shell.as_str();
                tracing::warn!(target: "console_tools", shell, %error, "a shell was not ended");
            }
        }
    };
    let thread = std::thread::Builder::new().name("end-shells".to_owned());
    if let Err(error) = thread.spawn(end) {
        tracing::warn!(target: "console_tools", %error, "shells were not ended");
    }
}

/// A command that runs as a shell while its call waits. If the call is dropped or
/// fails, the shell is ended.
pub(super) struct Awaited<'c> {
    shells: &'c OwnShells,
    sandbox: String,
    shell: ShellId,
    then: Then,
}

/// The action for a shell when its call is over.
enum Then {
    End,
    Forget,
    Keep,
}

impl<'c> Awaited<'c> {
    /// Records a shell that was started in this call.
    pub(super) fn new(context: &'c Context, sandbox: String, shell: ShellId) -> Self {
        let shells = &context.conversation.shells;
        shells.started(context, sandbox.clone(), shell.clone());
        Self {
            shells,
            sandbox,
            shell,
            then: Then::End,
        }
    }

    /// Forgets the shell: it has ended, and the reply contains its whole output.
    pub(super) fn ended(mut self) {
        self.then = Then::Forget;
    }

    /// Keeps the shell running in the background.
    pub(super) fn goes_on(mut self) {
        self.then = Then::Keep;
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        let take = || self.shells.take(&self.sandbox, &self.shell);
        match self.then {
            Then::End => end_elsewhere(take().into_iter().collect()),
            Then::Forget => drop(take()),
            Then::Keep => {}
        }
    }
}
