//! [`Root`]: the private root of a sandbox, a temporary directory.
//!
//! It outlives the processes of the sandbox, which are ended by a stop and come back
//! with the next command.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempDir;
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use crate::enclosure::Enclosure;
use crate::id;
use crate::paths::Paths;

/// The home and working directory, seen from within.
const HOME: &str = "/home/daytona";

/// The directory for pipes between the sandbox and the toolbox, seen from within.
const PIPES: &str = "/run/daytona";

/// Directories of a new root, beside those of the machine that it shows.
const DIRECTORIES: &[&str] = &[
    "/home/daytona/.local/bin",
    "/root",
    PIPES,
    "/tmp",
    "/var/tmp",
];

/// Programs of the machine, after those in the home directory.
const PROGRAMS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The Python of most machines.
const PYTHON: &str = "/usr/bin/python3";

/// The processes of a sandbox, as soon as one was started.
type Running = Arc<OnceCell<Enclosure>>;

/// The files of a sandbox, and commands that see them.
#[derive(Debug)]
pub(crate) struct Root {
    /// Dropped first: processes end before their files are removed.
    running: Mutex<Running>,
    directory: TempDir,
    /// Whether the directory is the root of commands, or only holds their files.
    is_private: bool,
    variable: String,
    environment: BTreeMap<String, String>,
    shell: String,
}

impl Root {
    /// Creates the root of a sandbox, with variables for all its commands.
    pub(crate) async fn create(
        sandbox: &str,
        environment: BTreeMap<String, String>,
    ) -> io::Result<Self> {
        let variable = ("DAYTONA_SANDBOX_ID", sandbox.to_owned());
        let blocking = move || -> io::Result<Self> {
            let directory = tempfile::Builder::new().prefix("daytona-").tempdir()?;
            for name in DIRECTORIES {
                fs::create_dir_all(beneath(directory.path(), name))?;
            }
            if Path::new(PYTHON).exists() {
                let link = beneath(directory.path(), "/home/daytona/.local/bin/python");
                symlink(PYTHON, link)?;
            }
            let enclosure = Enclosure::private(directory.path());
            if let Err(error) = &enclosure {
                tracing::info!(%error, "commands of the sandbox run on the machine itself");
            }
            let mut root = Self {
                is_private: enclosure.is_ok(),
                variable: format!("{}={}", variable.0, variable.1),
                environment: BTreeMap::new(),
                shell: shell(),
                running: Mutex::new(Arc::new(OnceCell::new_with(enclosure.ok()))),
                directory,
            };
            let home = root.home();
            root.environment = BTreeMap::from([
                ("HOME".to_owned(), home.clone()),
                ("LANG".to_owned(), "C.UTF-8".to_owned()),
                ("PATH".to_owned(), format!("{home}/.local/bin:{PROGRAMS}")),
                ("SHELL".to_owned(), root.shell.clone()),
            ]);
            root.environment.extend(environment);
            // Last, because processes are found by it.
            root.environment.insert(variable.0.to_owned(), variable.1);
            Ok(root)
        };
        spawn_blocking(blocking).await.map_err(io::Error::other)?
    }

    /// Returns the home and working directory, as commands see it.
    pub(crate) fn home(&self) -> String {
        self.inside(HOME)
    }

    /// Returns the shell of commands.
    pub(crate) fn shell(&self) -> &str {
        &self.shell
    }

    /// Returns a command in a directory that exists, with the sandbox's variables. It
    /// runs in a process group of its own.
    pub(crate) async fn command(&self, directory: &str, words: &[&str]) -> io::Result<Command> {
        let running = self.running();
        let mut command = self.start(&running).await?.command(directory, words);
        command.env_clear().envs(&self.environment).process_group(0);
        Ok(command)
    }

    /// Returns the files of the sandbox.
    pub(crate) async fn paths(&self) -> io::Result<Paths> {
        let running = self.running();
        let root = self.start(&running).await?.root()?;
        Ok(Paths::new(root, self.home()))
    }

    /// Creates a directory for pipes. Returns its path for this process and for commands.
    pub(crate) fn create_pipes(&self) -> io::Result<(PathBuf, String)> {
        let inside = format!("{PIPES}/{}", id::random());
        let outside = beneath(self.directory.path(), &inside);
        fs::create_dir(&outside)?;
        Ok((outside, self.inside(&inside)))
    }

    /// Ends all processes. They have ended when this returns, unless another call is
    /// about to start one.
    pub(crate) async fn end(&self) {
        let old = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *running)
        };
        // It only fails if the runtime ends, which drops the closure.
        let _ = spawn_blocking(move || drop(old)).await;
    }

    /// Removes all files.
    pub(crate) async fn remove(&self) {
        let directory = self.directory.path().to_owned();
        let _ = spawn_blocking(move || fs::remove_dir_all(directory)).await;
    }

    fn running(&self) -> Running {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&running)
    }

    /// Returns the enclosure of the sandbox's processes, started if it does not run.
    async fn start<'r>(&self, running: &'r Running) -> io::Result<&'r Enclosure> {
        let start = || async {
            if !self.is_private {
                return Enclosure::marked(self.variable.clone());
            }
            let directory = self.directory.path().to_owned();
            let started = spawn_blocking(move || Enclosure::private(&directory)).await;
            started.map_err(io::Error::other)?
        };
        running.get_or_try_init(start).await
    }

    /// Returns the path of a file as commands see it.
    fn inside(&self, path: &str) -> String {
        if self.is_private {
            path.to_owned()
        } else {
            beneath(self.directory.path(), path)
                .to_string_lossy()
                .into_owned()
        }
    }
}

fn beneath(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// Returns the shell that the toolbox would choose.
fn shell() -> String {
    let listed = fs::read_to_string("/etc/shells").unwrap_or_default();
    let find = |name: &str| listed.lines().find(|line| line.ends_with(name));
    let found = find("/zsh").or_else(|| find("/bash"));
    found.unwrap_or("/bin/sh").to_owned()
}
