//! A machine that is created on demand: which mode serves it, when it is stopped, and whether
//! a killed command has ended alone.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use backend_core::ops::{Command, CommandStatus, StopMode};
use backend_core::{Backend as _, BackendExt as _, Error, ErrorKind, Result, Sandbox as _, VPath};
use sandbox_shell::{HostedMachine, HostedSandbox, Mode};
use sandbox_wire::{Machine, Process, Spawn};
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::support::host_machine::{HostMachine, host_path};

/// This host, as a machine that is created on demand.
#[derive(Debug, Clone)]
struct Hosted {
    host: Arc<HostMachine>,
    missing_agent: Option<&'static str>,
    /// Added to the number of the run whenever it is asked for.
    restarts: u64,
    run: Arc<AtomicU64>,
    stopped: Arc<Notify>,
}

#[async_trait]
impl Machine for Hosted {
    fn name(&self) -> Cow<'static, str> {
        "hosted".into()
    }

    fn id(&self) -> String {
        self.host.id()
    }

    fn working_dir(&self) -> VPath {
        self.host.working_dir()
    }

    async fn start(&self) -> Result<()> {
        self.host.start().await
    }

    async fn stop(&self, mode: StopMode) -> Result<()> {
        self.host.stop(mode).await?;
        self.stopped.notify_one();
        Ok(())
    }

    async fn is_alive(&self) -> Result<bool> {
        self.host.is_alive().await
    }

    async fn spawn(&self, program: Spawn) -> Result<Process> {
        self.host.spawn(program).await
    }
}

#[async_trait]
impl HostedMachine for Hosted {
    type Run = u64;

    fn current_run(&self) -> u64 {
        self.run.fetch_add(self.restarts, Ordering::SeqCst)
    }

    fn is_running(&self) -> bool {
        true
    }

    async fn start_explicit(&self) -> Result<()> {
        self.start().await
    }

    async fn missing_agent(&self) -> Result<Option<&'static str>> {
        Ok(self.missing_agent)
    }

    fn ended_meanwhile(&self) -> Error {
        Error::unavailable("it ended")
    }
}

fn machine() -> (Hosted, TempDir) {
    let place = tempfile::tempdir().unwrap();
    let machine = Hosted {
        host: Arc::new(HostMachine::new(place.path(), host_path())),
        missing_agent: Some("there is none"),
        restarts: 0,
        run: Arc::default(),
        stopped: Arc::default(),
    };
    (machine, place)
}

#[tokio::test]
async fn the_portable_mode_serves_where_no_agent_can() {
    let (machine, _place) = machine();
    let with_agent = Hosted {
        missing_agent: None,
        ..machine.clone()
    };
    for mode in [Mode::Auto, Mode::Portable] {
        let sandbox = HostedSandbox::new(machine.clone(), mode, None);
        assert_eq!(sandbox.info().name, "hosted");
        sandbox.write_file("a.txt", "one\n").await.unwrap();
        assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "one\n");
    }
    // This machine takes no agent, which is told only when one is to be placed.
    for (machine, mode) in [(with_agent, Mode::Auto), (machine, Mode::Agent)] {
        let sandbox = HostedSandbox::new(machine, mode, None);
        let error = sandbox.read_to_string("a.txt").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
}

#[tokio::test]
async fn an_idle_one_is_stopped_and_wakes_up() {
    let (machine, _place) = machine();
    let stopped = Arc::clone(&machine.stopped);
    let idle = Duration::from_millis(50);
    let sandbox = HostedSandbox::new(machine, Mode::Auto, Some(idle));
    for content in ["one", "two"] {
        sandbox.write_file("a.txt", content).await.unwrap();
        stopped.notified().await;
        assert!(!sandbox.is_alive().await.unwrap());
    }
    assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "two");
    sandbox.stop(StopMode::Keep).await.unwrap();
}

#[tokio::test]
async fn a_killed_command_is_a_result_unless_its_machine_ended() {
    let (machine, _place) = machine();
    let killed = || Command::new("kill -KILL $$");
    let sandbox = HostedSandbox::new(machine.clone(), Mode::Portable, None);
    let outcome = sandbox.execute(killed()).await.unwrap();
    assert_eq!(outcome.status, CommandStatus::Signalled(9));
    let restarted = Hosted {
        restarts: 1,
        ..machine
    };
    let sandbox = HostedSandbox::new(restarted, Mode::Portable, None);
    let error = sandbox.execute(killed()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(error.message(), "it ended");
}
