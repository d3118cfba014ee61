//! [`SyncBackend`] as a blocking implementation, so that it can be wrapped again.

use std::time::{Duration, SystemTime};

use backend_core::ops::{
    Command, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry,
    ExecuteOutcome, FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions,
    ReadOptions, RenameOptions, ResolveOptions, ShellId, ShellInfo, ShellOutput, StatOptions,
    StopMode, TextOptions, WatchQuery, WriteOptions, WriteOutcome,
};
use backend_core::text::TextWindow;
use backend_core::{BackendInfo, CommandPaths, Edit, Error, Result, TracedPath, VPath};
use bytes::Bytes;

use super::{BlockingBackend, BlockingContent, BlockingNative, BlockingSandbox, Changes, Events};
use crate::backend::SyncBackend;
use crate::cancel::Cancel;
use crate::sandbox::SyncSandbox;

/// Writes, in an impl block, methods that call those of the same name of `$target`.
macro_rules! forward {
    (|$self:ident| $target:expr; $(
        $method:ident($($arg:ident: $type:ty),*) -> $output:ty;
    )+) => {$(
        fn $method(&$self, $($arg: $type),*) -> $output {
            $target.$method($($arg),*)
        }
    )+};
}

impl BlockingBackend for SyncBackend {
    forward! {
        |self| self;
        info() -> BackendInfo;
        working_dir() -> VPath;
        stat(path: &VPath, options: StatOptions) -> Result<Entry>;
        ls(path: &VPath, options: LsOptions) -> Result<Listing>;
        read(path: &VPath, options: ReadOptions) -> Result<FileBytes>;
        create_dir(path: &VPath, options: CreateDirOptions) -> Result<()>;
        delete(path: &VPath, options: DeleteOptions) -> Result<()>;
    }

    fn as_sandbox(&self) -> Option<&dyn BlockingSandbox> {
        let sandbox = self.inner().as_sandbox();
        sandbox.map(|_| self as &dyn BlockingSandbox)
    }

    fn write(
        &self,
        path: &VPath,
        content: BlockingContent,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        self.write(path, content.into(), options)
    }

    fn watch(&self, query: WatchQuery, cancel: &Cancel) -> Result<Changes> {
        let changes = self.clone().cancelled_by(cancel).watch(query)?;
        Ok(Box::new(changes))
    }

    fn native(&self) -> Option<&dyn BlockingNative> {
        Some(self)
    }
}

impl BlockingNative for SyncBackend {
    forward! {
        |self| self;
        resolve(path: &VPath, options: ResolveOptions) -> Result<VPath>;
        read_text(path: &VPath, options: TextOptions) -> Result<TextWindow>;
        edit(path: &VPath, edits: &[Edit], options: EditOptions) -> Result<EditOutcome>;
        rename(from: &VPath, to: &VPath, options: RenameOptions) -> Result<()>;
        copy(from: &VPath, to: &VPath, options: CopyOptions) -> Result<()>;
        glob(query: GlobQuery) -> Result<GlobResult>;
        grep(query: GrepQuery) -> Result<GrepResult>;
    }
}

fn sandbox(backend: &SyncBackend) -> Result<SyncSandbox> {
    backend.as_sandbox().ok_or_else(Error::no_commands)
}

impl BlockingSandbox for SyncBackend {
    forward! {
        |self| sandbox(self)?;
        start() -> Result<()>;
        stop(mode: StopMode) -> Result<()>;
        is_alive() -> Result<bool>;
        trace(directory: &VPath, paths: &[String]) -> Result<Vec<TracedPath>>;
        shell_start(command: Command) -> Result<ShellInfo>;
        shell_write(id: &ShellId, input: Option<Bytes>) -> Result<()>;
        shell_kill(id: &ShellId) -> Result<bool>;
        shell_list() -> Result<Vec<ShellInfo>>;
    }

    fn id(&self) -> String {
        sandbox(self).map_or_else(|_| String::new(), |sandbox| sandbox.id())
    }

    fn last_activity(&self) -> SystemTime {
        let known = sandbox(self);
        known.map_or(SystemTime::UNIX_EPOCH, |sandbox| sandbox.last_activity())
    }

    fn command_names(&self, directory: &VPath) -> CommandPaths {
        let known = sandbox(self);
        let names = known.map(|sandbox| sandbox.command_names(directory));
        names.unwrap_or_default()
    }

    fn execute(&self, command: Command, cancel: &Cancel) -> Result<ExecuteOutcome> {
        sandbox(self)?.cancelled_by(cancel).execute(command)
    }

    fn stream(&self, command: Command, cancel: &Cancel) -> Result<Events> {
        let events = sandbox(self)?.cancelled_by(cancel).stream(command)?;
        Ok(Box::new(events))
    }

    fn shell_read(&self, id: &ShellId, wait: Duration, cancel: &Cancel) -> Result<ShellOutput> {
        sandbox(self)?.cancelled_by(cancel).shell_read(id, wait)
    }
}
