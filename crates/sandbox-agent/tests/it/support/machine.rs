//! A machine that is this computer: its agent is a process, connected by pipes
//! or a socket.

use std::borrow::Cow;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Capabilities, Error, Result, VPath};
use backend_testkit::processes;
use futures::StreamExt as _;
use sandbox_wire::{
    AgentOptions, AgentSandbox, Machine, OutputChunk, Process, Spawn as Program, Token,
};
use tokio::io::{AsyncRead, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::process::{Child, Command};
use tokio_util::io::ReaderStream;

/// The agent that cargo built for the tests.
pub(crate) const AGENT: &str = env!("CARGO_BIN_EXE_sandbox-agent");

/// The connection to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Pipes,
    Socket,
    /// A socket that the agent connects to.
    Direct,
    /// The same, but this side wants another token, and then uses the pipes.
    Refused,
    /// The same with a socket that is not there.
    Missing,
}

/// A machine whose agents are processes here.
#[derive(Debug)]
pub(crate) struct HostMachine {
    program: PathBuf,
    arguments: Vec<String>,
    /// The agent's environment, like a container's.
    environment: Vec<(String, String)>,
    directory: VPath,
    way: Way,
    user: Option<u32>,
    open_files: Option<u64>,
    started: Mutex<Vec<Started>>,
    runs: AtomicBool,
}

/// A started agent.
#[derive(Debug, Clone)]
pub(crate) struct Started {
    pub(crate) pid: i32,
    /// The targets of its standard input and output in `/proc`.
    pub(crate) streams: Vec<String>,
}

impl HostMachine {
    /// Creates a machine whose agents serve the directory `root` as `/`.
    pub(crate) fn new(root: &Path, directory: &str) -> Self {
        let root = root.to_str().unwrap();
        Self {
            program: AGENT.into(),
            arguments: ["--root", root, "--directory", directory]
                .map(String::from)
                .to_vec(),
            environment: Vec::new(),
            directory: VPath::parse(directory).unwrap(),
            way: Way::Pipes,
            user: None,
            open_files: None,
            started: Mutex::default(),
            runs: AtomicBool::new(false),
        }
    }

    pub(crate) fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(crate) fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    pub(crate) fn way(mut self, way: Way) -> Self {
        self.way = way;
        self
    }

    /// Runs `program` as this user instead.
    pub(crate) fn run_by(mut self, program: PathBuf, user: u32) -> Self {
        self.program = program;
        self.user = Some(user);
        self
    }

    /// Limits the files that an agent may have open.
    pub(crate) fn open_files(mut self, count: u64) -> Self {
        self.open_files = Some(count);
        self
    }

    /// Returns the agents started so far.
    pub(crate) fn started(&self) -> Vec<Started> {
        self.started.lock().unwrap().clone()
    }

    pub(crate) fn sandbox(self) -> AgentSandbox<Self> {
        AgentSandbox::new(Arc::new(self), AgentOptions::default())
    }

    /// Returns a backend whose agent refuses changes.
    pub(crate) fn read_only(self) -> AgentSandbox<Self> {
        AgentSandbox::new(Arc::new(self.argument("--read-only")), unwritable())
    }

    fn note(&self, child: &Child, streams: Vec<String>) {
        let pid = i32::try_from(child.id().unwrap()).unwrap();
        let started = Started { pid, streams };
        self.started.lock().unwrap().push(started);
    }

    fn with_pipes(&self, mut command: Command) -> Process {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        self.note(&child, vec![named(&stdin), named(&stdout)]);
        process(child, Box::pin(stdin), stdout)
    }

    async fn with_an_address(&self, mut command: Command) -> Process {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = (self.way != Way::Missing).then(|| UnixListener::bind(&path).unwrap());
        command.arg("--socket").arg(&path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        self.note(&child, Vec::new());
        let token = Token::generate().unwrap();
        let line = format!("{}\n", token.as_str());
        stdin.write_all(line.as_bytes()).await.unwrap();
        let Some(listener) = listener else {
            return process(child, Box::pin(stdin), stdout);
        };
        let (mut stream, _) = listener.accept().await.unwrap();
        if self.way == Way::Refused {
            let other = Token::generate().unwrap();
            other.admit(&mut stream).await.unwrap_err();
            return process(child, Box::pin(stdin), stdout);
        }
        token.admit(&mut stream).await.unwrap();
        let (reader, writer) = stream.into_split();
        process(child, Box::pin(writer), reader)
    }

    fn with_a_socket(&self, mut command: Command) -> Process {
        let (ours, theirs) = StdStream::pair().unwrap();
        let name = named(&theirs);
        command.stdin(OwnedFd::from(theirs.try_clone().unwrap()));
        let mut child = command.stdout(OwnedFd::from(theirs)).spawn().unwrap();
        // The command holds its end of the socket until it is dropped.
        drop(command);
        self.note(&child, vec![name]);
        ours.set_nonblocking(true).unwrap();
        let (reader, writer) = UnixStream::from_std(ours).unwrap().into_split();
        child.stdin.take();
        process(child, Box::pin(writer), reader)
    }
}

/// Returns the options for an agent that refuses changes.
pub(crate) fn unwritable() -> AgentOptions {
    let mut capabilities = Capabilities::default()
        .with_links()
        .with_modes()
        .with_times()
        .with_durable();
    capabilities.writable = false;
    AgentOptions::default().capabilities(capabilities)
}

/// Waits for an agent to exit. Returns whether it did.
pub(crate) fn ended(pid: i32) -> bool {
    let agent = processes::handle(pid);
    agent.is_none_or(|agent| processes::wait(&agent, processes::PATIENCE))
}

/// Returns the name in /proc of an open file of this process. Both ends of a
/// pipe have the same.
fn named(stream: &impl AsFd) -> String {
    use std::os::fd::AsRawFd as _;

    let link = format!("/proc/self/fd/{}", stream.as_fd().as_raw_fd());
    let name = std::fs::read_link(link).unwrap();
    name.to_str().unwrap().to_owned()
}

fn process(
    mut child: Child,
    stdin: std::pin::Pin<Box<dyn tokio::io::AsyncWrite + Send>>,
    stdout: impl AsyncRead + Send + 'static,
) -> Process {
    let stderr = child.stderr.take().unwrap();
    let broke = |error| Error::unavailable("the pipe broke").with_source(error);
    let output = ReaderStream::with_capacity(stdout, 64 * 1024)
        .map(move |piece| piece.map(OutputChunk::Stdout).map_err(broke));
    let complaints =
        ReaderStream::new(stderr).map(move |piece| piece.map(OutputChunk::Stderr).map_err(broke));
    let all = futures::stream::select(output, complaints).boxed();
    let exit = Box::pin(async move {
        let ended = child.wait().await.map_err(broke)?;
        Ok(ended.code().unwrap_or(-1))
    });
    Process::new(Some(stdin), all, exit)
}

#[async_trait]
impl Machine for HostMachine {
    fn name(&self) -> Cow<'static, str> {
        "host".into()
    }

    fn id(&self) -> String {
        "host-1".into()
    }

    fn working_dir(&self) -> VPath {
        self.directory.clone()
    }

    async fn start(&self) -> Result<()> {
        self.runs.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Waits for the agents, which have been told to exit.
    async fn stop(&self, _: StopMode) -> Result<()> {
        self.runs.store(false, Ordering::SeqCst);
        let agents = self.started();
        let wait = move || agents.iter().all(|agent| ended(agent.pid));
        match tokio::task::spawn_blocking(wait).await {
            Ok(true) => Ok(()),
            _ => Err(Error::unavailable("an agent does not end")),
        }
    }

    async fn is_alive(&self) -> Result<bool> {
        Ok(self.runs.load(Ordering::SeqCst))
    }

    async fn agent(&self) -> Result<Vec<String>> {
        let program = self.program.to_str().unwrap().to_owned();
        Ok(std::iter::once(program)
            .chain(self.arguments.clone())
            .collect())
    }

    async fn spawn(&self, wanted: Program) -> Result<Process> {
        let (program, arguments) = wanted.argv.split_first().unwrap();
        let mut command = match self.open_files {
            None => Command::new(program),
            Some(count) => {
                let mut shell = Command::new("sh");
                let script = format!("ulimit -n {count}; exec \"$0\" \"$@\"");
                shell.args(["-c", &script]).arg(program);
                shell
            }
        };
        command.args(arguments).envs(self.environment.clone());
        command.stderr(Stdio::piped());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        Ok(match self.way {
            Way::Pipes => self.with_pipes(command),
            Way::Socket => self.with_a_socket(command),
            Way::Direct | Way::Refused | Way::Missing => self.with_an_address(command).await,
        })
    }
}
