//! The host's side of a supervisor: starts it and talks to it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend_core::limits::KILL_GRACE;
use backend_core::sync::lock;
use backend_core::{Error, ErrorKind, Result};
use futures_util::FutureExt as _;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};

use super::locate::Program;
use crate::supervisor::kill::{self, Scope, Target};
use crate::supervisor::limits::THREADS;
use crate::supervisor::protocol::{
    self, HEADER_BYTES, Hello, Reply, Request, VERSION, decode, encode, send_some,
};
use crate::supervisor::{SUPERVISE, process};

/// The timeout for a supervisor's answer to the greeting. It may first have to
/// be read from a slow disk.
const GREETING: Duration = Duration::from_secs(10);

/// A running supervisor.
#[derive(Debug)]
pub(crate) struct SupervisorClient {
    stream: OwnedWriteHalf,
    /// Held while a message is sent, so that messages do not interleave.
    turn: tokio::sync::Mutex<()>,
    /// The receivers of the commands' replies.
    commands: Mutex<HashMap<u64, Listener>>,
    next: AtomicU64,
    marker: String,
    since: u64,
    /// Whether the connection is closed, or lost.
    closed: AtomicBool,
    /// Becomes `true` when the supervisor's process has exited.
    gone: watch::Sender<bool>,
}

#[derive(Debug)]
struct Listener {
    to: mpsc::UnboundedSender<Reply>,
    pid: Option<i32>,
}

impl SupervisorClient {
    /// Starts a supervisor in this environment and greets it. Returns the reason
    /// instead if it cannot make the views that it is asked for. Must run on the
    /// engine.
    pub(crate) async fn start(
        program: &Program,
        environment: &[(OsString, OsString)],
        hello: Hello,
    ) -> Result<std::result::Result<Arc<Self>, String>> {
        let trouble = |text: String| start_error(program, &text);
        let (ours, theirs) = pair().map_err(|error| trouble(error.to_string()))?;
        let (mut replies, stream) = ours.into_split();
        let since = process::ticks();
        let mut child = tokio::process::Command::new(&program.path)
            .arg0("agentbox-supervisor")
            .arg(format!("{SUPERVISE}{VERSION}"))
            .env_clear()
            // Commands can read the supervisor's environment, so it must not
            // hold secrets.
            .envs(environment.iter().cloned())
            // A program with an async `main` starts its runtime before it knows
            // that it is a supervisor, which does not use the runtime.
            .env(THREADS, "1")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| trouble(error.to_string()))?;
        let client = Arc::new(Self {
            stream,
            turn: tokio::sync::Mutex::new(()),
            commands: Mutex::default(),
            next: AtomicU64::new(1),
            marker: hello.marker.clone(),
            since,
            closed: AtomicBool::new(false),
            gone: watch::channel(false).0,
        });
        let greeted = tokio::time::timeout(GREETING, client.greet(hello, &mut replies)).await;
        let answer = match greeted {
            Ok(Ok(Reply::Ready)) => Ok(None),
            Ok(Ok(Reply::Unviewed(text))) => Ok(Some(text)),
            Ok(Ok(Reply::Refused(text))) => Err(Error::unsupported(format!(
                "the supervisor {} refused: {}; change what is asked of it or its version",
                program.path.display(),
                backend_core::Quoted::new(&text)
            ))),
            Ok(_) => Err(trouble("it is not a supervisor".into())),
            Err(_) => Err(trouble("it did not answer".into())),
        };
        if !matches!(answer, Ok(None)) {
            client.close();
            let _ = child.start_kill();
        }
        // Always waited for: dropping a running child makes tokio install a
        // process-wide signal handler.
        let waiting = Arc::clone(&client);
        let wait = async move {
            let _ = child.wait().await;
            waiting.gone.send_replace(true);
        };
        tokio::spawn(wait.boxed());
        if let Some(limit) = answer? {
            return Ok(Err(limit));
        }
        tokio::spawn(Arc::clone(&client).listen(replies).boxed());
        Ok(Ok(client))
    }

    async fn greet(&self, hello: Hello, replies: &mut OwnedReadHalf) -> io::Result<Reply> {
        self.send(&encode(&Request::Hello(hello))?, &[]).await?;
        receive(replies, &mut Vec::new()).await
    }

    async fn send(&self, frame: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let _turn = self.turn.lock().await;
        let stream: &UnixStream = self.stream.as_ref();
        let mut sent = 0;
        while let Some(rest) = frame.get(sent..).filter(|rest| !rest.is_empty()) {
            let descriptors = if sent == 0 { descriptors } else { &[] };
            let result = stream.try_io(Interest::WRITABLE, || {
                send_some(stream.as_fd(), rest, descriptors)
            });
            match result {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    stream.writable().await?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Dispatches the supervisor's replies until it is gone.
    async fn listen(self: Arc<Self>, mut replies: OwnedReadHalf) {
        let mut buffer = Vec::new();
        while let Ok(reply) = receive(&mut replies, &mut buffer).await {
            let id = match &reply {
                Reply::Spawned { id, .. }
                | Reply::Failed { id, .. }
                | Reply::Exited { id, .. }
                | Reply::Ended { id, .. }
                | Reply::Masked { id, .. } => *id,
                Reply::Ready | Reply::Refused(_) | Reply::Unviewed(_) => continue,
            };
            if let Some(listener) = lock(&self.commands).get_mut(&id) {
                if let Reply::Spawned { pid, .. } = reply {
                    listener.pid = Some(pid);
                }
                let _ = listener.to.send(reply);
            }
        }
        let lost = !self.closed.swap(true, Ordering::SeqCst);
        self.close();
        if lost {
            self.end_from_outside().await;
        }
        // Tells the waiting callers that no more replies will come.
        lock(&self.commands).clear();
    }

    /// Ends the commands of a killed supervisor, if they can be found.
    async fn end_from_outside(&self) {
        tracing::warn!("a supervisor of commands died; its commands are ended from outside");
        let target = Target {
            groups: lock(&self.commands)
                .values()
                .filter_map(|one| one.pid)
                .collect(),
            since: self.since,
            ..Target::marked(self.marker.clone())
        };
        let work = move || kill::end(&target, Scope::Tree, Some(KILL_GRACE));
        let _ = tokio::task::spawn_blocking(work).await;
    }

    /// Whether it can accept commands.
    pub(crate) fn is_alive(&self) -> bool {
        !self.closed.load(Ordering::SeqCst)
    }

    /// Closes the connection: the supervisor kills everything it started and
    /// exits.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let stream: &UnixStream = self.stream.as_ref();
        let _ = rustix::net::shutdown(stream, rustix::net::Shutdown::Both);
    }

    /// Asks the supervisor to end everything gently and waits until it is gone.
    pub(crate) async fn stop(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let grace = u64::try_from(KILL_GRACE.as_millis()).unwrap_or(u64::MAX);
        if let Ok(frame) = encode(&Request::Stop { grace }) {
            let _ = self.send(&frame, &[]).await;
        }
        let mut gone = self.gone.subscribe();
        let wait = gone.wait_for(|gone| *gone);
        if tokio::time::timeout(KILL_GRACE + GREETING, wait)
            .await
            .is_err()
        {
            self.close();
        }
    }

    /// Returns a number that no command and no other request has.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Starts a command with a [`number`](Self::number) of its own. Its replies arrive at
    /// the receiver.
    pub(crate) async fn spawn(
        &self,
        spawn: protocol::Spawn,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<mpsc::UnboundedReceiver<Reply>> {
        let id = spawn.id;
        let frame = encode(&Request::Spawn(spawn)).map_err(too_long)?;
        let (to, from) = mpsc::unbounded_channel();
        lock(&self.commands).insert(id, Listener { to, pid: None });
        let sent = self.send(&frame, descriptors).await;
        // Checked after the insertion: if the supervisor dies later, the entry
        // is cleared.
        if sent.is_err() || !self.is_alive() {
            self.forget(id);
            return Err(lost());
        }
        Ok(from)
    }

    /// Asks the supervisor to end a command's processes.
    pub(crate) async fn end(&self, end: protocol::End) -> Result<()> {
        let frame = encode(&Request::End(end)).map_err(too_long)?;
        self.send(&frame, &[]).await.map_err(|_| lost())
    }

    /// Asks the supervisor to mask paths in a view. A command that is sent afterwards
    /// starts behind the masks, or not at all. The answer arrives at the receiver.
    pub(crate) async fn mask(
        &self,
        view: u64,
        places: Vec<protocol::Masked>,
        strict: bool,
    ) -> Result<Answer<'_>> {
        let id = self.number();
        let mask = protocol::Mask {
            id,
            view,
            places,
            strict,
        };
        self.ask(id, &Request::Mask(mask)).await
    }

    /// Asks the supervisor to kill everything that a command has started. The answer
    /// arrives at the receiver.
    pub(crate) async fn kill(&self, command: u64) -> Result<Answer<'_>> {
        let id = self.number();
        let end = protocol::End {
            id,
            command,
            scope: Scope::Tree,
            grace: Some(0),
        };
        self.ask(id, &Request::End(end)).await
    }

    async fn ask(&self, id: u64, request: &Request) -> Result<Answer<'_>> {
        let frame = encode(request).map_err(too_long)?;
        let (to, from) = mpsc::unbounded_channel();
        lock(&self.commands).insert(id, Listener { to, pid: None });
        let answer = Answer {
            client: self,
            id,
            from,
        };
        match self.send(&frame, &[]).await {
            Ok(()) if self.is_alive() => Ok(answer),
            _ => Err(lost()),
        }
    }

    /// Asks the supervisor to end a view in which no command runs.
    pub(crate) async fn forget_view(&self, view: u64) -> Result<()> {
        let frame = encode(&Request::Forget { view }).map_err(too_long)?;
        self.send(&frame, &[]).await.map_err(|_| lost())
    }

    pub(crate) fn forget(&self, id: u64) {
        lock(&self.commands).remove(&id);
    }
}

/// The answer to a request, which nothing needs to wait for.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    client: &'a SupervisorClient,
    id: u64,
    from: mpsc::UnboundedReceiver<Reply>,
}

impl Answer<'_> {
    /// Waits for it. Returns `None` if the supervisor has ended, and its commands with it.
    pub(crate) async fn wait(mut self) -> Option<Reply> {
        self.from.recv().await
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        self.client.forget(self.id);
    }
}

async fn receive(replies: &mut OwnedReadHalf, buffer: &mut Vec<u8>) -> io::Result<Reply> {
    let mut header = [0; HEADER_BYTES];
    replies.read_exact(&mut header).await?;
    buffer.clear();
    buffer.resize(protocol::length(header)?, 0);
    replies.read_exact(buffer).await?;
    decode(buffer)
}

/// The error for a command whose supervisor is gone.
pub(crate) fn lost() -> Error {
    Error::unavailable(
        "the supervisor that ran the command is gone; what it ran was ended, and the next command starts a new one",
    )
}

fn too_long(_: io::Error) -> Error {
    Error::invalid_input("the command and its variables are too long; put them into a file")
}

fn start_error(program: &Program, text: &str) -> Error {
    let kind = if program.explicit {
        ErrorKind::Config
    } else {
        ErrorKind::Unavailable
    };
    Error::new(
        kind,
        format!(
            "the supervisor {} did not start: {text}; build agentbox-supervisor of this version or choose `Supervisor::None`",
            program.path.display()
        ),
    )
}

fn pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs.into()))
}
