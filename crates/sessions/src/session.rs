//! [`Session`]: the handle to one session, which is a sandbox itself.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_core::ops::{
    Command, Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome,
    Entry, ExecuteOutcome, FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing,
    LsOptions, ReadOptions, RenameOptions, ResolveOptions, ShellId, ShellInfo, ShellOutput, Signal,
    StatOptions, StopMode, TerminalSize, TextOptions, WatchQuery, WriteOptions, WriteOutcome,
};
use backend_core::text::TextWindow;
use backend_core::{
    Backend, BackendInfo, Capabilities, CommandPaths, Connection, Edit, ErrorKind, EventStream,
    Result, Sandbox, TracedPath, VPath, WatchStream,
};
use bytes::Bytes;
use futures_util::StreamExt as _;

use crate::error::released;
use crate::id::SessionId;
use crate::record::Record;
use crate::shared::Shared;
use crate::slot::{Begin, Call, Phase, Slot};

/// The handle to one session. Clones are the same session.
///
/// It is a [`Sandbox`]: every call counts as use while it runs, wakes the session if it
/// sleeps, and is `Unavailable` once the session has ended. A session that is opened again
/// has a new handle.
///
/// Background shells belong to the process that started them: another process does not
/// see them, and they end with their process.
#[derive(Clone)]
pub struct Session {
    slot: Arc<Slot>,
    shared: Arc<Shared>,
}

impl Session {
    pub(crate) fn new(slot: Arc<Slot>, shared: Arc<Shared>) -> Self {
        Self { slot, shared }
    }

    /// Returns the id of the session.
    pub fn session_id(&self) -> &SessionId {
        &self.slot.id
    }

    /// Returns what this process knows about the session. No I/O.
    pub fn record(&self) -> Option<Record> {
        self.slot.record()
    }

    /// Whether both are handles to the same session, not opened again in between.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.slot, &other.slot)
    }

    /// Whether the session has ended, so that every call is `Unavailable`. No I/O.
    pub fn has_ended(&self) -> bool {
        matches!(self.slot.phase(), Phase::Stuck | Phase::Ended) || self.slot.is_expired()
    }

    /// Begins a call, for which the session is woken if it sleeps.
    async fn begin(&self) -> Result<Call> {
        match self.slot.begin() {
            Begin::Ready(call) => Ok(call),
            Begin::Refused(error) => Err(error),
            Begin::Wait => {
                let wake = Arc::clone(&self.shared).wake(Arc::clone(&self.slot));
                self.shared.detached(wake).await
            }
        }
    }

    /// Ends a call. If it failed as unavailable, looks whether the sandbox died, so that
    /// the next call finds it recreated or is told.
    async fn end<T: Send>(&self, call: Call, result: Result<T>) -> Result<T> {
        drop(call);
        let is_unavailable = |error: &backend_core::Error| error.kind() == ErrorKind::Unavailable;
        if result.as_ref().is_err_and(is_unavailable) {
            let examine = Arc::clone(&self.shared).examine(Arc::clone(&self.slot));
            let examined = self.shared.detached(examine).await;
            // Otherwise the caller's own error says more.
            if let Err(error) = examined
                && is_unavailable(&error)
            {
                return Err(error);
            }
        }
        result
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Session").field(&self.slot).finish()
    }
}

/// Passes a call on to the sandbox.
macro_rules! pass {
    ($session:ident.$method:ident($($argument:expr),*)) => {{
        let call = $session.begin().await?;
        let result = call.$method($($argument),*).await;
        $session.end(call, result).await
    }};
}

#[async_trait]
impl Backend for Session {
    fn info(&self) -> BackendInfo {
        let sandbox = self.slot.sandbox();
        let unknown = || BackendInfo::new("session", Capabilities::default());
        sandbox.map_or_else(unknown, |sandbox| sandbox.info())
    }

    fn working_dir(&self) -> VPath {
        let sandbox = self.slot.sandbox();
        sandbox.map_or_else(VPath::root, |sandbox| sandbox.working_dir())
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        Some(self)
    }

    async fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath> {
        pass!(self.resolve(path, options))
    }

    async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        pass!(self.stat(path, options))
    }

    async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
        pass!(self.ls(path, options))
    }

    async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        pass!(self.read(path, options))
    }

    async fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow> {
        pass!(self.read_text(path, options))
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        pass!(self.write(path, content, options))
    }

    async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        pass!(self.edit(path, edits, options))
    }

    async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        pass!(self.create_dir(path, options))
    }

    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        pass!(self.delete(path, options))
    }

    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        pass!(self.rename(from, to, options))
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        pass!(self.copy(from, to, options))
    }

    async fn glob(&self, query: GlobQuery) -> Result<GlobResult> {
        pass!(self.glob(query))
    }

    async fn grep(&self, query: GrepQuery) -> Result<GrepResult> {
        pass!(self.grep(query))
    }

    /// The session is in use while the watch begins, and not because of it later: a
    /// watch that is never dropped must not keep a sandbox running. The stream ends with
    /// the sandbox.
    async fn watch(&self, query: WatchQuery) -> Result<WatchStream> {
        pass!(self.watch(query))
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl Sandbox for Session {
    /// The id of the session: sandboxes come and go.
    fn id(&self) -> String {
        self.slot.id.to_string()
    }

    async fn start(&self) -> Result<()> {
        pass!(self.start())
    }

    /// Stops the sandbox of the session, which stays open: the next call starts it again.
    async fn stop(&self, mode: StopMode) -> Result<()> {
        let sandbox = match self.slot.phase() {
            Phase::Asleep if mode == StopMode::Keep => return Ok(()),
            Phase::Ended | Phase::Stuck => return Err(released(&self.slot.id)),
            _ => self.slot.sandbox(),
        };
        self.slot.set_paused();
        match sandbox {
            Some(sandbox) => sandbox.stop(mode).await,
            None => Ok(()),
        }
    }

    async fn is_alive(&self) -> Result<bool> {
        match self.slot.phase() {
            Phase::Ended | Phase::Stuck => Err(released(&self.slot.id)),
            Phase::New | Phase::Asleep | Phase::Closing | Phase::Dead => Ok(false),
            Phase::Running => match self.slot.sandbox() {
                Some(sandbox) => sandbox.is_alive().await,
                None => Ok(false),
            },
        }
    }

    fn last_activity(&self) -> SystemTime {
        self.slot.last_used()
    }

    fn command_names(&self, directory: &VPath) -> CommandPaths {
        let sandbox = self.slot.sandbox();
        sandbox.map_or_else(CommandPaths::default, |sandbox| {
            sandbox.command_names(directory)
        })
    }

    async fn trace(&self, directory: &VPath, paths: &[String]) -> Result<Vec<TracedPath>> {
        pass!(self.trace(directory, paths))
    }

    async fn execute(&self, command: Command) -> Result<ExecuteOutcome> {
        pass!(self.execute(self.slot.with_env(command)))
    }

    async fn stream(&self, command: Command) -> Result<EventStream> {
        let call = self.begin().await?;
        let started = call.stream(self.slot.with_env(command)).await;
        match started {
            Ok(events) => {
                // The session is in use for as long as the stream is.
                let events = events.map(move |event| {
                    let _in_use = &call;
                    event
                });
                Ok(events.boxed())
            }
            Err(error) => self.end(call, Err(error)).await,
        }
    }

    async fn shell_start(&self, command: Command) -> Result<ShellInfo> {
        let call = self.begin().await?;
        let result = call.shell_start(self.slot.with_env(command)).await;
        if result.is_ok() {
            self.slot.note_shell();
        }
        self.end(call, result).await
    }

    async fn shell_read(&self, id: &ShellId, wait: Duration) -> Result<ShellOutput> {
        pass!(self.shell_read(id, wait))
    }

    async fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()> {
        pass!(self.shell_write(id, input))
    }

    async fn shell_kill(&self, id: &ShellId) -> Result<bool> {
        pass!(self.shell_kill(id))
    }

    async fn shell_list(&self) -> Result<Vec<ShellInfo>> {
        pass!(self.shell_list())
    }

    /// The session is in use for as long as the connection is open.
    async fn connect(&self, port: u16) -> Result<Connection> {
        let call = self.begin().await?;
        match call.connect(port).await {
            Ok(connection) => Ok(connection.holding(call)),
            Err(error) => self.end(call, Err(error)).await,
        }
    }

    /// The session is in use for as long as the connection is attached.
    async fn shell_attach(&self, id: &ShellId) -> Result<Connection> {
        let call = self.begin().await?;
        match call.shell_attach(id).await {
            Ok(connection) => Ok(connection.holding(call)),
            Err(error) => self.end(call, Err(error)).await,
        }
    }

    async fn shell_resize(&self, id: &ShellId, size: TerminalSize) -> Result<()> {
        pass!(self.shell_resize(id, size))
    }

    async fn shell_signal(&self, id: &ShellId, signal: Signal) -> Result<()> {
        pass!(self.shell_signal(id, signal))
    }
}
