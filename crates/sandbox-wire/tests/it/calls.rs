//! Dropped calls, calls with a lost channel, and the sandbox that keeps working
//! after them.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use backend_core::ops::{
    Command, Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, Event, GlobQuery,
    GrepQuery, LsOptions, ReadOptions, RenameOptions, ResolveOptions, ShellId, StatOptions,
    StopMode, TextOptions, WriteOptions,
};
use backend_core::{
    Backend, BackendExt as _, Edit, Error, ErrorKind, Operation, Result, Sandbox as _, VPath,
};
use backend_local::{Commands, LocalBackend, Supervisor};
use backend_state::StateBackend;
use backend_testkit::fake::Intercepted;
use backend_testkit::{fails, path};
use bytes::Bytes;
use futures::future::{BoxFuture, join_all};
use futures::{FutureExt as _, StreamExt as _, stream};
use sandbox_wire::{AgentOptions, AgentSandbox};
use tokio::sync::mpsc;

use crate::support::hanging::{Hanging, Seen};
use crate::support::pipe::{PipeMachine, piped};

type Piped = AgentSandbox<PipeMachine>;

fn boxed<'a, T>(call: impl Future<Output = Result<T>> + Send + 'a) -> BoxFuture<'a, Option<Error>> {
    async { call.await.err() }.boxed()
}

type Calls<'a> = Vec<(&'static str, BoxFuture<'a, Option<Error>>)>;

/// Returns one call of each kind, all of which hang.
fn every_call(sandbox: &Piped) -> Calls<'_> {
    let mut calls = file_calls(sandbox);
    calls.extend(command_calls(sandbox));
    calls
}

fn file_calls(s: &Piped) -> Calls<'_> {
    let (a, b) = (path("/a"), path("/b"));
    // Each call has its own copy of the path that it borrows.
    macro_rules! call {
        ($method:ident $(, $argument:expr)*) => {{
            let a = a.clone();
            (stringify!($method), boxed(async move { s.$method(&a $(, $argument)*).await }))
        }};
    }
    let (root, to, too) = (VPath::root(), b.clone(), b);
    vec![
        call!(resolve, ResolveOptions::default()),
        call!(stat, StatOptions::default()),
        call!(ls, LsOptions::default()),
        call!(read, ReadOptions::default()),
        call!(read_text, TextOptions::default()),
        call!(write, "x".into(), WriteOptions::default()),
        call!(write, endless(), WriteOptions::default()),
        call!(edit, &[Edit::new("a", "b")], EditOptions::default()),
        call!(create_dir, CreateDirOptions::default()),
        call!(delete, DeleteOptions::default()),
        call!(rename, &to, RenameOptions::default()),
        call!(copy, &too, CopyOptions::default()),
        ("glob", boxed(s.glob(GlobQuery::new("*", root.clone())))),
        ("grep", boxed(s.grep(GrepQuery::new("x", root)))),
    ]
}

fn command_calls(s: &Piped) -> Calls<'_> {
    let id = || ShellId::new("bg_1");
    let stream = async {
        let mut events = s.stream(Command::new("x")).await?;
        while let Some(event) = events.next().await {
            let event = event?;
            assert!(matches!(event, Event::Stdout(_)), "{event:?}");
        }
        Ok(())
    };
    let wait = Duration::from_secs(1);
    vec![
        ("execute", boxed(s.execute(Command::new("x")))),
        ("stream", boxed(stream)),
        ("shell_start", boxed(s.shell_start(Command::new("x")))),
        (
            "shell_read",
            boxed(async move { s.shell_read(&id(), wait).await }),
        ),
        (
            "shell_write",
            boxed(async move { s.shell_write(&id(), None).await }),
        ),
        (
            "shell_kill",
            boxed(async move { s.shell_kill(&id()).await }),
        ),
        ("shell_list", boxed(s.shell_list())),
    ]
}

fn endless() -> Content {
    let piece = || Ok(Bytes::from_static(&[7; 4096]));
    Content::Stream(stream::repeat_with(piece).boxed())
}

fn hanging() -> (Piped, mpsc::UnboundedReceiver<Seen>) {
    let (backend, seen) = Hanging::new();
    (piped(backend), seen)
}

/// Waits for `seen` while `call` runs.
async fn until<T>(call: &mut (impl Future<Output = T> + Unpin), seen: impl Future) {
    tokio::select! {
        _ = call => panic!("the call ended"),
        _ = seen => {}
    }
}

#[tokio::test]
async fn a_dropped_call_is_dropped_at_the_other_end() {
    let (sandbox, mut seen) = hanging();
    for (name, mut call) in every_call(&sandbox) {
        until(&mut call, async {
            assert_eq!(seen.recv().await, Some(Seen::Began(name)));
        })
        .await;
        drop(call);
        assert_eq!(seen.recv().await, Some(Seen::Dropped(name)));
    }
    assert_eq!(sandbox.machine().spawned(), 1);
}

/// A call ends without its runtime, even if it never had one.
#[test]
fn a_dropped_call_needs_no_runtime() {
    let (sandbox, mut seen) = hanging();
    let mut call = boxed(sandbox.execute(Command::new("x")));
    assert!(call.as_mut().now_or_never().is_none());
    let began = futures::executor::block_on(async {
        tokio::select! { _ = &mut call => None, seen = seen.recv() => seen }
    });
    assert_eq!(began, Some(Seen::Began("execute")));
    drop(call);
    assert_eq!(seen.blocking_recv(), Some(Seen::Dropped("execute")));
}

#[test]
fn calls_can_be_polled_by_any_executor() {
    let sandbox = piped(StateBackend::new());
    futures::executor::block_on(async {
        sandbox.write_file("a.txt", "hello").await.unwrap();
        assert_eq!(sandbox.read_bytes("a.txt").await.unwrap(), "hello");
    });
}

/// Each request is a way there and back. Nothing is looked up first, on either side.
#[tokio::test]
async fn reading_and_changing_a_file_is_one_request_each() {
    let (backend, served) = Intercepted::recording(StateBackend::new());
    let sandbox = piped(backend);
    let operations = || {
        let calls = served.taken().into_iter();
        calls.map(|call| call.operation).collect::<Vec<_>>()
    };
    sandbox.write_file("a.txt", "one").await.unwrap();
    assert_eq!(operations(), [Operation::Write]);
    sandbox.replace_text("a.txt", "one", "two").await.unwrap();
    assert_eq!(operations(), [Operation::Edit]);
    assert_eq!(sandbox.read_bytes("a.txt").await.unwrap(), "two");
    assert_eq!(operations(), [Operation::Read]);
}

#[tokio::test]
async fn a_lost_channel_is_told_to_every_call_and_opened_again_for_the_next() {
    let (sandbox, mut seen) = hanging();
    let machine = Arc::clone(sandbox.machine());
    let calls = every_call(&sandbox);
    let count = calls.len();
    let calls = join_all(calls.into_iter().map(|(_, call)| call));
    let killed = async {
        for _ in 0..count {
            assert!(matches!(seen.recv().await, Some(Seen::Began(_))));
        }
        machine.kill_agents();
    };
    let (errors, ()) = futures::join!(calls, killed);
    for error in errors {
        let error = error.unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(
            error.to_string().contains("channel to the agent was lost"),
            "{error}"
        );
        assert!(error.to_string().starts_with("pipe: "), "{error}");
    }
    // Every operation was dropped, and none was sent again.
    for _ in 0..count {
        assert!(matches!(seen.recv().await, Some(Seen::Dropped(_))));
    }
    assert_eq!(machine.spawned(), 1);
    let mut call = pin!(sandbox.shell_list());
    until(&mut call, async {
        assert_eq!(seen.recv().await, Some(Seen::Began("shell_list")));
    })
    .await;
    assert_eq!(machine.spawned(), 2);
}

#[tokio::test]
async fn the_machine_is_asked_first_why_a_channel_was_lost() {
    let (sandbox, mut seen) = hanging();
    let machine = Arc::clone(sandbox.machine());
    *machine.diagnosis.lock().unwrap() = Some("somebody removed the container".into());
    let killed = async {
        seen.recv().await;
        machine.kill_agents();
    };
    let (outcome, ()) = futures::join!(sandbox.execute(Command::new("x")), killed);
    let error = outcome.unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("somebody removed the container"),
        "{error}"
    );
}

#[tokio::test]
async fn first_calls_share_one_channel() {
    let sandbox = piped(StateBackend::new());
    let mut first = boxed(sandbox.exists("a"));
    // On a busy machine even this can be long enough for an answer.
    let _ = first.as_mut().now_or_never();
    let mut others = join_all((0..20).map(|_| sandbox.exists("a")));
    let early = (&mut others).now_or_never();
    // The call that began it may go. The others still get it.
    drop(first);
    let answers = match early {
        Some(answers) => answers,
        None => others.await,
    };
    assert!(answers.into_iter().all(|exists| !exists.unwrap()));
    assert_eq!(sandbox.machine().spawned(), 1);
    assert_eq!(sandbox.agent().unwrap().pid, std::process::id());
}

/// Each call is a separate task, which nothing else wakes.
#[tokio::test]
async fn a_stop_is_told_to_calls_and_the_sandbox_can_be_used_again() {
    let (sandbox, mut seen) = hanging();
    let sandbox = Arc::new(sandbox);
    let (one, two) = (Arc::clone(&sandbox), Arc::clone(&sandbox));
    let calls = [
        tokio::spawn(async move { one.execute(Command::new("x")).await.map(drop) }),
        tokio::spawn(async move {
            let file = path("/a");
            let written = two.write(&file, endless(), WriteOptions::default());
            written.await.map(drop)
        }),
    ];
    for _ in &calls {
        assert!(matches!(seen.recv().await, Some(Seen::Began(_))));
    }
    sandbox.stop(StopMode::Keep).await.unwrap();
    assert!(!sandbox.is_alive().await.unwrap());
    for call in calls {
        let error = fails(ErrorKind::Unavailable, call.await.unwrap());
        let text = error.to_string();
        assert!(text.contains("the sandbox was stopped"), "{text}");
    }
    assert!(sandbox.agent().is_none());
    sandbox.start().await.unwrap();
    assert!(sandbox.is_alive().await.unwrap());
    assert_eq!(sandbox.machine().spawned(), 2);
}

#[tokio::test]
async fn what_exceeds_the_calls_at_once_waits() {
    let (backend, mut seen) = Hanging::new();
    let machine = Arc::new(PipeMachine::new(Arc::new(backend)));
    let sandbox = AgentSandbox::new(machine, AgentOptions::default().calls(1));
    let mut one = boxed(sandbox.execute(Command::new("x")));
    until(&mut one, seen.recv()).await;
    let mut two = boxed(sandbox.shell_list());
    assert!(two.as_mut().now_or_never().is_none());
    drop(one);
    assert_eq!(seen.recv().await, Some(Seen::Dropped("execute")));
    until(&mut two, async {
        assert_eq!(seen.recv().await, Some(Seen::Began("shell_list")));
    })
    .await;
}

/// A shell is a command too: the sandbox is in use as long as it runs.
#[tokio::test]
async fn a_shell_in_the_background_is_activity() {
    let directory = tempfile::tempdir().unwrap();
    let commands = Commands::default().supervisor(Supervisor::None);
    let local = LocalBackend::builder(directory.path()).enable_execute(true);
    let local = local.commands(commands).open().unwrap();
    let machine = Arc::new(PipeMachine::new(Arc::new(local)));
    let options = AgentOptions::default().heartbeat(Duration::from_millis(5));
    let sandbox = AgentSandbox::new(machine, options);
    let shell = sandbox
        .shell_start(Command::new("sleep 1000"))
        .await
        .unwrap();
    let began = sandbox.last_activity();
    while sandbox.last_activity() == began {
        tokio::task::yield_now().await;
    }
    sandbox.shell_kill(&shell.id).await.unwrap();
}
