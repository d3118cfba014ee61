//! A backend whose operations never finish, and that reports when an operation
//! began and when it was dropped.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_core::ops::{
    Command, Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome,
    Entry, Event, ExecuteOutcome, FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing,
    LsOptions, ReadOptions, RenameOptions, ResolveOptions, ShellId, ShellInfo, ShellOutput,
    StatOptions, StopMode, TextOptions, WriteOptions, WriteOutcome,
};
use backend_core::text::TextWindow;
use backend_core::{
    Backend, BackendInfo, Capabilities, Containment, Edit, EventStream, Result, Sandbox, VPath,
};
use bytes::Bytes;
use futures::StreamExt as _;
use tokio::sync::mpsc;

/// An event of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    Began(&'static str),
    Dropped(&'static str),
}

#[derive(Debug)]
pub(crate) struct Hanging(mpsc::UnboundedSender<Seen>);

struct Guard(mpsc::UnboundedSender<Seen>, &'static str);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send(Seen::Dropped(self.1));
    }
}

impl Hanging {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Seen>) {
        let (sender, seen) = mpsc::unbounded_channel();
        (Self(sender), seen)
    }

    fn guard(&self, name: &'static str) -> Guard {
        self.0.send(Seen::Began(name)).unwrap();
        Guard(self.0.clone(), name)
    }

    async fn hang<T>(&self, name: &'static str) -> Result<T> {
        let _guard = self.guard(name);
        std::future::pending().await
    }
}

#[async_trait]
impl Backend for Hanging {
    fn info(&self) -> BackendInfo {
        let capabilities = Capabilities::writable().with_commands();
        BackendInfo::new("hanging", capabilities).containment(Containment::BestEffort)
    }

    fn working_dir(&self) -> VPath {
        VPath::root()
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        Some(self)
    }

    async fn resolve(&self, _: &VPath, _: ResolveOptions) -> Result<VPath> {
        self.hang("resolve").await
    }

    async fn stat(&self, _: &VPath, _: StatOptions) -> Result<Entry> {
        self.hang("stat").await
    }

    async fn ls(&self, _: &VPath, _: LsOptions) -> Result<Listing> {
        self.hang("ls").await
    }

    async fn read(&self, _: &VPath, _: ReadOptions) -> Result<FileBytes> {
        self.hang("read").await
    }

    async fn read_text(&self, _: &VPath, _: TextOptions) -> Result<TextWindow> {
        self.hang("read_text").await
    }

    async fn write(&self, _: &VPath, content: Content, _: WriteOptions) -> Result<WriteOutcome> {
        // Content that is held and not polled pushes back.
        let _content = content;
        self.hang("write").await
    }

    async fn edit(&self, _: &VPath, _: &[Edit], _: EditOptions) -> Result<EditOutcome> {
        self.hang("edit").await
    }

    async fn create_dir(&self, _: &VPath, _: CreateDirOptions) -> Result<()> {
        self.hang("create_dir").await
    }

    async fn delete(&self, _: &VPath, _: DeleteOptions) -> Result<()> {
        self.hang("delete").await
    }

    async fn rename(&self, _: &VPath, _: &VPath, _: RenameOptions) -> Result<()> {
        self.hang("rename").await
    }

    async fn copy(&self, _: &VPath, _: &VPath, _: CopyOptions) -> Result<()> {
        self.hang("copy").await
    }

    async fn glob(&self, _: GlobQuery) -> Result<GlobResult> {
        self.hang("glob").await
    }

    async fn grep(&self, _: GrepQuery) -> Result<GrepResult> {
        self.hang("grep").await
    }
}

#[async_trait]
impl Sandbox for Hanging {
    fn id(&self) -> String {
        "hanging".into()
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

    fn last_activity(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }

    async fn execute(&self, _: Command) -> Result<ExecuteOutcome> {
        self.hang("execute").await
    }

    /// Prints once and never ends.
    async fn stream(&self, _: Command) -> Result<EventStream> {
        let guard = self.guard("stream");
        let first = futures::stream::iter([Ok(Event::Stdout(Bytes::from_static(b"up\n")))]);
        let rest = futures::stream::pending().map(move |event| {
            let _ = &guard;
            event
        });
        Ok(first.chain(rest).boxed())
    }

    async fn shell_start(&self, _: Command) -> Result<ShellInfo> {
        self.hang("shell_start").await
    }

    async fn shell_read(&self, _: &ShellId, _: Duration) -> Result<ShellOutput> {
        self.hang("shell_read").await
    }

    async fn shell_write(&self, _: &ShellId, _: Option<Bytes>) -> Result<()> {
        self.hang("shell_write").await
    }

    async fn shell_kill(&self, _: &ShellId) -> Result<bool> {
        self.hang("shell_kill").await
    }

    async fn shell_list(&self) -> Result<Vec<ShellInfo>> {
        self.hang("shell_list").await
    }
}
