//! A machine that is this host: programs run as children of the test, in a
//! separate directory, with a `PATH` chosen by the test.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Error, Result, VPath};
use sandbox_wire::{Machine, Process, Spawn};

use super::pipes;

/// This host as a machine.
#[derive(Debug)]
pub(crate) struct HostMachine {
    directory: VPath,
    path: String,
    /// The user that programs run as, if not the test's.
    user: Option<u32>,
    stream_bytes: Option<u64>,
    is_distant: bool,
    alive: AtomicBool,
    /// The number of programs started.
    pub(crate) spawned: AtomicUsize,
}

impl HostMachine {
    /// Creates a machine with this working directory and the tools in `path`.
    pub(crate) fn new(directory: &Path, path: String) -> Self {
        Self {
            directory: VPath::parse(directory.to_str().unwrap()).unwrap(),
            path,
            user: None,
            stream_bytes: None,
            is_distant: false,
            alive: AtomicBool::new(false),
            spawned: AtomicUsize::new(0),
        }
    }

    /// Sets the user that programs run as.
    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn user(mut self, user: u32) -> Self {
        self.user = Some(user);
        self
    }

    /// Says that each piece of input takes long.
    pub(crate) fn distant(mut self) -> Self {
        self.is_distant = true;
        self
    }

    /// Sets the output after which a program should be replaced.
    pub(crate) fn stream_bytes(mut self, bytes: u64) -> Self {
        self.stream_bytes = Some(bytes);
        self
    }
}

/// Returns the `PATH` of the host's own tools.
pub(crate) fn host_path() -> String {
    "/usr/local/bin:/usr/bin:/bin".to_owned()
}

/// Returns a `PATH` with busybox's tools only: a directory of links, created
/// once for all tests.
pub(crate) fn busybox_path() -> String {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let busybox = ["/bin/busybox", "/usr/bin/busybox"]
            .map(Path::new)
            .into_iter()
            .find(|path| path.exists())
            .expect("these tests need busybox");
        let listed = std::process::Command::new(busybox)
            .arg("--list")
            .output()
            .unwrap();
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("busybox");
        std::fs::create_dir_all(&directory).unwrap();
        for applet in String::from_utf8(listed.stdout).unwrap().lines() {
            // Other tests may create them at the same time, or have done so
            // before.
            let _ = std::os::unix::fs::symlink(busybox, directory.join(applet));
        }
        directory
    });
    made.to_str().unwrap().to_owned()
}

#[async_trait]
impl Machine for HostMachine {
    fn name(&self) -> Cow<'static, str> {
        "host".into()
    }

    fn id(&self) -> String {
        format!("host:{}", self.directory)
    }

    fn working_dir(&self) -> VPath {
        self.directory.clone()
    }

    async fn start(&self) -> Result<()> {
        self.alive.store(true, Ordering::SeqCst);
        Ok(())
    }

    async fn stop(&self, _: StopMode) -> Result<()> {
        self.alive.store(false, Ordering::SeqCst);
        Ok(())
    }

    async fn is_alive(&self) -> Result<bool> {
        Ok(self.alive.load(Ordering::SeqCst))
    }

    fn is_distant(&self) -> bool {
        self.is_distant
    }

    fn stream_bytes(&self) -> Option<u64> {
        self.stream_bytes
    }

    async fn spawn(&self, program: Spawn) -> Result<Process> {
        self.spawned.fetch_add(1, Ordering::SeqCst);
        let directory = program.directory.unwrap_or_else(|| self.working_dir());
        let (first, rest) = program.argv.split_first().unwrap();
        let found = self
            .path
            .split(':')
            .map(|place| Path::new(place).join(first))
            .find(|place| place.exists())
            .ok_or_else(|| Error::unavailable("there is no such program"))?;
        let mut command = tokio::process::Command::new(found);
        command
            .args(rest)
            .env_clear()
            .env("PATH", &self.path)
            .envs(program.environment)
            .current_dir(directory.as_str());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        pipes::start(command, program.stdin)
    }
}
