//! The daemon for tests and benchmarks: a running one, or a private one.
//!
//! The private daemon keeps its images in the cache, because they take long to create,
//! and everything else in a temporary directory. It ends with its user, even if this
//! process is interrupted or killed.

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::lock::exclusive;
use crate::process;
use crate::workspace::Workspace;

/// The default address of a daemon.
const DEFAULT_HOST: &str = "unix:///var/run/docker.sock";

/// Prefix of the directories of private daemons. The pid of the process that created it
/// follows.
const DIRECTORY: &str = "agentbox-docker-";

/// Time limit for a daemon to answer, and to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The result of a search for a daemon.
pub(crate) enum Found<'w> {
    Daemon(Daemon<'w>),
    /// There is none, with the reason.
    Nothing(String),
}

/// A running daemon. A private one is stopped on drop.
pub(crate) enum Daemon<'w> {
    Foreign { host: String, version: String },
    Private(Private<'w>),
}

impl<'w> Daemon<'w> {
    /// Finds the daemon at `DOCKER_HOST` or at the default address, else starts a
    /// private one.
    pub(crate) fn find(workspace: &'w Workspace) -> Result<Found<'w>> {
        if let Some(reason) = Self::obstacle(workspace)? {
            return Ok(Found::Nothing(reason));
        }
        let (host, _) = host();
        if let Some(version) = version(workspace, &host)? {
            return Ok(Found::Daemon(Daemon::Foreign { host, version }));
        }
        match Private::start(workspace)? {
            Ok(private) => Ok(Found::Daemon(Daemon::Private(private))),
            Err(reason) => Ok(Found::Nothing(reason)),
        }
    }

    /// Returns why no daemon answers and none can be started, if so.
    pub(crate) fn obstacle(workspace: &Workspace) -> Result<Option<String>> {
        let (host, is_named) = host();
        let has_client = workspace.has_program("docker")?;
        if has_client && version(workspace, &host)?.is_some() {
            return Ok(None);
        }
        if is_named && has_client {
            return Ok(Some(format!("no daemon answers at {host}")));
        }
        for program in ["docker", "dockerd", "setpriv"] {
            if !workspace.has_program(program)? {
                return Ok(Some(format!(
                    "no daemon answers and {program} is not installed; \
                     `cargo xtask test-all --provision` installs it"
                )));
            }
        }
        // The entry is owned by the user of this process.
        if fs::metadata("/proc/self")?.uid() != 0 {
            let reason = "no daemon answers and only root can start one; set DOCKER_HOST";
            return Ok(Some(reason.to_owned()));
        }
        Ok(None)
    }

    pub(crate) fn host(&self) -> &str {
        match self {
            Self::Foreign { host, .. } => host,
            Self::Private(private) => &private.host,
        }
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Foreign { version, .. } => format!("Docker {version}"),
            Self::Private(private) => format!("a private Docker {}", private.version),
        }
    }
}

/// Returns the address of the daemon, and whether `DOCKER_HOST` names it.
fn host() -> (String, bool) {
    let named = env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty());
    let is_named = named.is_some();
    (named.unwrap_or_else(|| DEFAULT_HOST.to_owned()), is_named)
}

/// Returns the version of the daemon at `host`, if one answers.
fn version(workspace: &Workspace, host: &str) -> Result<Option<String>> {
    let mut ask = workspace.command("docker")?;
    ask.args(["--host", host, "version", "--format", "{{.Server.Version}}"]);
    let answer = ask.output().context("cannot start docker")?;
    let version = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    Ok((answer.status.success() && !version.is_empty()).then_some(version))
}

/// A daemon started by this process.
pub(crate) struct Private<'w> {
    workspace: &'w Workspace,
    child: Child,
    directory: PathBuf,
    host: String,
    version: String,
    /// Held while the images are in use.
    _lock: File,
}

impl<'w> Private<'w> {
    /// Starts a daemon. Returns the reason if that does not work on this machine.
    fn start(workspace: &'w Workspace) -> Result<std::result::Result<Self, String>> {
        let data = workspace.cache("docker");
        fs::create_dir_all(&data)?;
        let lock = exclusive(&data.join("lock"))?;
        let pidfile = data.join("dockerd.pid");
        end_left_over(workspace, &pidfile, &data)?;
        // A daemon mounts its directory onto itself, and a killed one leaves that mount
        // behind.
        process::succeeds(workspace.command("umount")?.arg(data.join("data")));
        remove_left_over(&env::temp_dir());
        let directory = env::temp_dir().join(format!("{DIRECTORY}{}", std::process::id()));
        fs::create_dir(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        let log = data.join("dockerd.log");
        let host = format!("unix://{}", directory.join("docker.sock").display());
        // It ends with this process, however that ends.
        let mut command = workspace.command("setpriv")?;
        command.args(["--pdeathsig", "TERM", "--", "dockerd", "--host", &host]);
        command.arg("--data-root").arg(data.join("data"));
        command.arg("--exec-root").arg(directory.join("exec"));
        command.arg("--pidfile").arg(&pidfile);
        let output = File::create(&log)?;
        command.stdout(output.try_clone()?).stderr(output);
        let child = command.stdin(std::process::Stdio::null()).spawn();
        let mut private = Self {
            workspace,
            child: child.context("cannot start setpriv")?,
            directory,
            host,
            version: String::new(),
            _lock: lock,
        };
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(version) = version(workspace, &private.host)? {
                private.version = version;
                return Ok(Ok(private));
            }
            if private.child.try_wait()?.is_some() {
                break;
            }
            thread::sleep(POLL_INTERVAL);
        }
        let reason = last_words(&fs::read_to_string(&log).unwrap_or_default());
        eprintln!("error: see {}", log.display());
        Ok(Err(format!("dockerd does not work here: {reason}")))
    }

    /// Asks the daemon to end, with its containers, and waits for it.
    fn stop(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        terminate(self.workspace, self.child.id())?;
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
            thread::sleep(POLL_INTERVAL);
        }
        self.child.kill()?;
        self.child.wait()?;
        bail!("it did not end when it was asked to")
    }
}

impl Drop for Private<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("error: cannot stop dockerd: {error:#}");
        }
        unmount_network(&self.directory);
        if let Err(error) = fs::remove_dir_all(&self.directory) {
            eprintln!("error: cannot remove {}: {error}", self.directory.display());
        }
    }
}

/// Removes the mount that a daemon leaves after containers used the host's network.
fn unmount_network(directory: &Path) {
    let mounted = directory.join("exec/netns/default");
    if mounted.exists() {
        process::succeeds(Command::new("umount").arg(mounted));
    }
}

/// Ends a daemon that still uses our images although the run that started it is gone.
fn end_left_over(workspace: &Workspace, pidfile: &Path, data: &Path) -> Result<()> {
    let Some(pid) = fs::read_to_string(pidfile)
        .ok()
        .and_then(|text| text.trim().parse::<u32>().ok())
    else {
        return Ok(());
    };
    let line = PathBuf::from(format!("/proc/{pid}/cmdline"));
    let data = data.as_os_str().as_encoded_bytes();
    // Another process may have this pid by now.
    let ours = || {
        fs::read(&line).is_ok_and(|line| {
            line.starts_with(b"dockerd\0") && line.windows(data.len()).any(|part| part == data)
        })
    };
    if !ours() {
        return Ok(());
    }
    println!("an earlier run left dockerd behind; ending it");
    terminate(workspace, pid)?;
    let start = Instant::now();
    while ours() {
        if start.elapsed() > PATIENCE {
            bail!("dockerd of an earlier run does not end; end process {pid}");
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Removes the directories of killed runs.
fn remove_left_over(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(DIRECTORY));
        let is_left = pid.is_some_and(|pid| pid.parse::<u32>().is_ok())
            && !Path::new("/proc").join(pid.unwrap_or_default()).exists();
        if !is_left {
            continue;
        }
        unmount_network(&entry.path());
        if let Err(error) = fs::remove_dir_all(entry.path()) {
            eprintln!("error: cannot remove {}: {error}", entry.path().display());
        }
    }
}

fn terminate(workspace: &Workspace, pid: u32) -> Result<()> {
    process::run(workspace.command("kill")?.args(["-TERM", &pid.to_string()]))
}

/// Returns the line of a daemon's log that says why it ended.
fn last_words(log: &str) -> String {
    let last = log.lines().rfind(|line| !line.trim().is_empty());
    let last = last.unwrap_or("it says nothing").trim();
    last.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn the_last_line_is_the_reason() {
        assert_eq!(last_words("a\nfailed to mount\n\n"), "failed to mount");
        assert_eq!(last_words(""), "it says nothing");
        assert_eq!(last_words(&"x".repeat(900)).len(), 200);
    }

    #[test]
    fn only_directories_of_dead_runs_are_removed() {
        let temporary = Scratch::temporary("dead").unwrap();
        let dead = temporary.join(format!("{DIRECTORY}{}", u32::MAX));
        let alive = temporary.join(format!("{DIRECTORY}{}", std::process::id()));
        let other = temporary.join(format!("{DIRECTORY}x"));
        for directory in [&dead, &alive, &other] {
            fs::create_dir_all(directory).unwrap();
        }
        remove_left_over(&temporary);
        assert!(!dead.exists() && alive.exists() && other.exists());
    }

    #[test]
    fn a_number_that_is_somebody_elses_is_left_alone() {
        let directory = Scratch::temporary("left").unwrap();
        let pidfile = directory.join("pid");
        let workspace = Workspace::discover().unwrap();
        for text in ["", "nonsense", "1", &std::process::id().to_string()] {
            fs::write(&pidfile, text).unwrap();
            end_left_over(&workspace, &pidfile, &directory).unwrap();
        }
    }
}
