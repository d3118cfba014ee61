//! A daemon that dies and comes back. Each test starts its own.

use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use backend_docker::{Daemon, DockerSandbox, Mode};
use backend_testkit::fails;

use crate::support::docker;
use crate::support::docker::until;

/// A daemon that keeps all its files in one directory.
struct OwnDaemon {
    directory: tempfile::TempDir,
    child: Child,
}

impl OwnDaemon {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let child = spawn(directory.path());
        let own = Self { directory, child };
        own.answers().await;
        own
    }

    fn socket(&self) -> String {
        format!("unix://{}/docker.sock", self.directory.path().display())
    }

    async fn answers(&self) {
        let address = self.socket();
        until("the daemon's answer", async || match Daemon::at(&address) {
            Ok(daemon) => daemon.info().await.is_ok(),
            Err(_) => false,
        })
        .await;
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        // Its containerd died with it. If it was not reaped, a new daemon would wait
        // for it.
        let _ = std::fs::remove_file(self.directory.path().join("exec/containerd/containerd.pid"));
    }

    /// Returns the processes that name its directory, and their children.
    fn helpers(&self) -> Vec<String> {
        let here = self.directory.path().to_str().unwrap();
        let ours = |directory: std::fs::DirEntry| {
            let pid = directory.file_name().into_string().ok()?;
            pid.parse::<u32>().ok()?;
            let line = std::fs::read_to_string(directory.path().join("cmdline")).ok()?;
            let children = format!("task/{pid}/children");
            let children = std::fs::read_to_string(directory.path().join(children));
            let mut all = vec![pid];
            all.extend(children.ok()?.split_whitespace().map(str::to_owned));
            line.contains(here).then_some(all)
        };
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes.filter_map(ours).flatten().collect()
    }
}

impl Drop for OwnDaemon {
    /// Shuts it down in order, so that its containers and helpers end too.
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.child.wait();
        // Processes and mounts left by a killed daemon.
        for pid in self.helpers() {
            let _ = Command::new("kill").args(["-9", &pid]).status();
        }
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let here = self.directory.path().to_str().unwrap();
        for place in mounts.lines().filter_map(|line| line.split(' ').nth(1)) {
            if place.starts_with(here) {
                let _ = Command::new("umount").args(["-l", place]).status();
            }
        }
    }
}

fn spawn(directory: &Path) -> Child {
    let place = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let log = File::options()
        .create(true)
        .append(true)
        .open(directory.join("log"))
        .unwrap();
    // In its own network namespace: a daemon without a bridge removes docker0, which
    // another daemon may use.
    Command::new("unshare")
        .args(["--net", "dockerd"])
        .args(["--data-root", &place("data"), "--exec-root", &place("exec")])
        .args([
            "--pidfile",
            &place("pid"),
            "-H",
            &format!("unix://{}", place("docker.sock")),
        ])
        .args(["--bridge=none", "--iptables=false", "--ip-forward=false"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("dockerd is installed by `cargo xtask test-all --provision`")
}

/// Imports an image into the daemon with nothing but busybox in it.
fn import(address: &str, directory: &Path) {
    let image = directory.join("image.tar");
    let file = File::create(&image).unwrap();
    let saved = Command::new("docker")
        .env("DOCKER_HOST", docker::variable("DOCKER_HOST"))
        .args(["save", &docker::busybox()])
        .stdout(file)
        .status();
    assert!(saved.unwrap().success());
    let loaded = Command::new("docker")
        .env("DOCKER_HOST", address)
        .args(["load", "-q", "-i", image.to_str().unwrap()])
        .stdout(Stdio::null())
        .status();
    assert!(loaded.unwrap().success());
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_killed_daemon_is_told_and_everything_goes_on_when_it_is_back() {
    let mut own = OwnDaemon::start().await;
    import(&own.socket(), own.directory.path());
    let sandbox = |mode| {
        DockerSandbox::builder()
            .daemon(Daemon::at(&own.socket()).unwrap())
            .image(docker::busybox())
            .agent(docker::agent())
            .mode(mode)
            .reap_leftovers(false)
            .build()
            .unwrap()
    };
    let both = [sandbox(Mode::Agent), sandbox(Mode::Portable)];
    for sandbox in &both {
        sandbox.write_file("a.txt", "one\n").await.unwrap();
    }
    own.kill();
    for sandbox in &both {
        // The stream into the container went through the daemon.
        let mut last = None;
        for _ in 0..2 {
            last = sandbox.read_to_string("a.txt").await.err();
        }
        let error = last.expect("nothing answers without a daemon");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("dockerd"), "{}", error.chain());
        fails(ErrorKind::Unavailable, sandbox.is_alive().await);
        let stopped = sandbox.stop(backend_core::ops::StopMode::Keep).await;
        fails(ErrorKind::Unavailable, stopped);
    }
    own.child = spawn(own.directory.path());
    own.answers().await;
    for sandbox in &both {
        let read = sandbox.read_to_string("a.txt").await.unwrap();
        assert_eq!(read, "one\n");
        docker::purge(sandbox).await;
    }
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_socket_without_a_daemon_or_without_the_right_to_it() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("docker.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let daemon = Daemon::at(&format!("unix://{}", socket.display())).unwrap();
    let error = fails(ErrorKind::Unavailable, daemon.info().await);
    assert!(
        error.to_string().contains("is not running"),
        "{}",
        error.chain()
    );
    // Root may connect to anything. The message for other users has a unit test.
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o000)).unwrap();
    std::fs::remove_file(&socket).unwrap();
    let error = fails(ErrorKind::Unavailable, daemon.info().await);
    assert!(
        error.to_string().contains("start dockerd"),
        "{}",
        error.chain()
    );
}
