//! A sandbox whose programs send back what they get.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_core::ops::{
    Command, CommandStatus, ExecuteOutcome, ShellId, ShellInfo, ShellOutput, ShellState, Signal,
    StopMode, TerminalSize,
};
use backend_core::{Backend, Connection, Error, EventStream, Outgoing, Result, Sandbox, delegate};
use bytes::Bytes;
use futures::StreamExt as _;
use tokio::sync::mpsc;

/// The files of a backend, and programs that echo.
#[derive(Debug)]
pub(super) struct Echoing(pub(super) Arc<dyn Backend>);

impl Backend for Echoing {
    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        Some(self)
    }

    delegate! {
        |self| self.0 => info, working_dir, resolve, stat, ls, read, read_text, write, edit,
        create_dir, delete, rename, copy, glob, grep, watch
    }
}

#[async_trait]
impl Sandbox for Echoing {
    fn id(&self) -> String {
        "echo".to_owned()
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

    async fn execute(&self, command: Command) -> Result<ExecuteOutcome> {
        command.check_without_terminal()?;
        command.check_level(&self.info())?;
        Ok(ExecuteOutcome::new(CommandStatus::Exited(0)))
    }

    async fn stream(&self, _: Command) -> Result<EventStream> {
        Ok(futures::stream::empty().boxed())
    }

    async fn shell_start(&self, command: Command) -> Result<ShellInfo> {
        command.check()?;
        command.check_level(&self.info())?;
        Ok(ShellInfo::new(ShellId::new("bg_1"), command.line, None))
    }

    async fn shell_read(&self, _: &ShellId, _: Duration) -> Result<ShellOutput> {
        Ok(ShellOutput::new(ShellState::Running))
    }

    async fn shell_write(&self, _: &ShellId, _: Option<Bytes>) -> Result<()> {
        Ok(())
    }

    async fn shell_kill(&self, _: &ShellId) -> Result<bool> {
        Ok(true)
    }

    async fn shell_list(&self) -> Result<Vec<ShellInfo>> {
        Ok(Vec::new())
    }

    async fn connect(&self, _: u16) -> Result<Connection> {
        Ok(echo())
    }

    async fn shell_attach(&self, _: &ShellId) -> Result<Connection> {
        Ok(echo())
    }

    async fn shell_resize(&self, _: &ShellId, size: TerminalSize) -> Result<()> {
        size.check()
    }

    async fn shell_signal(&self, _: &ShellId, _: Signal) -> Result<()> {
        Ok(())
    }
}

/// Connects to a program that sends back what it gets.
fn echo() -> Connection {
    let (sender, receiver) = mpsc::channel(1);
    let incoming = futures::stream::unfold(receiver, |mut receiver| async move {
        let bytes: Bytes = receiver.recv().await?;
        Some((Ok(bytes), receiver))
    });
    Connection::new(incoming.boxed(), Sender(Some(sender)))
}

struct Sender(Option<mpsc::Sender<Bytes>>);

#[async_trait]
impl Outgoing for Sender {
    async fn send(&mut self, bytes: Bytes) -> Result<()> {
        let gone = || Error::unavailable("the program is gone");
        let sender = self.0.as_ref().ok_or_else(gone)?;
        sender.send(bytes).await.map_err(|_| gone())
    }

    async fn finish(&mut self) -> Result<()> {
        self.0 = None;
        Ok(())
    }
}
