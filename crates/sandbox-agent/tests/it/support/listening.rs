//! An agent that listens on a port, and a machine that connects to it.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::net::{Shutdown, TcpStream as StdStream};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Error, Result, VPath};
use backend_testkit::processes;
use rustix::process::Signal;
use sandbox_wire::websocket::{self, PORT_SUFFIX, Token, UpgradeRequest};
use sandbox_wire::{AgentOptions, AgentSandbox, Machine, Process, Spawn};
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::support::machine::{AGENT, ended, unwritable};

/// The time between two looks for a file.
const LOOK: Duration = Duration::from_millis(5);

/// An agent that listens. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Listening {
    child: Mutex<Child>,
    pub(crate) port: u16,
    pub(crate) token: Token,
    /// The directory with its files: the port, and its messages.
    pub(crate) files: TempDir,
}

impl Listening {
    /// Starts an agent, and waits until it listens. `None` if it ends before.
    pub(crate) async fn start(arguments: &[String]) -> Option<Self> {
        let files = tempfile::tempdir().unwrap();
        let token = Token::generate().unwrap();
        let token_file = files.path().join("token");
        write_private(&token_file, token.as_str());
        let messages = File::create(files.path().join("messages")).unwrap();
        let mut command = Command::new(AGENT);
        command.arg("--listen").arg(&token_file).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(messages).spawn().unwrap();
        let port_file = port_file(&token_file);
        let port = loop {
            if let Ok(port) = fs::read_to_string(&port_file) {
                break port;
            }
            if child.try_wait().unwrap().is_some() {
                return None;
            }
            tokio::time::sleep(LOOK).await;
        };
        Some(Self {
            child: Mutex::new(child),
            port: port.strip_suffix('\n').unwrap().parse().unwrap(),
            token,
            files,
        })
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.lock().unwrap().id()).unwrap()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.child.lock().unwrap().try_wait().unwrap().is_none()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let handle = processes::handle(self.pid()).unwrap();
        rustix::process::pidfd_send_signal(handle, signal).unwrap();
    }

    /// Waits for it to exit, and returns its exit code.
    pub(crate) fn exit_code(&self) -> Option<i32> {
        assert!(ended(self.pid()), "it does not end");
        self.child.lock().unwrap().wait().unwrap().code()
    }

    /// Returns the names of its files.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.files.path()).unwrap().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Returns its messages on standard error.
    pub(crate) fn messages(&self) -> String {
        fs::read_to_string(self.files.path().join("messages")).unwrap()
    }

    /// Opens a connection, on which nothing was said yet.
    pub(crate) async fn dial(&self) -> Result<TcpStream> {
        let dialled = TcpStream::connect(("127.0.0.1", self.port)).await;
        let failed = |error| Error::unavailable("the agent does not listen").with_source(error);
        let stream = dialled.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        Ok(stream)
    }

    /// Becomes a client on a connection.
    pub(crate) async fn connect(&self, stream: TcpStream, token: &Token) -> Result<Process> {
        let request = UpgradeRequest::new(format!("127.0.0.1:{}", self.port), "/");
        websocket::connect(stream, &request, token).await
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap();
        // It may have ended already.
        let _ = child.kill();
        child.wait().unwrap();
    }
}

/// Returns the path of the file with the port.
pub(crate) fn port_file(token_file: &Path) -> PathBuf {
    let mut path = token_file.as_os_str().to_owned();
    path.push(PORT_SUFFIX);
    path.into()
}

/// Writes a file that only its owner can read.
pub(crate) fn write_private(path: &Path, text: &str) {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// A machine that connects to an agent which listens, and starts one if there is none.
#[derive(Debug)]
pub(crate) struct ListeningMachine {
    arguments: Vec<String>,
    directory: VPath,
    runs: AtomicBool,
    agent: tokio::sync::Mutex<Option<Arc<Listening>>>,
    connections: AtomicUsize,
    /// A copy of the last connection, if it is to be cut.
    copy: Option<Mutex<Option<StdStream>>>,
}

impl ListeningMachine {
    /// Creates a machine whose agents serve the directory `root` as `/`.
    pub(crate) fn new(root: &Path, directory: &str) -> Self {
        let root = root.to_str().unwrap();
        Self {
            arguments: ["--root", root, "--directory", directory]
                .map(String::from)
                .to_vec(),
            directory: VPath::parse(directory).unwrap(),
            runs: AtomicBool::new(false),
            agent: tokio::sync::Mutex::default(),
            connections: AtomicUsize::new(0),
            copy: None,
        }
    }

    /// Creates a machine that connects to this agent, whose working directory is `/`.
    pub(crate) fn of(agent: &Arc<Listening>) -> Self {
        let mut machine = Self::new(Path::new("/"), "/");
        machine.agent = tokio::sync::Mutex::new(Some(Arc::clone(agent)));
        machine
    }

    pub(crate) fn sandbox(self) -> AgentSandbox<Self> {
        AgentSandbox::new(Arc::new(self), AgentOptions::default())
    }

    /// Returns a backend whose agent refuses changes.
    pub(crate) fn read_only(mut self) -> AgentSandbox<Self> {
        self.arguments.push("--read-only".into());
        AgentSandbox::new(Arc::new(self), unwritable())
    }

    /// Lets [`cut`](Self::cut) cut its connections.
    pub(crate) fn cuttable(mut self) -> Self {
        self.copy = Some(Mutex::default());
        self
    }

    /// Cuts the last connection, without a goodbye.
    pub(crate) fn cut(&self) {
        let copy = self.copy.as_ref().unwrap().lock().unwrap().take();
        copy.unwrap().shutdown(Shutdown::Both).unwrap();
    }

    /// Returns the number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Returns the running agent, which is started if there is none.
    async fn running_agent(&self) -> Arc<Listening> {
        let mut agent = self.agent.lock().await;
        match &*agent {
            Some(agent) if agent.is_running() => Arc::clone(agent),
            _ => {
                let started = Listening::start(&self.arguments).await.unwrap();
                Arc::clone(agent.insert(Arc::new(started)))
            }
        }
    }
}

#[async_trait]
impl Machine for ListeningMachine {
    fn name(&self) -> Cow<'static, str> {
        "listening".into()
    }

    fn id(&self) -> String {
        "listening-1".into()
    }

    fn working_dir(&self) -> VPath {
        self.directory.clone()
    }

    async fn start(&self) -> Result<()> {
        self.runs.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Ends the agent, as a sandbox that is stopped does.
    async fn stop(&self, _: StopMode) -> Result<()> {
        self.runs.store(false, Ordering::SeqCst);
        let Some(agent) = self.agent.lock().await.take() else {
            return Ok(());
        };
        let end = move || {
            if agent.is_running() {
                agent.signal(Signal::TERM);
            }
            agent.exit_code()
        };
        match tokio::task::spawn_blocking(end).await {
            Ok(Some(0)) => Ok(()),
            other => Err(Error::unavailable(format!(
                "the agent ended with {other:?}"
            ))),
        }
    }

    async fn is_alive(&self) -> Result<bool> {
        Ok(self.runs.load(Ordering::SeqCst))
    }

    async fn agent(&self) -> Result<Vec<String>> {
        Ok(vec![AGENT.to_owned()])
    }

    async fn spawn(&self, _: Spawn) -> Result<Process> {
        let agent = self.running_agent().await;
        self.connections.fetch_add(1, Ordering::SeqCst);
        let mut stream = agent.dial().await?;
        if let Some(copy) = &self.copy {
            let cuttable = stream.into_std().unwrap();
            *copy.lock().unwrap() = Some(cuttable.try_clone().unwrap());
            stream = TcpStream::from_std(cuttable).unwrap();
        }
        agent.connect(stream, &agent.token).await
    }
}
