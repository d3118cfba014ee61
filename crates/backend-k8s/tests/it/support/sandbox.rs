//! Running commands in a sandbox, and judging its answers.

use backend_core::ops::{Command, Event, ExecuteOutcome, StopMode};
use backend_core::{BackendExt as _, Error, ErrorKind, EventStream, Result, Sandbox as _};
use backend_k8s::{K8sSandbox, Mode};
use backend_testkit::fails;
use futures::StreamExt as _;

use super::place::Place;
use super::wait::{LOOK, until, within};

/// The words of a sandbox whose pod was deleted by other means than the library.
pub(crate) const DELETED: &[&str] = &["was deleted", "was evicted"];

/// Does something in both modes at once.
pub(crate) async fn in_both_modes(work: impl AsyncFn(Mode)) {
    futures::join!(work(Mode::Agent), work(Mode::Portable));
}

/// Runs a command that must succeed, and returns its output.
pub(crate) async fn run(sandbox: &K8sSandbox, line: &str) -> String {
    let outcome = outcome(sandbox, line).await.unwrap();
    let (out, err) = (outcome.stdout.text(), outcome.stderr.text());
    assert!(
        outcome.status.success(),
        "{line}: {}: {out}{err}",
        outcome.status
    );
    out.trim_end().to_owned()
}

pub(crate) async fn outcome(sandbox: &K8sSandbox, line: &str) -> Result<ExecuteOutcome> {
    within(line, sandbox.execute(Command::new(line))).await
}

/// Removes the pod.
pub(crate) async fn purge(sandbox: &K8sSandbox) {
    let purged = within("a purge", sandbox.stop(StopMode::Purge)).await;
    purged.unwrap();
}

/// Starts a command that does not end by itself, and returns its events once it runs.
pub(crate) async fn running(sandbox: &K8sSandbox) -> EventStream {
    let begun = async {
        let command = Command::new("echo up; sleep 4321");
        let mut events = sandbox.stream(command).await.unwrap();
        let first = events.next().await.unwrap().unwrap();
        assert!(matches!(first, Event::Stdout(_)), "{first:?}");
        events
    };
    within("the start of a command", begun).await
}

/// Returns the error that a command under way ends with. It must not seem to have ended
/// by itself.
pub(crate) async fn lost(mut events: EventStream) -> Error {
    let ended = async {
        loop {
            match events.next().await {
                Some(Ok(Event::Ended(outcome))) => panic!("a lost command has ended: {outcome:?}"),
                Some(Ok(_)) => {}
                Some(Err(error)) => return error,
                None => panic!("a lost command has ended without a word"),
            }
        }
    };
    let error = within("the end of a lost command", ended).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.chain());
    error
}

/// Checks that a call failed because the sandbox is unavailable, for one of these
/// reasons.
#[track_caller]
pub(crate) fn is_unavailable<T: std::fmt::Debug>(result: Result<T>, reasons: &[&str]) {
    let error = fails(ErrorKind::Unavailable, result);
    says(&error, reasons);
}

/// Checks that an error names one of these reasons.
#[track_caller]
pub(crate) fn says(error: &Error, reasons: &[&str]) {
    let told = error.chain().to_string();
    let is_told = reasons.iter().any(|reason| told.contains(reason));
    assert!(is_told, "none of {reasons:?} is said: {told}");
    assert!(told.len() < 4_000, "{} bytes: {told}", told.len());
}

/// Returns the error of the first call that fails. The end of a pod's object comes
/// before that of its processes, which answer a little longer.
pub(crate) async fn first_failure(sandbox: &K8sSandbox) -> Error {
    let failing = async {
        loop {
            match sandbox.exists("kept.txt").await {
                Ok(_) => tokio::time::sleep(LOOK).await,
                Err(error) => return error,
            }
        }
    };
    within("a call that fails", failing).await
}

/// Waits until a sandbox whose connection was lost works again, and checks that its
/// files are those from before.
pub(crate) async fn works_again(sandbox: &K8sSandbox) {
    until("a sandbox that works again", async || {
        let read = within("an answer", sandbox.read_to_string("kept.txt")).await;
        match read {
            Ok(text) => {
                assert_eq!(text, "kept\n");
                true
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.chain());
                false
            }
        }
    })
    .await;
    assert_eq!(run(sandbox, "cat kept.txt").await, "kept");
}

/// Checks that a sandbox whose pod has ended says so, is never made anew unasked, and can
/// be started again.
pub(crate) async fn ended(place: &Place, sandbox: &K8sSandbox) {
    let error = first_failure(sandbox).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.chain());
    is_unavailable(sandbox.exists("kept.txt").await, DELETED);
    assert!(
        !error.to_string().contains("call start"),
        "models have no such call: {error}"
    );
    assert!(!sandbox.is_alive().await.unwrap());
    assert!(!place.exists(sandbox.pod_name()).await);
    sandbox.start().await.unwrap();
    assert!(!sandbox.exists("kept.txt").await.unwrap());
    purge(sandbox).await;
}
