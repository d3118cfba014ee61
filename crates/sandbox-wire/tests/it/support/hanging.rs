//! A backend whose operations never finish, and that reports when an operation
//! began and when it was dropped.

use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::ops::{Command, Event, ShellId, StopMode};
use backend_core::{
    Backend, BackendInfo, Capabilities, Connection, Containment, Error, EventStream, Outgoing,
    Result, Sandbox, VPath,
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

    /// Never returns the backend that would do the work.
    async fn hang(&self, name: &'static str) -> &Self {
        let _guard = self.guard(name);
        std::future::pending().await
    }
}

/// Methods that hang under their names. They hold their arguments, and content that is
/// not polled pushes back.
macro_rules! hang {
    ($($method:ident),+) => {
        $(backend_core::delegate!(|self| self.hang(stringify!($method)).await => $method);)+
    };
}

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

    hang!(
        resolve, stat, ls, read, read_text, write, edit, create_dir, delete, rename, copy
    );
    hang!(glob, grep, watch);
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

    hang!(
        execute,
        shell_start,
        shell_read,
        shell_write,
        shell_kill,
        shell_list
    );

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

    async fn connect(&self, _: u16) -> Result<Connection> {
        Ok(self.echo("connect"))
    }

    async fn shell_attach(&self, _: &ShellId) -> Result<Connection> {
        Ok(self.echo("shell_attach"))
    }
}

impl Hanging {
    /// Connects to a program that sends back what it gets.
    fn echo(&self, name: &'static str) -> Connection {
        let guard = self.guard(name);
        let (sender, receiver) = mpsc::channel(1);
        let incoming = futures::stream::unfold(receiver, |mut receiver| async move {
            let bytes: Bytes = receiver.recv().await?;
            Some((Ok(bytes), receiver))
        });
        Connection::new(incoming.boxed(), Echo(Some(sender))).holding(guard)
    }
}

/// The sending direction of a program that sends back what it gets.
struct Echo(Option<mpsc::Sender<Bytes>>);

#[async_trait]
impl Outgoing for Echo {
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
