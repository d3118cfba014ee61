//! [`SyncBackend`] as a blocking implementation, so that it can be wrapped again.

use std::time::{Duration, SystemTime};

use backend_core::ops::{
    Command, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry,
    ExecuteOutcome, FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions,
    ReadOptions, RenameOptions, ResolveOptions, ShellId, ShellInfo, ShellOutput, StatOptions,
    StopMode, TextOptions, WriteOptions, WriteOutcome,
};
use backend_core::text::TextWindow;
use backend_core::{BackendInfo, CommandPaths, Edit, Error, Result, TracedPath, VPath};
use bytes::Bytes;

use super::{BlockingBackend, BlockingContent, BlockingNative, BlockingSandbox, Events};
use crate::backend::SyncBackend;
use crate::cancel::Cancel;
use crate::sandbox::SyncSandbox;

impl BlockingBackend for SyncBackend {
    fn info(&self) -> BackendInfo {
        self.info()
    }

    fn working_dir(&self) -> VPath {
        self.working_dir()
    }

    fn as_sandbox(&self) -> Option<&dyn BlockingSandbox> {
        let sandbox = self.inner().as_sandbox();
        sandbox.map(|_| self as &dyn BlockingSandbox)
    }

    fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        self.stat(path, options)
    }

    fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
        self.ls(path, options)
    }

    fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        self.read(path, options)
    }

    fn write(
        &self,
        path: &VPath,
        content: BlockingContent,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        self.write(path, content.into(), options)
    }

    fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        self.create_dir(path, options)
    }

    fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        self.delete(path, options)
    }

    fn native(&self) -> Option<&dyn BlockingNative> {
        Some(self)
    }
}

impl BlockingNative for SyncBackend {
    fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath> {
        self.resolve(path, options)
    }

    fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow> {
        self.read_text(path, options)
    }

    fn edit(&self, path: &VPath, edits: &[Edit], options: EditOptions) -> Result<EditOutcome> {
        self.edit(path, edits, options)
    }

    fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        self.rename(from, to, options)
    }

    fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        self.copy(from, to, options)
    }

    fn glob(&self, query: GlobQuery) -> Result<GlobResult> {
        self.glob(query)
    }

    fn grep(&self, query: GrepQuery) -> Result<GrepResult> {
        self.grep(query)
    }
}

fn sandbox(backend: &SyncBackend) -> Result<SyncSandbox> {
    backend
        .as_sandbox()
        .ok_or_else(|| Error::unsupported("this backend runs no commands; use one that does"))
}

impl BlockingSandbox for SyncBackend {
    fn id(&self) -> String {
        sandbox(self).map_or_else(|_| String::new(), |sandbox| sandbox.id())
    }

    fn start(&self) -> Result<()> {
        sandbox(self)?.start()
    }

    fn stop(&self, mode: StopMode) -> Result<()> {
        sandbox(self)?.stop(mode)
    }

    fn is_alive(&self) -> Result<bool> {
        sandbox(self)?.is_alive()
    }

    fn last_activity(&self) -> SystemTime {
        let known = sandbox(self);
        known.map_or(SystemTime::UNIX_EPOCH, |sandbox| sandbox.last_activity())
    }

    fn command_names(&self, directory: &VPath) -> CommandPaths {
        let known = sandbox(self);
        known.map_or_else(
            |_| CommandPaths::default(),
            |sandbox| sandbox.command_names(directory),
        )
    }

    fn trace(&self, directory: &VPath, paths: &[String]) -> Result<Vec<TracedPath>> {
        sandbox(self)?.trace(directory, paths)
    }

    fn execute(&self, command: Command, cancel: &Cancel) -> Result<ExecuteOutcome> {
        sandbox(self)?.cancelled_by(cancel).execute(command)
    }

    fn stream(&self, command: Command, cancel: &Cancel) -> Result<Events> {
        let events = sandbox(self)?.cancelled_by(cancel).stream(command)?;
        Ok(Box::new(events))
    }

    fn shell_start(&self, command: Command) -> Result<ShellInfo> {
        sandbox(self)?.shell_start(command)
    }

    fn shell_read(&self, id: &ShellId, wait: Duration, cancel: &Cancel) -> Result<ShellOutput> {
        sandbox(self)?.cancelled_by(cancel).shell_read(id, wait)
    }

    fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()> {
        sandbox(self)?.shell_write(id, input)
    }

    fn shell_kill(&self, id: &ShellId) -> Result<bool> {
        sandbox(self)?.shell_kill(id)
    }

    fn shell_list(&self) -> Result<Vec<ShellInfo>> {
        sandbox(self)?.shell_list()
    }
}
