//! [`PortableSandbox`]: a machine as a backend, with nothing but a shell in it.
//!
//! A few shells are kept open in the machine. Each reads requests from its
//! standard input and answers them with the machine's own small tools. Their
//! output is limited in size, framed by words that cannot be guessed, and
//! trusted only for that machine. Commands are separate programs. Everything
//! runs on [the engine](sandbox_wire::engine).

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_core::ops::{
    Command, Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome,
    Entry, ExecuteOutcome, FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing,
    LsOptions, ReadOptions, RenameOptions, ResolveOptions, ShellId, ShellInfo, ShellOutput,
    StatOptions, StopMode, TextOptions, WatchQuery, WriteOptions, WriteOutcome,
};
use backend_core::text::TextWindow;
use backend_core::{
    Backend, BackendInfo, Capabilities, Containment, Edit, Error, EventStream, Operation, Result,
    Sandbox, VPath, WatchStream,
};
use backend_run::Activity;
use bytes::Bytes;
use sandbox_wire::{Machine, engine};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::command::Runner;
use crate::pool::Pool;
use crate::write::Writer;

/// The reason why nothing keeps paths from commands in such a sandbox.
pub(crate) const NO_VIEWS: &str = "in this kind of sandbox no paths can be kept from commands; \
     use a local directory with confined commands, or require less";

/// A [`Machine`] used without an agent: slower, with the same results.
///
/// It needs `sh` in the machine and the usual small tools, those of busybox or
/// of coreutils, findutils, grep and util-linux. `/proc` is needed to end
/// everything that a command started.
///
/// Between the check of a path and its use, a process in the machine can change
/// what the path leads to. Unlike an agent, this mode has no handles.
///
/// ```no_run
/// use std::sync::Arc;
/// use backend_core::BackendExt as _;
/// use sandbox_shell::PortableSandbox;
/// use sandbox_wire::Machine;
///
/// async fn first_line(machine: Arc<impl Machine>) -> backend_core::Result<String> {
///     let sandbox = PortableSandbox::new(machine);
///     sandbox.write_file("notes.md", "remember\n").await?;
///     sandbox.read_to_string("notes.md").await
/// }
/// ```
#[derive(Debug)]
pub struct PortableSandbox<M> {
    inner: Arc<Inner<M>>,
}

#[derive(Debug)]
struct Inner<M> {
    pool: Arc<Pool<M>>,
    writer: Writer<M>,
    runner: Runner<M>,
    activity: Activity,
}

impl<M> Clone for PortableSandbox<M> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<M: Machine> PortableSandbox<M> {
    /// Creates a backend for this machine. No I/O.
    pub fn new(machine: Arc<M>) -> Self {
        let pool = Arc::new(Pool::new(machine));
        let activity = Activity::default();
        activity.touch();
        let inner = Inner {
            writer: Writer::new(Arc::clone(&pool)),
            runner: Runner::new(Arc::clone(&pool), activity.clone()),
            pool,
            activity,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Suppresses the warning that there is no agent, for callers that report
    /// the reason themselves.
    #[must_use]
    pub fn without_warning(self) -> Self {
        self.inner.pool.warned.store(true, Ordering::Relaxed);
        self
    }

    /// Returns the machine.
    pub fn machine(&self) -> &Arc<M> {
        &self.inner.pool.machine
    }

    /// Runs work on the engine that may be cancelled.
    async fn query<T, F>(
        &self,
        operation: Operation,
        path: &VPath,
        work: impl FnOnce(Arc<Pool<M>>, VPath) -> F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let _used = self.inner.activity.operation();
        let done = engine::run(work(Arc::clone(&self.inner.pool), path.clone())).await;
        done.map_err(Error::context(self.machine().name(), operation, path))
    }

    /// Runs work on the engine that must complete. The token is cancelled when
    /// the call is dropped.
    async fn change<T, F>(
        &self,
        operation: Operation,
        path: &VPath,
        work: impl FnOnce(Arc<Inner<M>>, VPath, CancellationToken) -> F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let used = self.inner.activity.operation();
        let gone = CancellationToken::new();
        let _gone = gone.clone().drop_guard();
        let (reply, answer) = oneshot::channel();
        let work = work(Arc::clone(&self.inner), path.clone(), gone);
        let done = async {
            backend_run::spawn(engine::handle()?, async move {
                let done = work.await;
                drop(used);
                // The caller may be gone.
                let _ = reply.send(done);
            });
            answer
                .await
                .map_err(|_| Error::internal(engine::PANICKED))?
        };
        let name = self.machine().name();
        done.await.map_err(Error::context(name, operation, path))
    }

    /// Refuses a command that requires more than words. Nothing here sees its paths.
    fn check_level(&self, operation: Operation, command: &Command) -> Result<()> {
        let checked = command.check_level(&self.info()).map_err(Error::from);
        checked.map_err(self.during(operation))
    }

    fn during(&self, operation: Operation) -> impl FnOnce(Error) -> Error {
        let name = self.machine().name();
        move |error| error.during(operation).on(name)
    }
}

#[async_trait]
impl<M: Machine> Backend for PortableSandbox<M> {
    fn info(&self) -> BackendInfo {
        let capabilities = Capabilities::writable()
            .with_links()
            .with_modes()
            .with_times()
            .with_durable()
            .with_commands();
        BackendInfo::new(self.machine().name(), capabilities)
            .containment(Containment::Isolated)
            .enforcement_limit(Cow::Borrowed(NO_VIEWS))
    }

    fn working_dir(&self) -> VPath {
        self.machine().working_dir()
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        Some(self)
    }

    async fn resolve(&self, path: &VPath, _: ResolveOptions) -> Result<VPath> {
        let work = |pool: Arc<Pool<M>>, path| async move { pool.resolve(&path).await };
        self.query(Operation::Resolve, path, work).await
    }

    async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        let work =
            move |pool: Arc<Pool<M>>, path| async move { pool.stat(&path, options.links).await };
        self.query(Operation::Stat, path, work).await
    }

    async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
        let work = |pool: Arc<Pool<M>>, path| async move { pool.ls(&path, options).await };
        self.query(Operation::Ls, path, work).await
    }

    async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        let work = move |pool: Arc<Pool<M>>, path| async move { pool.read(&path, options).await };
        self.query(Operation::Read, path, work).await
    }

    async fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow> {
        let work =
            move |pool: Arc<Pool<M>>, path| async move { pool.read_text(&path, options).await };
        self.query(Operation::ReadText, path, work).await
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        let work = move |inner: Arc<Inner<M>>, path, gone| async move {
            inner.writer.write(&path, content, options, gone).await
        };
        self.change(Operation::Write, path, work).await
    }

    async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        let edits = edits.to_vec();
        let work = move |inner: Arc<Inner<M>>, path, gone| async move {
            inner.writer.edit(&path, &edits, options, gone).await
        };
        self.change(Operation::Edit, path, work).await
    }

    async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        let work = move |inner: Arc<Inner<M>>, path, _| async move {
            inner.writer.create_dir(&path, options).await
        };
        self.change(Operation::CreateDir, path, work).await
    }

    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        let work = move |inner: Arc<Inner<M>>, path, _| async move {
            inner.writer.delete(&path, options).await
        };
        self.change(Operation::Delete, path, work).await
    }

    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        let to = to.clone();
        let work = move |inner: Arc<Inner<M>>, from, _| async move {
            inner.writer.rename(&from, &to, options).await
        };
        self.change(Operation::Rename, from, work).await
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        let to = to.clone();
        let work = move |inner: Arc<Inner<M>>, from, _| async move {
            inner.writer.copy(&from, &to, options).await
        };
        self.change(Operation::Copy, from, work).await
    }

    async fn glob(&self, query: GlobQuery) -> Result<GlobResult> {
        let path = query.path.clone();
        let work = |pool: Arc<Pool<M>>, _| async move { pool.glob(query).await };
        self.query(Operation::Glob, &path, work).await
    }

    async fn grep(&self, query: GrepQuery) -> Result<GrepResult> {
        let path = query.path.clone();
        let work = |pool: Arc<Pool<M>>, _| async move { pool.grep(query).await };
        self.query(Operation::Grep, &path, work).await
    }

    async fn watch(&self, query: WatchQuery) -> Result<WatchStream> {
        let error = Error::unsupported(
            "changes are told only by the agent; use an image in which it runs, or list again",
        );
        Err(error
            .at(Operation::Watch, &query.path)
            .on(self.machine().name()))
    }
}

#[async_trait]
impl<M: Machine> Sandbox for PortableSandbox<M> {
    fn id(&self) -> String {
        self.machine().id()
    }

    fn last_activity(&self) -> SystemTime {
        self.inner.activity.last()
    }

    async fn start(&self) -> Result<()> {
        let _used = self.inner.activity.operation();
        let machine = Arc::clone(self.machine());
        let started = engine::run(async move { machine.start().await }).await;
        started.map_err(self.during(Operation::Start))
    }

    async fn stop(&self, mode: StopMode) -> Result<()> {
        let inner = Arc::clone(&self.inner);
        let stopped = engine::run(async move { inner.runner.stop(mode).await }).await;
        stopped.map_err(self.during(Operation::Stop))
    }

    async fn is_alive(&self) -> Result<bool> {
        let machine = Arc::clone(self.machine());
        engine::run(async move { machine.is_alive().await })
            .await
            .map_err(|error| error.on(self.machine().name()))
    }

    async fn execute(&self, command: Command) -> Result<ExecuteOutcome> {
        self.check_level(Operation::Execute, &command)?;
        let executed = self.inner.runner.execute(command).await;
        executed.map_err(self.during(Operation::Execute))
    }

    async fn stream(&self, command: Command) -> Result<EventStream> {
        self.check_level(Operation::Stream, &command)?;
        let streamed = self.inner.runner.stream(command).await;
        streamed.map_err(self.during(Operation::Stream))
    }

    async fn shell_start(&self, command: Command) -> Result<ShellInfo> {
        self.check_level(Operation::Shell, &command)?;
        let started = self.inner.runner.shell_start(command).await;
        started.map_err(self.during(Operation::Shell))
    }

    async fn shell_read(&self, id: &ShellId, wait: Duration) -> Result<ShellOutput> {
        self.inner.activity.touch();
        let read = self.inner.runner.shells.read(id, wait).await;
        read.map_err(self.during(Operation::Shell))
    }

    async fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()> {
        self.inner.activity.touch();
        let (inner, id) = (Arc::clone(&self.inner), id.clone());
        let written = engine::run(async move { inner.runner.shells.write(&id, input).await }).await;
        written.map_err(self.during(Operation::Shell))
    }

    async fn shell_kill(&self, id: &ShellId) -> Result<bool> {
        self.inner.activity.touch();
        let killed = self.inner.runner.shells.kill(id).await;
        killed.map_err(self.during(Operation::Shell))
    }

    async fn shell_list(&self) -> Result<Vec<ShellInfo>> {
        Ok(self.inner.runner.shells.list())
    }
}
