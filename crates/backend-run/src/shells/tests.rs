//! Tests of the end of shells, with commands that run until they are cancelled.

use std::pin::pin;
use std::sync::OnceLock;

use backend_core::ops::Command;
use futures::FutureExt as _;
use futures::executor::block_on;
use tokio::runtime::{Builder, Handle};

use super::*;
use crate::task::{CommandResult, Launched};
use backend_core::ErrorKind;

fn engine() -> Result<&'static Handle> {
    static ENGINE: OnceLock<Handle> = OnceLock::new();
    Ok(ENGINE.get_or_init(|| {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let handle = runtime.handle().clone();
        std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        handle
    }))
}

/// A command that waits for permission to start.
struct Endless {
    command: Command,
    may_start: Option<oneshot::Receiver<()>>,
    ended: Option<oneshot::Sender<()>>,
}

/// Returns a command, the permission for its start, and the news of its end.
fn endless() -> (Endless, oneshot::Sender<()>, oneshot::Receiver<()>) {
    let (start, may_start) = oneshot::channel();
    let (ended, has_ended) = oneshot::channel();
    let task = Endless {
        command: Command::new("endless"),
        may_start: Some(may_start),
        ended: Some(ended),
    };
    (task, start, has_ended)
}

impl Task for Endless {
    type Job = ();

    fn command(&self) -> &Command {
        &self.command
    }

    async fn launch(&mut self, _: RunMode) -> Result<Launched<()>> {
        self.may_start.take().unwrap().await.unwrap();
        Ok(Launched {
            job: (),
            pid: None,
            stdin: None,
            controls: None,
        })
    }

    async fn drive(
        &mut self,
        (): (),
        _: &mut Sinks,
        cancel: impl Future<Output = ()> + Send,
    ) -> Result<CommandResult> {
        cancel.await;
        self.ended.take().unwrap().send(()).unwrap();
        Ok(CommandResult {
            status: CommandStatus::Signalled(9),
            leftovers: 0,
            duration: Duration::ZERO,
            stopped: false,
        })
    }
}

#[test]
fn a_shell_that_starts_while_the_sandbox_stops_is_ended() {
    let shells = Shells::new(engine);
    let (task, start, has_ended) = endless();
    let mut starting = pin!(shells.start(task));
    assert!(starting.as_mut().now_or_never().is_none());
    shells.clear();
    start.send(()).unwrap();
    let error = block_on(starting).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    block_on(has_ended).unwrap();
    assert!(shells.list().is_empty());
}

#[test]
fn shells_end_with_the_sandbox() {
    let shells = Shells::new(engine);
    let (task, start, has_ended) = endless();
    start.send(()).unwrap();
    let shell = block_on(shells.start(task)).unwrap();
    assert_eq!(shells.list(), [shell]);
    drop(shells);
    block_on(has_ended).unwrap();
}

#[test]
fn a_detached_connection_cannot_write_and_a_shell_without_controls_takes_no_signal() {
    let shells = Shells::new(engine);
    let (task, start, _ended) = endless();
    start.send(()).unwrap();
    let shell = block_on(shells.start(task)).unwrap();
    let signalled = block_on(shells.signal(&shell.id, Signal::Interrupt));
    let error = signalled.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let mut connection = shells.attach(&shell.id).unwrap();
    // Finishing closes nothing.
    block_on(connection.outgoing.finish()).unwrap();
    drop(connection.incoming);
    let error = block_on(connection.outgoing.send("typed".into())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.message().contains("detached"), "{error}");
}
