//! The portable mode in a real container, through the `docker` program.
//!
//! Run by hand: `cargo test -p agentbox-sandbox-shell --test it container -- --ignored`.

use std::borrow::Cow;
use std::process::{Command as Program, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Backend, BackendExt as _, Result, VPath};
use backend_testkit::{CaseResult, Fixture, Need, check, run_all};
use sandbox_shell::PortableSandbox;
use sandbox_wire::{Machine, Process, Spawn};

use crate::support::pipes;

const BUSYBOX: &str = "agentbox-test/busybox:1";

/// A container, driven by the `docker` program.
#[derive(Debug)]
struct Container {
    id: String,
    directory: VPath,
    alive: AtomicBool,
}

impl Container {
    fn new(image: &str) -> Self {
        let made = Program::new("docker")
            .args([
                "run",
                "-d",
                "--init",
                "--network",
                "none",
                "--label",
                "part=portable",
            ])
            .args([image, "sh", "-c", "mkdir -p /workspace; exec sleep 100000"])
            .output()
            .unwrap();
        let id = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        assert!(!id.is_empty(), "{}", String::from_utf8_lossy(&made.stderr));
        Self {
            id,
            directory: VPath::parse("/workspace").unwrap(),
            alive: AtomicBool::new(false),
        }
    }

    fn sh(&self, directory: &VPath, line: &str) -> CaseResult {
        let done = Program::new("docker")
            .args(["exec", "-w", directory.as_str(), &self.id, "sh", "-c", line])
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        check!(done.status.success(), "{stderr}")
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = Program::new("docker")
            .args(["rm", "-f", &self.id])
            .stdout(Stdio::null())
            .status();
    }
}

#[async_trait]
impl Machine for Container {
    fn name(&self) -> Cow<'static, str> {
        "docker".into()
    }

    fn id(&self) -> String {
        self.id.clone()
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

    async fn spawn(&self, program: Spawn) -> Result<Process> {
        let directory = program.directory.unwrap_or_else(|| self.working_dir());
        let mut command = tokio::process::Command::new("docker");
        command.args(["exec", "-w", directory.as_str()]);
        if program.stdin {
            command.arg("-i");
        }
        for (name, value) in &program.environment {
            command.arg("-e").arg(format!("{name}={value}"));
        }
        command.arg(&self.id).args(&program.argv);
        pipes::start(command, program.stdin)
    }
}

struct ContainerFixture {
    sandbox: PortableSandbox<Container>,
}

#[async_trait]
impl Fixture for ContainerFixture {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(self.sandbox.clone())
    }

    fn provides(&self, need: Need) -> bool {
        matches!(
            need,
            Need::Write | Need::Times | Need::Commands | Need::Links | Need::Fifo | Need::Modes
        )
    }

    async fn make_link(&self, path: &VPath, target: &str) -> CaseResult {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        let line = format!("ln -s -- {} {}", quoted(target), quoted(path.as_str()));
        self.sandbox.machine().sh(&VPath::root(), &line)
    }

    async fn make_fifo(&self, path: &VPath) -> CaseResult {
        let line = format!("mkfifo '{path}'");
        self.sandbox.machine().sh(&VPath::root(), &line)
    }

    async fn set_mode(&self, path: &VPath, mode: u32) -> CaseResult {
        let line = format!("chmod {mode:o} '{path}'");
        self.sandbox.machine().sh(&VPath::root(), &line)
    }
}

/// Runs the conformance suite, each case in its own container.
async fn the_suite_passes_on(image: &str) {
    let report = run_all(async || ContainerFixture {
        sandbox: PortableSandbox::new(Arc::new(Container::new(image))),
    })
    .await;
    assert!(report.failed.is_empty(), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a Docker daemon"]
async fn the_suite_passes_on_busybox() {
    the_suite_passes_on(BUSYBOX).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a Docker daemon"]
async fn the_suite_passes_on_debian() {
    the_suite_passes_on("agentbox-test/python:1").await;
}

/// Operations cost less than starting a program would.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a Docker daemon"]
async fn operations_cost_little() {
    let sandbox = PortableSandbox::new(Arc::new(Container::new(BUSYBOX)));
    sandbox.write_file("first", "x").await.unwrap();
    let mut rows = Vec::new();
    let text = "x".repeat(1024);
    for _ in 0..20 {
        let began = Instant::now();
        sandbox.write_file("file", text.as_str()).await.unwrap();
        let wrote = began.elapsed();
        sandbox.read_bytes("file").await.unwrap();
        let read = began.elapsed();
        sandbox.list_dir(".").await.unwrap();
        let listed = began.elapsed();
        rows.push((wrote, read - wrote, listed - read));
    }
    rows.sort_unstable();
    let (wrote, read, listed) = rows[rows.len() / 2];
    assert!(read.as_millis() < 40, "read took {read:?}");
    assert!(wrote.as_millis() < 100, "write took {wrote:?}");
    assert!(listed.as_millis() < 40, "ls took {listed:?}");
}
