//! [`ReadOnlyTrial`]: a backend that never changes, for trial runs.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_core::ops::{
    Command, Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome,
    ExecuteOutcome, GlobQuery, GlobResult, GrepQuery, GrepResult, Links, RenameOptions, ShellId,
    ShellInfo, ShellOutput, StatOptions, StopMode, WriteOptions, WriteOutcome,
};
use backend_core::{
    Backend, CommandPaths, Edit, Error, ErrorKind, EventStream, Operation, Result, Sandbox, VPath,
    delegate,
};
use bytes::Bytes;

use crate::toolset::trial::Trial;

/// A backend that can only be read. An operation that would change it, run something or
/// search it ends the trial run instead.
///
/// A link in the path is still reported as an error, because the guard resolves it only
/// then.
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
    async fn stop_at<T>(&self, operation: Operation, path: &VPath, links: Links) -> Result<T> {
        let options = StatOptions::default().links(links);
        match self.inner.stat(path, options).await {
            Err(error) if error.kind() == ErrorKind::IsALink => {
                Err(error.as_part_of(operation, path))
            }
            _ => self.trial.stop().await,
        }
    }

    /// Ends the trial run at an operation that acts on a link itself if a path is one.
    async fn stop_at_link<T>(
        &self,
        operation: Operation,
        paths: &[&VPath],
        links: Links,
    ) -> Result<T> {
        let options = StatOptions::default().links(links);
        for path in paths {
            let Some(parent) = path.parent() else {
                continue;
            };
            if let Err(error) = self.inner.stat(&parent, options).await
                && error.kind() == ErrorKind::IsALink
            {
                return Err(error.as_part_of(operation, path));
            }
        }
        self.trial.stop().await
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

    async fn write(&self, path: &VPath, _: Content, options: WriteOptions) -> Result<WriteOutcome> {
        self.stop_at(Operation::Write, path, options.links).await
    }

    async fn edit(&self, path: &VPath, _: &[Edit], options: EditOptions) -> Result<EditOutcome> {
        self.stop_at(Operation::Edit, path, options.links).await
    }

    async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        self.stop_at(Operation::CreateDir, path, options.links)
            .await
    }

    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        self.stop_at_link(Operation::Delete, &[path], options.links)
            .await
    }

    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        self.stop_at_link(Operation::Rename, &[from, to], options.links)
            .await
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        self.stop_at_link(Operation::Copy, &[from, to], options.links)
            .await
    }

    async fn glob(&self, query: GlobQuery) -> Result<GlobResult> {
        self.stop_at(Operation::Glob, &query.path, query.links)
            .await
    }

    async fn grep(&self, query: GrepQuery) -> Result<GrepResult> {
        self.stop_at(Operation::Grep, &query.path, query.links)
            .await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Sandbox for ReadOnlyTrial {
    fn id(&self) -> String {
        let sandbox = self.inner.as_sandbox();
        sandbox.map(Sandbox::id).unwrap_or_default()
    }

    async fn start(&self) -> Result<()> {
        self.trial.stop().await
    }

    async fn stop(&self, _: StopMode) -> Result<()> {
        self.trial.stop().await
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

    async fn execute(&self, _: Command) -> Result<ExecuteOutcome> {
        self.trial.stop().await
    }

    async fn stream(&self, _: Command) -> Result<EventStream> {
        self.trial.stop().await
    }

    async fn shell_start(&self, _: Command) -> Result<ShellInfo> {
        self.trial.stop().await
    }

    async fn shell_read(&self, _: &ShellId, _: Duration) -> Result<ShellOutput> {
        // Output can be read only once, so reading it is a change.
        self.trial.stop().await
    }

    async fn shell_write(&self, _: &ShellId, _: Option<Bytes>) -> Result<()> {
        self.trial.stop().await
    }

    async fn shell_kill(&self, _: &ShellId) -> Result<bool> {
        self.trial.stop().await
    }
}
