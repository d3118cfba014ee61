//! Sandboxes whose state others change, and attaching to them.

use backend_core::ops::StopMode;
use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use backend_daytona::{DaytonaSandbox, InstanceState, instances};

use crate::support::{Place, purge, run, within};

async fn with_file(place: &Place) -> DaytonaSandbox {
    let sandbox = place.builder().name("box").build().unwrap();
    sandbox.write_file("kept.txt", "kept\n").await.unwrap();
    sandbox
}

async fn read(sandbox: &DaytonaSandbox) -> backend_core::Result<String> {
    within("a read", sandbox.read_to_string("kept.txt")).await
}

/// Reads until an error was told, if one is due: what was under way when the state changed
/// fails, and the next call works again.
async fn read_again(sandbox: &DaytonaSandbox) -> String {
    for _ in 0..3 {
        match read(sandbox).await {
            Ok(text) => return text,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
    }
    panic!("it does not work again")
}

#[tokio::test]
async fn a_sandbox_that_was_stopped_is_started_by_the_next_call() {
    let place = Place::new().await;
    let sandbox = with_file(&place).await;
    for state in ["stopped", "archived"] {
        place.standin.set_state("box", state);
        assert_eq!(read_again(&sandbox).await, "kept\n", "{state}");
        assert_eq!(place.states(), ["started"]);
    }
    // Only virtual machines can be resumed.
    sandbox.stop(StopMode::Keep).await.unwrap();
    place.standin.set_state("box", "paused");
    let error = read(&sandbox).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains("cannot be started"), "{error}");
    purge(&sandbox).await;
    place.standin.close().await;
}

#[tokio::test]
async fn a_state_that_passes_is_waited_for() {
    let place = Place::new().await;
    let sandbox = with_file(&place).await;
    sandbox.stop(StopMode::Keep).await.unwrap();
    for (first, second) in [
        ("stopping", "stopped"),
        ("archiving", "archived"),
        ("thawing", "started"),
    ] {
        place.standin.set_state("box", first);
        let before = place.standin.requests();
        let look = "GET /api/sandbox/{id}";
        let later = async {
            // It has looked at the sandbox more than once, so it waits.
            let looks = || place.standin.requests().since(&before).of(look);
            crate::support::until("a look", || looks() > 1).await;
            place.standin.set_state("box", second);
        };
        let ((), read) = tokio::join!(later, read(&sandbox));
        assert_eq!(read.unwrap(), "kept\n", "{first}");
        sandbox.stop(StopMode::Keep).await.unwrap();
    }
    purge(&sandbox).await;
    place.standin.close().await;
}

#[tokio::test]
async fn an_error_is_told_with_its_next_step() {
    let place = Place::new().await;
    let sandbox = with_file(&place).await;
    sandbox.stop(StopMode::Keep).await.unwrap();
    place.standin.set_state("box", "error");
    let error = read(&sandbox).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains("in an error"), "{error}");
    assert!(!sandbox.is_alive().await.unwrap());
    purge(&sandbox).await;
    place.standin.close().await;
}

#[tokio::test]
async fn a_sandbox_in_an_error_is_recovered_on_request() {
    let place = Place::new().await;
    let sandbox = with_file(&place).await;
    let fail = async |state: &str| {
        sandbox.stop(StopMode::Keep).await.unwrap();
        place.standin.set_state("box", state);
    };
    fail("error").await;
    within("a recovery", sandbox.recover()).await.unwrap();
    assert_eq!(place.states(), ["started"]);
    assert_eq!(read_again(&sandbox).await, "kept\n");
    // Or by the next operation, if that is an option.
    fail("error").await;
    let eager = place.builder().name("box").recover(true).build().unwrap();
    assert_eq!(read_again(&eager).await, "kept\n");
    fail("build_failed").await;
    let error = within("a refusal", sandbox.recover()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    purge(&sandbox).await;
    place.standin.close().await;
}

#[tokio::test]
async fn a_deleted_sandbox_is_not_made_anew_unasked() {
    let place = Place::new().await;
    let sandbox = with_file(&place).await;
    let id = sandbox.instance_id().unwrap();
    instances::delete(&place.account, &id).await.unwrap();
    for _ in 0..2 {
        let error = read(&sandbox).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    let error = read(&sandbox).await.unwrap_err();
    assert!(error.message().contains("files are gone"), "{error}");
    sandbox.start().await.unwrap();
    assert!(!sandbox.exists("kept.txt").await.unwrap());
    assert_ne!(sandbox.instance_id(), Some(id));
    purge(&sandbox).await;
    place.standin.close().await;
}

#[tokio::test]
async fn a_sandbox_is_attached_by_its_name_or_its_id() {
    let place = Place::new().await;
    let sandbox = with_file(&place).await;
    let id = sandbox.instance_id().unwrap();
    for key in ["box", &id] {
        let attached = place.attach(key).open().await.unwrap();
        assert_eq!(read(&attached).await.unwrap(), "kept\n");
        assert_eq!(attached.name(), "box");
    }
    let attached = place.attach("box").id("another").open().await;
    assert_eq!(attached.unwrap_err().kind(), ErrorKind::NotFound);
    let missing = place.attach("nothing").open().await;
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    // Attached ones are left as they are.
    assert_eq!(place.states(), ["started"]);
    let attached = place.attach("box").open().await.unwrap();
    purge(&sandbox).await;
    let error = attached.start().await.unwrap_err();
    assert!(error.message().contains("no longer exists"), "{error}");
    place.standin.close().await;
}

/// Creates a sandbox as another program does.
async fn create_foreign(place: &Place, body: &'static str) {
    let created = crate::support::http()
        .post(format!("{}/sandbox", place.account.url()))
        .bearer_auth(place.standin.api_key())
        .header("content-type", "application/json")
        .body(body)
        .send()
        .await
        .unwrap();
    assert!(created.status().is_success());
}

#[tokio::test]
async fn a_sandbox_of_another_program_is_only_used_on_request() {
    let place = Place::new().await;
    let account = &place.account;
    create_foreign(
        &place,
        r#"{"name":"theirs","labels":{"code-toolbox-language":"python"}}"#,
    )
    .await;
    let refused = place.attach("theirs").open().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{refused}");
    let named = place.builder().name("theirs").build().unwrap();
    let refused = named.start().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    instances::start(account, "theirs").await.unwrap();
    let attached = place
        .attach("theirs")
        .allow_foreign(true)
        .open()
        .await
        .unwrap();
    run(&attached, "pwd").await;
    purge(&attached).await;
    place.standin.close().await;
}

#[tokio::test]
async fn a_virtual_machine_is_paused_and_resumed() {
    let place = Place::new().await;
    create_foreign(&place, r#"{"name":"vm","kvm":true}"#).await;
    instances::start(&place.account, "vm").await.unwrap();
    let attached = place.attach("vm").allow_foreign(true).open().await.unwrap();
    attached.write_file("kept.txt", "kept\n").await.unwrap();
    within("a pause", attached.pause()).await.unwrap();
    assert_eq!(attached.state().await.unwrap(), InstanceState::Paused);
    assert_eq!(read_again(&attached).await, "kept\n");
    assert_eq!(attached.state().await.unwrap(), InstanceState::Started);
    purge(&attached).await;
    place.standin.close().await;
}

#[tokio::test]
async fn pauses_archives_and_previews() {
    let place = Place::new().await;
    let sandbox = with_file(&place).await;
    let preview = sandbox.preview_url(8080).await.unwrap();
    assert!(preview.url.starts_with("http://127.0.0.1:"), "{preview:?}");
    assert!(!format!("{preview:?}").contains(preview.token.expose()));
    sandbox.keep_alive().await.unwrap();
    let touch = "POST /api/sandbox/{id}/last-activity";
    assert_eq!(place.standin.requests().of(touch), 1);
    // Only virtual machines can be paused.
    let error = within("a refusal", sandbox.pause()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    sandbox.archive().await.unwrap();
    let state = sandbox.state().await.unwrap();
    assert!(
        matches!(state, InstanceState::Archiving | InstanceState::Archived),
        "{state:?}"
    );
    assert_eq!(read(&sandbox).await.unwrap(), "kept\n");
    purge(&sandbox).await;
    place.standin.close().await;
}
