//! Creating and deleting sandboxes, also where answers get lost and the service is busy.

use std::time::Duration;

use backend_core::ops::StopMode;
use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use backend_daytona::{CreateTimeout, InstanceState, Network, Refusal, RefusalKind, instances};
use daytona_testkit::Fault;
use serde_json::json;

use crate::support::{Place, purge, run, until, within};

const CREATE: &str = "POST /api/sandbox";

#[tokio::test]
async fn the_first_operation_creates_a_sandbox_and_the_last_one_deletes_it() {
    let place = Place::new().await;
    let sandbox = place.builder().env("GREETING", "hello").build().unwrap();
    assert_eq!(place.standin.requests().total(), 0);
    assert_eq!(run(&sandbox, "echo $GREETING").await, "hello");
    let asked = place.standin.recorded(CREATE);
    let body = asked[0].body.clone().unwrap();
    assert_eq!(body["networkBlockAll"], true);
    assert_eq!(body["name"], json!(sandbox.name()));
    assert_eq!(place.states(), ["started"]);
    sandbox.write_file("kept.txt", "kept\n").await.unwrap();
    sandbox.stop(StopMode::Keep).await.unwrap();
    assert_eq!(sandbox.state().await.unwrap(), InstanceState::Stopped);
    assert_eq!(run(&sandbox, "cat kept.txt").await, "kept");
    purge(&sandbox).await;
    assert_eq!(sandbox.state().await.unwrap(), InstanceState::Missing);
    purge(&sandbox).await;
    place.standin.close().await;
}

#[tokio::test]
async fn a_dropped_sandbox_is_deleted_unless_it_has_a_name() {
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    run(&sandbox, "true").await;
    drop(sandbox);
    place.until_empty().await;
    let kept = place.builder().keep(true).build().unwrap();
    run(&kept, "true").await;
    drop(kept);
    until("a stop", || place.states().contains(&"stopped".to_owned())).await;
    let named = place.builder().name("alice").build().unwrap();
    run(&named, "echo 1 >file").await;
    drop(named);
    let again = place.builder().name("alice").build().unwrap();
    assert_eq!(run(&again, "cat file").await, "1");
    assert_eq!(place.standin.requests().of(CREATE), 3);
    place.standin.close().await;
}

#[tokio::test]
async fn a_name_is_a_lock() {
    let place = Place::new().await;
    let create = || place.builder().name("one").create();
    let (first, second) = within("two creations", async { tokio::join!(create(), create()) }).await;
    let (won, lost) = match (first, second) {
        (Ok(won), Err(lost)) | (Err(lost), Ok(won)) => (won, lost),
        (first, second) => panic!("{first:?} {second:?}"),
    };
    assert_eq!(lost.kind(), ErrorKind::Conflict, "{lost}");
    assert!(won.instance_id().is_some());
    run(&won, "true").await;
    let other = place.builder().name("one").network(Network::Open).build();
    let error = other.unwrap().start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.message().contains("other options"), "{error}");
    purge(&won).await;
    // It is bound to the sandbox that it created.
    let error = won.start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    place.standin.close().await;
}

#[tokio::test]
async fn a_creation_whose_answer_is_lost_happens_once() {
    for fault in [
        Fault::AnswerLost,
        Fault::Dropped,
        Fault::Truncated,
        Fault::BadGateway,
    ] {
        let place = Place::new().await;
        place.standin.inject(fault.clone().at(CREATE));
        let sandbox = place.builder().create().await.unwrap();
        run(&sandbox, "true").await;
        assert_eq!(place.states(), ["started"], "{fault:?}");
        place.standin.close().await;
    }
}

#[tokio::test]
async fn a_creation_that_is_late_hands_back_its_id() {
    let place = Place::new().await;
    place.standin.inject(Fault::StuckStarting.at(CREATE));
    let second = Duration::from_secs(1);
    let sandbox = place.builder().start_timeout(second).build().unwrap();
    let error = sandbox.start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    let late = CreateTimeout::of(&error).unwrap();
    let id = late.id.clone().unwrap();
    assert!(error.message().contains(&id), "{error}");
    assert_eq!(sandbox.instance_id().as_deref(), Some(&*id));
    // The next call waits for the same one.
    assert!(place.standin.set_state(&id, "started"));
    run(&sandbox, "true").await;
    assert_eq!(place.standin.requests().of(CREATE), 1);
    purge(&sandbox).await;
    place.standin.close().await;
}

#[tokio::test]
async fn a_sandbox_that_fails_says_why_and_is_not_left_behind() {
    let place = Place::new().await;
    place.standin.inject(Fault::StuckStarting.at(CREATE));
    let sandbox = place.builder().name("bad").build().unwrap();
    let fail = async {
        until("a sandbox", || !place.states().is_empty()).await;
        place.standin.set_state("bad", "build_failed");
    };
    let (error, ()) = tokio::join!(sandbox.start(), fail);
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains("in an error"), "{error}");
    place.until_empty().await;
    place.standin.close().await;
}

#[tokio::test]
async fn quotas_and_wrong_options_are_typed_and_create_nothing() {
    let place = Place::new().await;
    let answer = |status: u16, message: &str| Fault::Answer {
        status,
        body: json!({"statusCode": status, "message": message}).to_string(),
    };
    for (fault, kind, refusal) in [
        (
            answer(400, "Total CPU limit exceeded. Maximum allowed: 10."),
            ErrorKind::Unavailable,
            RefusalKind::Quota,
        ),
        (
            answer(400, "Snapshot x is inactive"),
            ErrorKind::Config,
            RefusalKind::Invalid,
        ),
        (
            answer(403, "Organization is suspended"),
            ErrorKind::PermissionDenied,
            RefusalKind::Forbidden,
        ),
        (
            answer(404, "Region not found"),
            ErrorKind::Config,
            RefusalKind::Missing,
        ),
    ] {
        place.standin.inject(fault.at(CREATE));
        let error = place.builder().create().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(Refusal::of(&error).unwrap().kind, refusal);
    }
    assert_eq!(place.states(), Vec::<String>::new());
    place.standin.close().await;
}

#[tokio::test]
async fn a_busy_sandbox_is_waited_for() {
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    run(&sandbox, "true").await;
    place
        .standin
        .inject(Fault::Busy.at("POST /api/sandbox/{id}/stop").times(2));
    sandbox.stop(StopMode::Keep).await.unwrap();
    place
        .standin
        .inject(Fault::Busy.at("POST /api/sandbox/{id}/start").times(2));
    run(&sandbox, "true").await;
    place
        .standin
        .inject(Fault::Busy.at("DELETE /api/sandbox/{id}").times(3));
    purge(&sandbox).await;
    assert!(place.standin.requests().of("DELETE /api/sandbox/{id}") >= 4);
    place.until_empty().await;
    place.standin.close().await;
}

#[tokio::test]
async fn a_deletion_is_verified() {
    let place = Place::new().await;
    let sandbox = place.builder().name("box").create().await.unwrap();
    let id = sandbox.instance_id().unwrap();
    // The answer says that it is done, and it is not.
    let lie = Fault::Answer {
        status: 200,
        body: "{}".into(),
    };
    place.standin.inject(lie.at("DELETE /api/sandbox/{id}"));
    assert!(instances::delete(&place.account, &id).await.unwrap());
    assert_eq!(instances::find(&place.account, "box").await.unwrap(), None);
    assert!(
        !instances::delete(&place.account, &id).await.unwrap(),
        "it is gone"
    );
    place.standin.close().await;
}
