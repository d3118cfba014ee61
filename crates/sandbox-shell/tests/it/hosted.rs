//! A machine that is created on demand: which mode serves it, when it is started, stopped and
//! closed, and whether a killed command has ended alone.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_core::ops::{Command, CommandStatus, Event, ShellState, StopMode};
use backend_core::sync::lock;
use backend_core::{
    Backend as _, BackendExt as _, Error, ErrorKind, Operation, Result, Sandbox as _, TracedPath,
    VPath,
};
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::StreamExt as _;
use sandbox_shell::{HostedMachine, HostedSandbox, Mode};
use sandbox_wire::{Machine, Process, Spawn};
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::support::host_machine::{HostMachine, host_path};

/// This host, as a machine that is created on demand. It writes down its steps, and those of
/// `failing` fail.
#[derive(Debug, Clone)]
struct Hosted {
    host: Arc<HostMachine>,
    missing_agent: Option<&'static str>,
    /// The reason why it no longer answers.
    diagnosis: Option<&'static str>,
    /// Added to the number of the run whenever it is asked for.
    restarts: u64,
    /// The number of starts, and of unnoticed restarts.
    run: Arc<AtomicU64>,
    running: Arc<AtomicBool>,
    steps: Arc<Mutex<Vec<&'static str>>>,
    failing: Arc<Mutex<BTreeSet<&'static str>>>,
    /// Told after each stop, also one that failed, and after the end.
    stopped: Arc<Notify>,
}

impl Hosted {
    /// # Errors
    ///
    /// `Unavailable` with the name of the step if it is one that fails.
    fn step(&self, step: &'static str) -> Result<()> {
        lock(&self.steps).push(step);
        if lock(&self.failing).contains(step) {
            return Err(Error::unavailable(step));
        }
        Ok(())
    }

    /// Takes the steps so far.
    fn steps(&self) -> Vec<&'static str> {
        std::mem::take(&mut *lock(&self.steps))
    }

    fn fail(&self, step: &'static str) {
        lock(&self.failing).insert(step);
    }

    fn recover(&self) {
        lock(&self.failing).clear();
    }
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
        self.step("start")?;
        if !self.running.swap(true, Ordering::SeqCst) {
            self.run.fetch_add(1, Ordering::SeqCst);
        }
        self.host.start().await
    }

    async fn stop(&self, mode: StopMode) -> Result<()> {
        let step = self.step(match mode {
            StopMode::Keep => "stop",
            StopMode::Purge => "remove",
        });
        if step.is_ok() {
            self.running.store(false, Ordering::SeqCst);
            self.host.stop(mode).await?;
        }
        self.stopped.notify_one();
        step
    }

    async fn is_alive(&self) -> Result<bool> {
        if lock(&self.failing).contains("look") {
            return Err(Error::unavailable("look"));
        }
        self.host.is_alive().await
    }

    async fn spawn(&self, program: Spawn) -> Result<Process> {
        // Only the shells that serve file operations have an input.
        if program.stdin && lock(&self.failing).contains("serve files") {
            return Err(Error::unavailable("serve files"));
        }
        self.host.spawn(program).await
    }

    async fn diagnose(&self) -> Option<Error> {
        self.diagnosis.map(Error::unavailable)
    }
}

#[async_trait]
impl HostedMachine for Hosted {
    type Run = u64;

    fn current_run(&self) -> u64 {
        self.run.fetch_add(self.restarts, Ordering::SeqCst)
    }

    fn is_running(&self) -> bool {
        self.running.load(Ordering::SeqCst)
    }

    async fn start_explicit(&self) -> Result<()> {
        self.step("start, as asked")?;
        self.start().await
    }

    async fn missing_agent(&self) -> Result<Option<&'static str>> {
        self.step("look for an agent")?;
        Ok(self.missing_agent)
    }

    fn ended_meanwhile(&self) -> Error {
        Error::unavailable("it ended")
    }

    fn close(&self) -> Option<BoxFuture<'static, Result<()>>> {
        let closed = self.step("close");
        let stopped = Arc::clone(&self.stopped);
        let closing = async move {
            stopped.notify_one();
            closed
        };
        Some(closing.boxed())
    }
}

fn machine() -> (Hosted, TempDir) {
    let place = tempfile::tempdir().unwrap();
    let machine = Hosted {
        host: Arc::new(HostMachine::new(place.path(), host_path())),
        missing_agent: Some("there is none"),
        diagnosis: None,
        restarts: 0,
        run: Arc::default(),
        running: Arc::default(),
        steps: Arc::default(),
        failing: Arc::default(),
        stopped: Arc::default(),
    };
    (machine, place)
}

fn portable(machine: &Hosted) -> HostedSandbox<Hosted> {
    HostedSandbox::new(machine.clone(), Mode::Portable, None)
}

/// Checks that a call failed in this step of the machine, as this operation.
#[track_caller]
fn failed<T>(done: Result<T>, step: &str, operation: Option<Operation>) {
    let error = done.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(error.message(), step);
    assert_eq!(error.operation(), operation, "{error}");
    assert_eq!(error.backend(), Some("hosted"), "{error}");
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

/// A command that ends with KILL, as one does that runs out of memory.
fn killed() -> Command {
    Command::new("kill -KILL $$")
}

#[tokio::test]
async fn a_killed_command_is_a_result_unless_its_machine_ended() {
    let (machine, _place) = machine();
    // The first command starts the machine, which must not be taken for its end.
    let outcome = portable(&machine).execute(killed()).await.unwrap();
    assert_eq!(outcome.status, CommandStatus::Signalled(9));
    let restarted = Hosted {
        restarts: 1,
        ..machine.clone()
    };
    let ran = portable(&restarted).execute(killed()).await;
    failed(ran, "it ended", Some(Operation::Execute));
    // It ended, and was not started again.
    machine.fail("serve files");
    let ran = portable(&machine).execute(killed()).await;
    failed(ran, "serve files", Some(Operation::Execute));
    let outcome = portable(&machine).execute(Command::new("exit 9")).await;
    let status = outcome.unwrap().status;
    assert_eq!(status, CommandStatus::Exited(9), "it is not asked about");
}

#[tokio::test]
async fn the_end_of_a_stream_is_judged_too() {
    let (machine, _place) = machine();
    let restarted = Hosted {
        restarts: 1,
        ..machine.clone()
    };
    let last_event = async |machine: &Hosted, line: &str| {
        let sandbox = portable(machine);
        let events = sandbox.stream(Command::new(line)).await.unwrap();
        let mut events: Vec<_> = events.collect().await;
        let last = events.pop().unwrap();
        let printed = events.into_iter().map(|event| match event.unwrap() {
            Event::Stdout(piece) => piece,
            other => panic!("{other:?}"),
        });
        assert_eq!(printed.collect::<Vec<_>>().concat(), b"one\n");
        last
    };
    let status = |event: Event| match event {
        Event::Ended(outcome) => outcome.status,
        other => panic!("{other:?}"),
    };
    let killed = "echo one; kill -KILL $$";
    let alone = last_event(&machine, killed).await.unwrap();
    assert_eq!(status(alone), CommandStatus::Signalled(9));
    let with_it = last_event(&restarted, killed).await;
    failed(with_it, "it ended", Some(Operation::Execute));
    let exited = last_event(&restarted, "echo one; exit 3").await.unwrap();
    assert_eq!(status(exited), CommandStatus::Exited(3));
}

#[tokio::test]
async fn an_exit_code_is_judged_by_what_the_machine_says() {
    let (machine, _place) = machine();
    let lost = Hosted {
        diagnosis: Some("it ran out of memory"),
        ..machine.clone()
    };
    let broken = || Err(Error::unavailable("the stream broke"));
    // The number of the run is still 0.
    for (machine, ended, run, judged) in [
        (&machine, Ok(0), 0, Ok(0)),
        (&machine, Ok(137), 0, Ok(137)),
        (&machine, Ok(137), 1, Err("it ended")),
        (&machine, broken(), 0, Err("the stream broke")),
        (&machine, broken(), 1, Err("it ended")),
        // These codes are the program's own, even if the machine has ended since.
        (&machine, Ok(1), 1, Ok(1)),
        (&lost, Ok(143), 0, Ok(143)),
        (&lost, Ok(137), 0, Err("it ran out of memory")),
        (&lost, Ok(137), 1, Err("it ran out of memory")),
        (&lost, broken(), 0, Err("it ran out of memory")),
    ] {
        let found = machine.judge_exit(ended, run).await;
        let found = found.map_err(|error| error.message().to_owned());
        assert_eq!(found, judged.map_err(str::to_owned));
    }
}

#[tokio::test]
async fn a_start_that_fails_is_told_and_the_next_call_tries_again() {
    let (machine, _place) = machine();
    let sandbox = portable(&machine);
    for mode in [StopMode::Keep, StopMode::Purge] {
        machine.fail("start");
        let ran = sandbox.execute(Command::new("true")).await;
        failed(ran, "start", Some(Operation::Start));
        let streamed = sandbox.stream(Command::new("true")).await;
        failed(streamed, "start", Some(Operation::Start));
        machine.recover();
        let outcome = sandbox.execute(Command::new("true")).await.unwrap();
        assert!(outcome.status.success());
        sandbox.stop(mode).await.unwrap();
    }
    machine.fail("start, as asked");
    let started = sandbox.start().await;
    failed(started, "start, as asked", Some(Operation::Start));
    machine.recover();
    machine.steps();
    sandbox.start().await.unwrap();
    assert_eq!(machine.steps()[0], "start, as asked");
    assert!(sandbox.is_alive().await.unwrap());
    machine.fail("look");
    failed(sandbox.is_alive().await, "look", None);
}

#[tokio::test]
async fn one_that_no_operation_has_used_can_be_stopped() {
    let (machine, _place) = machine();
    let sandbox = HostedSandbox::new(machine.clone(), Mode::Auto, None);
    sandbox.stop(StopMode::Purge).await.unwrap();
    machine.fail("stop");
    let stopped = sandbox.stop(StopMode::Keep).await;
    failed(stopped, "stop", Some(Operation::Stop));
    assert_eq!(machine.steps(), ["remove", "stop"], "it is not started");
}

#[tokio::test]
async fn the_mode_is_chosen_by_the_first_operation_that_can() {
    let (machine, _place) = machine();
    let sandbox = HostedSandbox::new(machine.clone(), Mode::Auto, None);
    let before = sandbox.info();
    machine.fail("look for an agent");
    for _ in 0..2 {
        let error = sandbox.write_file("a.txt", "one").await.unwrap_err();
        assert_eq!(error.message(), "look for an agent");
        assert_eq!(error.operation(), Some(Operation::Start));
    }
    machine.recover();
    machine.steps();
    let (one, two) = tokio::join!(
        sandbox.write_file("a.txt", "one"),
        sandbox.write_file("b.txt", "two"),
    );
    one.and(two).unwrap();
    assert!(machine.steps().contains(&"look for an agent"));
    assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "one");
    assert_eq!(sandbox.read_to_string("b.txt").await.unwrap(), "two");
    let outcome = sandbox.execute(Command::new("cat a.txt")).await.unwrap();
    assert_eq!(outcome.stdout.text(), "one");
    assert!(!machine.steps().contains(&"look for an agent"));
    // Until the mode is known, nothing that the agent can do is ruled out.
    let mut after = before.clone();
    let expected = &mut after.capabilities;
    for capability in [
        &mut expected.ports,
        &mut expected.watch,
        &mut expected.terminals,
    ] {
        assert!(std::mem::take(capability));
    }
    assert_eq!(sandbox.info(), after);
}

#[tokio::test]
async fn shells_and_links_are_those_of_the_machine() {
    let (machine, place) = machine();
    let sandbox = portable(&machine);
    std::os::unix::fs::symlink("/usr", place.path().join("link")).unwrap();
    let directory = sandbox.working_dir();
    let link = format!("{directory}/link/x");
    let traced = sandbox.trace(&directory, &[link]).await.unwrap();
    let expected = VPath::parse("/usr/x").unwrap();
    assert_eq!(traced, [TracedPath::Inside(expected)]);
    let shell = sandbox.shell_start(Command::new("cat")).await.unwrap().id;
    let input = Some("one\n".into());
    sandbox.shell_write(&shell, input).await.unwrap();
    let minute = Duration::from_secs(60);
    let read = sandbox.shell_read(&shell, minute).await.unwrap();
    assert_eq!(&read.stdout[..], b"one\n");
    assert!(sandbox.shell_kill(&shell).await.unwrap());
    let listed = sandbox.shell_list().await.unwrap();
    assert_eq!(listed[0].id, shell);
    assert_ne!(listed[0].state, ShellState::Running);
}

#[tokio::test]
async fn one_that_is_used_is_not_idle() {
    let (machine, _place) = machine();
    let stopped = Arc::clone(&machine.stopped);
    let idle = Duration::from_millis(50);
    let sandbox = HostedSandbox::new(machine.clone(), Mode::Portable, Some(idle));
    machine.fail("stop");
    let began = SystemTime::now();
    // If it were taken for idle meanwhile, the command would fail.
    let outcome = sandbox.execute(Command::new("sleep 0.5")).await.unwrap();
    assert!(outcome.status.success());
    assert!(sandbox.last_activity() >= began + outcome.duration);
    stopped.notified().await;
    assert!(sandbox.is_alive().await.unwrap(), "it could not be stopped");
    machine.recover();
    sandbox.write_file("a.txt", "one").await.unwrap();
    stopped.notified().await;
    assert!(!sandbox.is_alive().await.unwrap());
}

#[tokio::test]
async fn the_last_clone_closes_the_machine() {
    let (machine, _place) = machine();
    let sandbox = portable(&machine);
    let clone = sandbox.clone();
    drop(sandbox);
    assert_eq!(machine.steps(), [""; 0]);
    drop(clone);
    machine.stopped.notified().await;
    assert_eq!(machine.steps(), ["close"]);
    // The watcher for idle sandboxes does not keep one, and a failure is not the caller's.
    machine.fail("close");
    let hour = Some(Duration::from_secs(3600));
    let sandbox = HostedSandbox::new(machine.clone(), Mode::Portable, hour);
    sandbox.write_file("a.txt", "one").await.unwrap();
    drop(sandbox);
    machine.stopped.notified().await;
    assert_eq!(machine.steps().last(), Some(&"close"));
}
