//! [`Trial`]: the state of a trial run, and the backend it runs on.

use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::ops::{CopyOptions, Links, RenameOptions, StatOptions};
use backend_core::sync::lock;
use backend_core::{
    Backend, CommandPaths, Error, ErrorKind, Operation, Result, Sandbox, VPath, delegate,
};
use permissions::approval::{Answer, Approver, ApproverError, Question};

#[derive(Debug, Default)]
pub(super) struct Trial {
    is_over: AtomicBool,
    asked: Mutex<Vec<Question>>,
}

impl Trial {
    /// Ends the trial run before an operation that would have an effect. Never returns.
    pub(super) async fn stop<T>(&self) -> T {
        self.is_over.store(true, Ordering::Release);
        pending().await
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(super) fn take_questions(&self) -> Vec<Question> {
        std::mem::take(&mut *lock(&self.asked))
    }
}

/// Records the question and approves it, so the trial run continues.
#[async_trait]
impl Approver for Trial {
    async fn ask(&self, question: &Question) -> std::result::Result<Answer, ApproverError> {
        lock(&self.asked).push(question.clone());
        Ok(Answer::yes())
    }
}

/// A backend that can only be read. An operation that would change it, run something or
/// search it ends the trial run instead.
///
/// A link in the path is still reported as an error, because the guard, which refuses
/// links in every call, resolves it only then.
#[derive(Debug)]
pub(super) struct ReadOnlyTrial {
    inner: Arc<dyn Backend>,
    trial: Arc<Trial>,
}

impl ReadOnlyTrial {
    pub(super) fn new(inner: Arc<dyn Backend>, trial: Arc<Trial>) -> Self {
        Self { inner, trial }
    }

    /// Ends the trial run at an operation on `path`, unless a link is in the way: the
    /// guard still has to judge its target.
    async fn stop_at<T>(&self, operation: Operation, path: &VPath) -> Result<T> {
        self.check_links(operation, path, path).await?;
        self.trial.stop().await
    }

    /// Ends the trial run at an operation that acts on a link itself if a path is one.
    async fn stop_beside<T>(&self, operation: Operation, paths: &[&VPath]) -> Result<T> {
        for path in paths {
            if let Some(parent) = path.parent() {
                self.check_links(operation, path, &parent).await?;
            }
        }
        self.trial.stop().await
    }

    /// Fails if there is a link on the way to `looked_at`.
    async fn check_links(&self, by: Operation, path: &VPath, looked_at: &VPath) -> Result<()> {
        let options = StatOptions::default().links(Links::Refuse);
        match self.inner.stat(looked_at, options).await {
            Err(error) if error.kind() == ErrorKind::IsALink => Err(error.as_part_of(by, path)),
            _ => Ok(()),
        }
    }

    fn sandbox(&self) -> Result<&dyn Sandbox> {
        let sandbox = self.inner.as_sandbox();
        sandbox.ok_or_else(|| Error::unsupported("this backend runs no commands"))
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for ReadOnlyTrial {
    delegate! {
        |self| self.inner => info, working_dir, resolve, stat, ls, read, read_text
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        self.inner.as_sandbox().map(|_| self as &dyn Sandbox)
    }

    delegate! {
        |self, path, operation| self.stop_at::<&dyn Backend>(operation, path).await? =>
        write, edit, create_dir, glob, grep, watch
    }

    delegate! {
        |self, path, operation| self.stop_beside::<&dyn Backend>(operation, &[path]).await? =>
        delete
    }

    async fn rename(&self, from: &VPath, to: &VPath, _: RenameOptions) -> Result<()> {
        self.stop_beside(Operation::Rename, &[from, to]).await
    }

    async fn copy(&self, from: &VPath, to: &VPath, _: CopyOptions) -> Result<()> {
        self.stop_beside(Operation::Copy, &[from, to]).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Sandbox for ReadOnlyTrial {
    fn id(&self) -> String {
        let sandbox = self.inner.as_sandbox();
        sandbox.map(Sandbox::id).unwrap_or_default()
    }

    fn last_activity(&self) -> SystemTime {
        let sandbox = self.inner.as_sandbox();
        sandbox.map_or(SystemTime::UNIX_EPOCH, Sandbox::last_activity)
    }

    fn command_names(&self, directory: &VPath) -> CommandPaths {
        let sandbox = self.inner.as_sandbox();
        sandbox.map_or_else(CommandPaths::default, |sandbox| {
            sandbox.command_names(directory)
        })
    }

    delegate!(|self| self.sandbox()? => is_alive, trace, shell_list);

    // Output can be read only once, so reading it is a change.
    delegate! {
        |self| self.trial.stop::<&dyn Sandbox>().await =>
        start, stop, execute, stream, shell_start, shell_read, shell_write, shell_kill,
        connect, shell_attach, shell_resize, shell_signal
    }
}
