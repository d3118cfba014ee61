//! A terminal, a watch and connections to a port, which stay open.

use std::cell::{Cell, RefCell};
use std::process::Command as HostCommand;
use std::time::{Duration, Instant};

use backend_core::ops::{ChangeKind, Command, TerminalSize, WatchEvent, WatchQuery};
use backend_core::{Backend as _, BackendExt as _, Connection, Sandbox as _, VPath, WatchStream};
use backend_docker::DockerSandbox;
use backend_testkit::measure::Sample;
use bytes::Bytes;
use futures::StreamExt as _;
use tokio::runtime::Runtime;

/// Bytes that are read from a port, and from a file.
const BYTES: usize = 64 << 20;

/// Sends so many bytes to everyone who asks. The port is that of the container.
const PORT: u16 = 8_000;
const SERVER: &str = r#"exec python3 -c '
import socket, threading
def serve(connection):
    while connection.recv(1):
        for _ in range(64):
            connection.sendall(bytes(1 << 20))
listener = socket.create_server(("127.0.0.1", 8000))
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],)).start()
'"#;

/// Sends back every key, without the help of the terminal.
const ECHO: &str = "stty raw -echo; echo ready; exec cat";

/// Files that are changed in turns, so that a late event of one is not taken for another.
const FILES: usize = 64;

/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(3);

/// A sandbox in which everything is open.
pub(crate) struct Live<'r> {
    sandbox: DockerSandbox,
    runtime: &'r Runtime,
    terminal: RefCell<Connection>,
    connection: RefCell<Connection>,
    changes: RefCell<WatchStream>,
    changed: Cell<usize>,
}

impl<'r> Live<'r> {
    pub(crate) fn start(sandbox: &DockerSandbox, runtime: &'r Runtime) -> Self {
        let opened = runtime.block_on(async {
            let prepare = format!(
                "head -c {BYTES} /dev/zero > whole.bin; mkdir watched; \
                 for n in $(seq 0 {FILES}); do echo > watched/$n; done"
            );
            let prepared = sandbox.execute(Command::new(prepare)).await.unwrap();
            assert!(prepared.status.success());
            let echo = Command::new(ECHO).terminal(TerminalSize::default());
            let terminal = ready(sandbox, echo).await;
            // Dropping the connection leaves the server running.
            drop(ready(sandbox, Command::new(SERVER)).await);
            let connection = sandbox.connect(PORT).await.unwrap();
            let watched = directory(sandbox);
            let changes = sandbox.watch(WatchQuery::new(watched)).await.unwrap();
            (terminal, connection, changes)
        });
        Self {
            sandbox: sandbox.clone(),
            runtime,
            terminal: RefCell::new(opened.0),
            connection: RefCell::new(opened.1),
            changes: RefCell::new(opened.2),
            changed: Cell::new(0),
        }
    }

    /// Types a key and waits until it comes back.
    pub(crate) fn key(&self) -> Sample {
        let mut terminal = self.terminal.borrow_mut();
        self.runtime.block_on(async {
            let start = Instant::now();
            terminal
                .outgoing
                .send(Bytes::from_static(b"k"))
                .await
                .unwrap();
            let came = terminal.incoming.next().await.unwrap().unwrap();
            Sample::since(start).with_size(came.len())
        })
    }

    /// Reads many bytes from a port.
    pub(crate) fn port(&self) -> Sample {
        let mut connection = self.connection.borrow_mut();
        self.runtime.block_on(async {
            let start = Instant::now();
            let mut all = Vec::with_capacity(BYTES);
            connection
                .outgoing
                .send(Bytes::from_static(b"g"))
                .await
                .unwrap();
            while all.len() < BYTES {
                let piece = connection.incoming.next().await.unwrap().unwrap();
                all.extend_from_slice(&piece);
            }
            Sample::since(start).with_size(all.len())
        })
    }

    /// Reads as many from a file.
    pub(crate) fn file(&self) -> Sample {
        self.runtime.block_on(async {
            let start = Instant::now();
            let all = self.sandbox.read_bytes("whole.bin").await.unwrap();
            Sample::since(start).with_size(all.len())
        })
    }

    /// Runs a command that changes a file, and waits until the watch tells it.
    pub(crate) fn change(&self) -> Sample {
        let number = self.changed.get();
        self.changed.set((number + 1) % FILES);
        let path = directory(&self.sandbox).join(&number.to_string()).unwrap();
        let line = format!("echo more >> watched/{number}");
        let mut changes = self.changes.borrow_mut();
        self.runtime.block_on(async {
            let start = Instant::now();
            let told = async {
                loop {
                    match changes.next().await.unwrap().unwrap() {
                        WatchEvent::Change(change)
                            if change.path == path && change.kind == ChangeKind::Changed =>
                        {
                            return Sample::since(start).with_size(1);
                        }
                        _ => {}
                    }
                }
            };
            let run = self.sandbox.execute(Command::new(line));
            let (told, outcome) = futures::join!(told, run);
            assert!(outcome.unwrap().status.success());
            told
        })
    }

    /// Returns the milliseconds of processor time that this process and those in the
    /// container use while nothing happens.
    pub(crate) fn idle(&self) -> f64 {
        let mut list = HostCommand::new("docker");
        list.args(["top", self.sandbox.container(), "-o", "pid"]);
        let listed = String::from_utf8(list.output().unwrap().stdout).unwrap();
        let inside = listed.lines().skip(1).map(|pid| pid.trim().to_owned());
        let pids: Vec<String> = inside.chain(["self".to_owned()]).collect();
        let total = || pids.iter().map(|pid| used(pid)).sum::<Duration>();
        let before = total();
        self.runtime
            .block_on(async { tokio::time::sleep(IDLE).await });
        (total() - before).as_secs_f64() * 1e3
    }
}

/// Starts a shell that prints `ready`, and returns a connection to it.
async fn ready(sandbox: &DockerSandbox, command: Command) -> Connection {
    let shell = sandbox.shell_start(command).await.unwrap();
    let mut attached = sandbox.shell_attach(&shell.id).await.unwrap();
    let mut printed = Vec::new();
    while !printed.ends_with(b"ready\n") {
        printed.extend_from_slice(&attached.incoming.next().await.unwrap().unwrap());
    }
    attached
}

/// Returns the directory that is watched.
fn directory(sandbox: &DockerSandbox) -> VPath {
    sandbox.working_dir().join("watched").unwrap()
}

/// Returns the processor time that a process has used, with all its threads.
fn used(pid: &str) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let nanos = threads.map(|thread| {
        let path = thread.unwrap().path().join("schedstat");
        // A thread may have ended meanwhile.
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let first = text.split(' ').next().unwrap_or_default();
        first.parse::<u64>().unwrap_or_default()
    });
    Duration::from_nanos(nanos.sum())
}
