//! The adapter as a sandbox: commands of a blocking implementation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_core::ops::{Command, ExecuteOutcome, ShellId, ShellInfo, ShellOutput, StopMode};
use backend_core::{
    Backend as _, CommandPaths, Error, EventStream, Operation, Result, Sandbox, TracedPath, VPath,
};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use tokio::sync::{mpsc, oneshot};

use super::adapter::{BlockingAdapter, Cancelling, Effect};
use super::pool::panicked;
use super::{BlockingBackend, BlockingSandbox};
use crate::cancel::Cancel;

/// Number of buffered events for a slow reader of a stream.
const EVENTS: usize = 16;

fn sandbox<B: BlockingBackend>(inner: &B) -> Result<&dyn BlockingSandbox> {
    inner.as_sandbox().ok_or_else(Error::no_commands)
}

impl<B: BlockingBackend> BlockingAdapter<B> {
    async fn sandbox_call<T: Send + 'static>(
        &self,
        operation: Operation,
        work: impl FnOnce(&dyn BlockingSandbox) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let work = move |inner: &B| work(sandbox(inner)?);
        self.call(operation, Effect::Read, work).await
    }

    /// Refuses a command that requires more than the implementation enforces.
    fn check_level(&self, operation: Operation, command: &Command) -> Result<()> {
        let checked = command.check_level(&self.info()).map_err(Error::from);
        checked.map_err(|error| error.during(operation).on(self.name()))
    }

    /// Makes a call that may take long, and cancels it when its future is dropped.
    async fn long_call<T: Send + 'static>(
        &self,
        operation: Operation,
        work: impl FnOnce(&dyn BlockingSandbox, &Cancel) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.wait_for_abandoned().await;
        let cancelling = Cancelling(Cancel::new());
        let (inner, cancel) = (Arc::clone(&self.inner), cancelling.0.clone());
        let work = move || work(sandbox(&*inner)?, &cancel);
        let result = self.commands.run(None, work).await;
        result.map_err(|error| error.during(operation).on(self.name()))
    }

    /// Follows an iterator on a thread for commands until the stream is dropped.
    pub(super) async fn follow<T, I>(
        &self,
        open: impl FnOnce(&B, &Cancel) -> Result<I> + Send + 'static,
    ) -> Result<BoxStream<'static, Result<T>>>
    where
        T: Send + 'static,
        I: Iterator<Item = Result<T>>,
    {
        self.wait_for_abandoned().await;
        let cancelling = Cancelling(Cancel::new());
        let (inner, cancel) = (Arc::clone(&self.inner), cancelling.0.clone());
        let (told, opened) = oneshot::channel();
        let (events, mut received) = mpsc::channel(EVENTS);
        let permit = self.commands.permit().await?;
        self.commands.submit(move || {
            let _permit = permit;
            let follow = || {
                if !cancel.is_cancelled() {
                    follow(open(&inner, &cancel), told, &events);
                }
            };
            if catch_unwind(AssertUnwindSafe(follow)).is_err() {
                let _ = events.blocking_send(Err(panicked()));
            }
        })?;
        opened.await.unwrap_or_else(|_| Err(panicked()))?;
        let events = futures_util::stream::poll_fn(move |context| {
            let _cancelled_with_the_stream = &cancelling;
            received.poll_recv(context)
        });
        Ok(events.boxed())
    }
}

/// Passes on events until there are no more, or the receiver is gone.
fn follow<T>(
    opened: Result<impl Iterator<Item = Result<T>>>,
    told: oneshot::Sender<Result<()>>,
    events: &mpsc::Sender<Result<T>>,
) {
    let following = match opened {
        Ok(following) => following,
        Err(error) => {
            let _ = told.send(Err(error));
            return;
        }
    };
    if told.send(Ok(())).is_err() {
        return;
    }
    for event in following {
        if events.blocking_send(event).is_err() {
            return;
        }
    }
}

#[async_trait]
impl<B: BlockingBackend> Sandbox for BlockingAdapter<B> {
    fn id(&self) -> String {
        sandbox(&*self.inner).map_or_else(|_| String::new(), |sandbox| sandbox.id())
    }

    async fn start(&self) -> Result<()> {
        self.sandbox_call(Operation::Start, |sandbox| sandbox.start())
            .await
    }

    async fn stop(&self, mode: StopMode) -> Result<()> {
        self.sandbox_call(Operation::Stop, move |sandbox| sandbox.stop(mode))
            .await
    }

    async fn is_alive(&self) -> Result<bool> {
        self.sandbox_call(Operation::Start, |sandbox| sandbox.is_alive())
            .await
    }

    fn last_activity(&self) -> SystemTime {
        let known = sandbox(&*self.inner);
        known.map_or(SystemTime::UNIX_EPOCH, |sandbox| sandbox.last_activity())
    }

    fn command_names(&self, directory: &VPath) -> CommandPaths {
        let known = sandbox(&*self.inner);
        let names = known.map(|sandbox| sandbox.command_names(directory));
        names.unwrap_or_default()
    }

    async fn trace(&self, directory: &VPath, paths: &[String]) -> Result<Vec<TracedPath>> {
        let (directory, paths) = (directory.clone(), paths.to_vec());
        self.sandbox_call(Operation::Execute, move |sandbox| {
            sandbox.trace(&directory, &paths)
        })
        .await
    }

    async fn execute(&self, command: Command) -> Result<ExecuteOutcome> {
        self.check_level(Operation::Execute, &command)?;
        self.long_call(Operation::Execute, |sandbox, cancel| {
            sandbox.execute(command, cancel)
        })
        .await
    }

    async fn stream(&self, command: Command) -> Result<EventStream> {
        self.check_level(Operation::Stream, &command)?;
        let opened = self.follow(|inner, cancel| sandbox(inner)?.stream(command, cancel));
        let opened = opened.await;
        opened.map_err(|error| error.during(Operation::Stream).on(self.name()))
    }

    async fn shell_start(&self, command: Command) -> Result<ShellInfo> {
        self.check_level(Operation::Shell, &command)?;
        if command.terminal.is_some() {
            let error = Error::no_terminals().during(Operation::Shell);
            return Err(error.on(self.name()));
        }
        self.sandbox_call(Operation::Shell, |sandbox| sandbox.shell_start(command))
            .await
    }

    async fn shell_read(&self, id: &ShellId, wait: Duration) -> Result<ShellOutput> {
        let id = id.clone();
        self.long_call(Operation::Shell, move |sandbox, cancel| {
            sandbox.shell_read(&id, wait, cancel)
        })
        .await
    }

    async fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()> {
        let id = id.clone();
        self.sandbox_call(Operation::Shell, move |sandbox| {
            sandbox.shell_write(&id, input)
        })
        .await
    }

    async fn shell_kill(&self, id: &ShellId) -> Result<bool> {
        let id = id.clone();
        self.sandbox_call(Operation::Shell, move |sandbox| sandbox.shell_kill(&id))
            .await
    }

    async fn shell_list(&self) -> Result<Vec<ShellInfo>> {
        self.sandbox_call(Operation::Shell, |sandbox| sandbox.shell_list())
            .await
    }
}
