use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backend_core::ErrorKind;
use backend_core::ops::{Command, CommandStatus, Event, ShellState, StopMode};
use backend_local::{Commands, LocalBackend, Supervisor};
use backend_sync::{Cancel, Engine, SyncBackend, SyncSandbox, SyncStream};
use backend_testkit::fails;
use tokio::runtime::{Builder, Runtime};

use crate::support::slow::in_time;

fn sandbox() -> (SyncSandbox, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let commands = Commands::default().supervisor(Supervisor::None);
    let local = LocalBackend::builder(directory.path())
        .enable_execute(true)
        .commands(commands)
        .open()
        .unwrap();
    let sandbox = SyncBackend::new(Arc::new(local)).as_sandbox().unwrap();
    (sandbox, directory)
}

fn single() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

/// Prints its process id and keeps running.
const STAYS: &str = "echo $$; exec sleep 1000";

/// Returns the process id that a command prints first.
fn pid(events: &mut SyncStream<Event>) -> u32 {
    match events.next().unwrap().unwrap() {
        Event::Stdout(line) => String::from_utf8_lossy(&line).trim().parse().unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Waits until a process is gone.
fn gone(pid: u32) {
    let stat = format!("/proc/{pid}/stat");
    let is_dead = |stat: String| stat.contains(") Z ");
    while Path::new(&stat).exists() && !std::fs::read_to_string(&stat).is_ok_and(is_dead) {
        std::thread::yield_now();
    }
}

fn runs(sandbox: &SyncSandbox) {
    let outcome = sandbox.execute(Command::new("echo out; exit 3")).unwrap();
    assert_eq!(outcome.status, CommandStatus::Exited(3));
    assert_eq!(outcome.stdout.text(), "out\n");

    let mut events = sandbox
        .stream(Command::new("echo one; echo two >&2"))
        .unwrap();
    let (mut out, mut err, mut ended) = (Vec::new(), Vec::new(), None);
    for event in events.by_ref() {
        match event.unwrap() {
            Event::Stdout(piece) => out.extend_from_slice(&piece),
            Event::Stderr(piece) => err.extend_from_slice(&piece),
            Event::Ended(outcome) => ended = Some(outcome.status),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((&out[..], &err[..]), (&b"one\n"[..], &b"two\n"[..]));
    assert_eq!(ended, Some(CommandStatus::Exited(0)));
    assert!(events.next().is_none(), "the end stays the end");

    // Files and commands share one directory.
    sandbox.write_file("a.txt", "hello\n").unwrap();
    let outcome = sandbox.execute(Command::new("cat a.txt")).unwrap();
    assert_eq!(outcome.stdout.text(), "hello\n");
}

#[test]
fn commands_run_from_threads_and_runtimes() {
    in_time(|| {
        let (sandbox, _directory) = sandbox();
        runs(&sandbox);
        let inside = sandbox.clone();
        single().block_on(async move { runs(&inside) });
        assert!(sandbox.id().starts_with("local-"));
        sandbox.start().unwrap();
        assert!(sandbox.is_alive().unwrap());
        sandbox.last_activity().elapsed().unwrap();
        sandbox.stop(StopMode::Keep).unwrap();
    });
}

#[test]
fn shells_are_read_and_written() {
    in_time(|| {
        let (sandbox, _directory) = sandbox();
        let shell = sandbox.shell_start(Command::new("cat")).unwrap();
        sandbox
            .shell_write(&shell.id, Some("hello\n".into()))
            .unwrap();
        let output = sandbox
            .shell_read(&shell.id, Duration::from_secs(60))
            .unwrap();
        assert_eq!(&output.stdout[..], b"hello\n");
        let mut attached = sandbox.shell_attach(&shell.id).unwrap();
        attached.outgoing.send("again\n").unwrap();
        let piece = attached.incoming.next().unwrap().unwrap();
        assert_eq!(&piece[..], b"again\n");
        drop(attached);
        assert_eq!(sandbox.shell_list().unwrap().len(), 1);
        assert!(sandbox.shell_kill(&shell.id).unwrap());
        let output = sandbox.shell_read(&shell.id, Duration::ZERO).unwrap();
        assert_ne!(output.state, ShellState::Running);
    });
}

#[test]
fn a_port_is_read_and_written() {
    in_time(|| {
        let (sandbox, _directory) = sandbox();
        let server = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        // Answers with what it got, once all of it is there.
        let answering = std::thread::spawn(move || {
            let (mut client, _) = server.accept().unwrap();
            let mut got = Vec::new();
            client.read_to_end(&mut got).unwrap();
            client.write_all(&got).unwrap();
        });
        let mut connection = sandbox.connect(port).unwrap();
        assert!(format!("{connection:?}").contains("SyncOutgoing"));
        for piece in ["one ", "two"] {
            connection.outgoing.send(piece).unwrap();
        }
        connection.outgoing.finish().unwrap();
        let pieces = connection.incoming.by_ref().collect::<Result<Vec<_>, _>>();
        assert_eq!(pieces.unwrap().concat(), b"one two");
        answering.join().unwrap();
        fails(ErrorKind::NotFound, sandbox.connect(port).map(drop));
    });
}

#[test]
fn commands_see_the_paths_of_the_machine() {
    in_time(|| {
        let (sandbox, directory) = sandbox();
        let root = backend_core::VPath::root();
        let names = sandbox.command_names(&root);
        let (_, there) = names.roots().first().unwrap();
        let real = directory.path().canonicalize().unwrap();
        assert_eq!(Path::new(there.as_str()), real);
    });
}

#[test]
fn dropping_an_iterator_ends_the_command() {
    in_time(|| {
        let (sandbox, _directory) = sandbox();
        let mut events = sandbox.stream(Command::new(STAYS)).unwrap();
        let first = pid(&mut events);
        drop(events);
        gone(first);
        let inside = sandbox.clone();
        let second = single().block_on(async move {
            let mut events = inside.stream(Command::new(STAYS)).unwrap();
            let second = pid(&mut events);
            drop(events);
            second
        });
        gone(second);
    });
}

#[test]
fn cancelling_ends_commands_that_are_waited_for() {
    in_time(|| {
        let (sandbox, _directory) = sandbox();
        let cancel = Cancel::new();
        let mut events = sandbox
            .clone()
            .cancelled_by(&cancel)
            .stream(Command::new(STAYS))
            .unwrap();
        let started = pid(&mut events);
        let waiting = std::thread::spawn(move || {
            let error = events.next().unwrap().unwrap_err();
            (error.kind(), events.next().is_none())
        });
        cancel.cancel();
        assert_eq!(waiting.join().unwrap(), (ErrorKind::Cancelled, true));
        gone(started);
        // Other handles still work.
        runs(&sandbox);
    });
}

#[test]
fn an_iterator_in_a_task_of_the_borrowed_runtime_ends_with_one_error() {
    in_time(|| {
        let runtime = Runtime::new().unwrap();
        let (sandbox, _directory) = sandbox();
        let sandbox = sandbox.on(&Engine::borrowed(runtime.handle()).unwrap());
        let mut events = sandbox.stream(Command::new(STAYS)).unwrap();
        let started = pid(&mut events);
        let rest = runtime.block_on(async move { events.collect::<Vec<_>>() });
        assert_eq!(rest.len(), 1);
        fails(ErrorKind::Unsupported, rest.into_iter().next().unwrap());
        gone(started);
    });
}
