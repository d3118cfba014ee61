//! Sessions in hosted sandboxes, on a stand-in for Daytona. Each engine stands for a process.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use backend_core::{BackendExt as _, Command, ErrorKind, Sandbox as _};
use backend_daytona::{DaytonaSandbox, Mode, Runtime, instances};
use daytona_testkit::Fault;
use futures_util::future::join_all;
use serde_json::Value;
use sessions::{Claim, DaytonaEngine, Engine as _, OpenRequest, RecordState, SessionId, Usage};

use crate::support::daytona::{Place, SETTLE, engine, manager};
use crate::support::request;

/// The longest wait for anything. Only what never comes about takes this long.
const PATIENCE: Duration = Duration::from_secs(60);
/// Moments at which a session is used while it is ended.
const TURNS: u32 = 12;
/// The label of a process that is about to end a session.
const MARK: &str = "sessions.agentbox.dev/ending";

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

/// Claims a session, and starts it if it is new.
async fn claim(engine: &DaytonaEngine, request: &OpenRequest) -> bool {
    match engine.claim(request).await.unwrap() {
        Claim::Created(sandbox) => sandbox.start().await.map(|()| true).unwrap(),
        _ => false,
    }
}

/// Returns the record of a session that exists.
async fn last_activity(engine: &DaytonaEngine, id: &SessionId) -> SystemTime {
    engine.record(id).await.unwrap().unwrap().last_activity
}

#[tokio::test(flavor = "multi_thread")]
async fn a_returning_session_has_its_files_in_any_process() {
    let place = Place::new().await;
    let here = manager(&place.engine());
    let alice = here.get_or_create("alice").await.unwrap();
    alice.write_file("notes.md", "of alice\n").await.unwrap();
    assert!(here.release("alice").await.unwrap());
    assert_eq!(place.state(), "stopped");
    let engine = place.engine();
    let record = engine.record(&id("alice")).await.unwrap().unwrap();
    assert_eq!(record.state, RecordState::Stopped);
    assert_eq!(
        engine.usage(&id("alice")).await.unwrap(),
        Some(Usage::default())
    );

    let there = manager(&engine);
    let alice = there.get_or_create("alice").await.unwrap();
    assert_eq!(
        alice.read_to_string("notes.md").await.unwrap(),
        "of alice\n"
    );
    assert_eq!(place.state(), "started");
    let listed = there.list().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (&listed[0].id, listed[0].state),
        (&id("alice"), RecordState::Running)
    );
    assert!(there.purge("alice").await.unwrap());
    assert_eq!(place.states(), []);
    assert!(!there.purge("alice").await.unwrap());
    assert!(there.list().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn of_processes_that_open_a_session_at_once_one_creates_it() {
    let place = Place::new().await;
    place.standin.set_latency(Duration::from_millis(20));
    let request = request("alice").tenant("acme");
    let engines: Vec<_> = (0..6).map(|_| place.engine()).collect();
    let claimed = join_all(engines.iter().map(|engine| claim(engine, &request))).await;
    let created = claimed.iter().filter(|is_created| **is_created).count();
    assert_eq!(created, 1, "{claimed:?}");
    for engine in &engines {
        let attached = engine.attach(&request.id).await.unwrap().unwrap();
        assert_eq!(attached.record.tenant.as_deref(), Some("acme"));
    }
    assert_eq!(place.states().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_of_others_are_kept() {
    let place = Place::new().await;
    let (engine, other) = (place.engine(), place.engine());
    let python = Runtime::from_image("python", "python:3.12-slim");
    let request = request("Alice_2").tenant("acme").runtime(python);
    assert!(claim(&engine, &request).await);
    let name = &place.states()[0].0;
    let account = place.account();
    let found = instances::find(&account, name).await.unwrap().unwrap();
    let team = BTreeMap::from([("team".to_owned(), Some("blue".to_owned()))]);
    instances::change_labels(&account, &found.id, &team)
        .await
        .unwrap();
    let before = place.standin.requests();
    let later = SystemTime::now() + Duration::from_secs(5);
    for at in [later, later - Duration::from_secs(2)] {
        assert!(other.touch(&request.id, at).await.unwrap());
    }
    let used = place.standin.requests().since(&before);
    assert_eq!(used.of("PUT /api/sandbox/{id}/labels"), 1, "{used}");
    let labels = instances::find(&account, name)
        .await
        .unwrap()
        .unwrap()
        .labels;
    assert_eq!(labels["team"], "blue");
    let record = engine.record(&request.id).await.unwrap().unwrap();
    assert_eq!(record.tenant.as_deref(), Some("acme"));
    assert!(record.runtime.unwrap().starts_with("python@"));
    let early = later - Duration::from_millis(1);
    assert!(record.last_activity >= early, "never earlier");
    assert_eq!(other.list().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_use_that_is_written_is_not_written_again() {
    let place = Place::new().await;
    let engine = place.engine();
    assert!(claim(&engine, &request("alice")).await);
    let before = place.standin.requests();
    for seconds in 1..4 {
        let at = SystemTime::now() + Duration::from_secs(seconds);
        assert!(engine.touch(&id("alice"), at).await.unwrap());
        assert!(
            engine.touch(&id("alice"), at).await.unwrap(),
            "it is written"
        );
    }
    let used = place.standin.requests().since(&before);
    assert_eq!(used.of("PUT /api/sandbox/{id}/labels"), 3, "{used}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_of_others_is_not_taken_for_a_session() {
    let place = Place::new().await;
    let spaced = |space: &str| engine(place.account()).space(space).build().unwrap();
    let (one, two) = (spaced("one"), spaced("two"));
    let alice = request("alice");
    assert!(claim(&one, &alice).await);
    assert!(two.record(&alice.id).await.unwrap().is_none());
    assert!(two.list().await.unwrap().is_empty());
    assert!(claim(&two, &alice).await, "another space, another session");

    // The same name, which others gave to a sandbox of their own.
    let name = place.states()[0].0.clone();
    assert!(one.purge(&alice.id).await.unwrap());
    let foreign = DaytonaSandbox::builder()
        .account(place.account())
        .mode(Mode::Portable)
        .name(&*name);
    foreign.create().await.unwrap();
    let refused = [
        one.claim(&alice).await.map(|_| ()),
        one.attach(&alice.id).await.map(|_| ()),
        one.record(&alice.id).await.map(|_| ()),
        one.stop(&alice.id).await.map(|_| ()),
        one.purge(&alice.id).await.map(|_| ()),
    ];
    for result in refused {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Conflict);
    }
    assert!(one.list().await.unwrap().is_empty());
    assert!(place.states().iter().any(|(found, _)| *found == name));
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_are_kept_for_other_processes_and_in_no_label() {
    let place = Place::new().await;
    let here = manager(&place.engine());
    let request = request("alice").env("TOKEN", "hush");
    let alice = here.open(request).await.unwrap();
    let say = || Command::new("printf %s \"$TOKEN\"");
    let said = alice.execute(say()).await.unwrap();
    assert_eq!(said.stdout.text(), "hush");
    assert!(here.release("alice").await.unwrap());

    let there = manager(&place.engine());
    let alice = there.get_or_create("alice").await.unwrap();
    let said = alice.execute(say()).await.unwrap();
    assert_eq!(said.stdout.text(), "hush", "also after a restart");
    let shown = Value::Array(place.standin.sandboxes()).to_string();
    assert!(!shown.contains("hush"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_another_process_stopped_wakes() {
    let place = Place::new().await;
    let (here, there) = (manager(&place.engine()), place.engine());
    let alice = here.get_or_create("alice").await.unwrap();
    alice.write_file("notes.md", "of alice\n").await.unwrap();
    assert!(there.stop(&id("alice")).await.unwrap());
    assert!(!there.stop(&id("alice")).await.unwrap(), "nothing runs");
    let begun = Instant::now();
    // The call that finds out may fail, and the next one wakes it.
    let read = loop {
        match alice.read_to_string("notes.md").await {
            Ok(read) => break read,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
        assert!(begun.elapsed() < PATIENCE);
    };
    assert_eq!(read, "of alice\n");
    assert_eq!(place.state(), "started");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_process_left_is_ended_once_it_is_idle() {
    let place = Place::new().await;
    let alice = id("alice");
    assert!(claim(&place.engine(), &request("alice")).await);
    let reaper = place.engine();
    let used = last_activity(&reaper, &alice).await;
    let early = used - Duration::from_millis(1);
    assert!(!reaper.stop_if_unused_since(&alice, early).await.unwrap());
    // Another process used it a moment ago, and may do so again.
    assert!(!reaper.stop_if_unused_since(&alice, used).await.unwrap());
    assert_eq!(place.state(), "started");
    let begun = Instant::now();
    while manager(&reaper)
        .cleanup_idle(Some(Duration::ZERO))
        .await
        .unwrap()
        == 0
    {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(SETTLE).await;
    }
    assert_eq!(place.state(), "stopped");
    let begun = Instant::now();
    assert!(claim(&reaper, &request("bob")).await);
    let used = last_activity(&reaper, &id("bob")).await;
    assert!(reaper.stop_if_unused_since(&id("bob"), used).await.unwrap());
    assert!(begun.elapsed() >= SETTLE, "its own, but not at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_another_process_begins_to_use_is_not_ended() {
    let place = Place::new().await;
    // Changes of labels take so long that they undo each other.
    place.standin.set_latency(Duration::from_millis(40));
    let (ender, user) = (place.engine(), place.engine_elsewhere());
    let alice = id("alice");
    assert!(claim(&ender, &request("alice")).await);
    let begun = Instant::now();
    let (mut n_ended, mut n_kept) = (0, 0);
    // All moments from the beginning of the end to a while after it, and both outcomes.
    for turn in 0_u32.. {
        if turn >= TURNS && n_ended > 0 && n_kept > 0 {
            break;
        }
        let is_in_time = begun.elapsed() < PATIENCE * 3;
        assert!(is_in_time, "{n_ended} ended, {n_kept} kept");
        let sandbox = ender.attach(&alice).await.unwrap().unwrap().sandbox;
        sandbox.start().await.unwrap();
        // From now on the latest use is its own, so it may end the session at once.
        let now = SystemTime::now();
        assert!(ender.touch(&alice, now).await.unwrap());
        user.attach(&alice).await.unwrap().unwrap();
        let use_it = async {
            tokio::time::sleep(SETTLE * (turn % TURNS) / 8).await;
            let is_there = user.touch(&alice, SystemTime::now()).await.unwrap();
            (is_there, place.state())
        };
        let (ended, (is_there, state)) =
            tokio::join!(ender.stop_if_unused_since(&alice, now), use_it);
        let ended = ended.unwrap();
        if is_there && state == "started" {
            assert!(!ended, "turn {turn}: it was ended while it was used");
            assert_eq!(place.state(), "started", "turn {turn}");
        }
        n_ended += u32::from(ended);
        n_kept += u32::from(!ended && is_there);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mark_of_a_killed_process_is_not_waited_for_for_ever() {
    let place = Place::new().await;
    let (here, there) = (place.engine(), place.engine());
    let alice = id("alice");
    assert!(claim(&here, &request("alice")).await);
    let account = place.account();
    let found = instances::find(&account, &place.states()[0].0).await;
    let found = found.unwrap().unwrap();
    let mark = BTreeMap::from([(MARK.to_owned(), Some("x".to_owned()))]);
    instances::change_labels(&account, &found.id, &mark)
        .await
        .unwrap();
    assert!(there.touch(&alice, SystemTime::now()).await.unwrap());
    let found = instances::find(&account, &found.id).await.unwrap().unwrap();
    assert!(!found.labels.contains_key(MARK), "{:?}", found.labels);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_failed_for_good_is_replaced_after_a_release() {
    let place = Place::new().await;
    let here = manager(&place.engine());
    here.get_or_create("alice").await.unwrap();
    here.shutdown(PATIENCE).await;
    let name = place.states()[0].0.clone();
    let there = manager(&place.engine());
    // The first one may recover.
    for state in ["error", "build_failed"] {
        assert!(place.standin.set_state(&name, state));
        let refused = there.get_or_create("alice").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
        assert_eq!(there.cleanup_idle(Some(Duration::ZERO)).await.unwrap(), 0);
        assert_eq!(place.state(), state, "an idle one is left to its user");
        let is_ended = there.release("alice").await.unwrap();
        assert_eq!(is_ended, state == "build_failed");
    }
    there.get_or_create("alice").await.unwrap();
    assert_eq!(place.state(), "started");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_whose_answer_is_lost_leaves_no_second_sandbox() {
    let place = Place::new().await;
    let here = manager(&place.engine());
    for fault in [Fault::AnswerLost, Fault::Dropped] {
        place.standin.inject(fault.at("POST /api/sandbox"));
        let begun = Instant::now();
        let alice = loop {
            match here.get_or_create("alice").await {
                Ok(alice) => break alice,
                Err(error) => assert!(begun.elapsed() < PATIENCE, "{}", error.chain()),
            }
        };
        alice.write_file("a", "b").await.unwrap();
        assert_eq!(place.states().len(), 1, "{:?}", place.states());
        place.standin.heal();
        assert!(here.purge("alice").await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_is_told_when_to_stop_and_delete() {
    let place = Place::new().await;
    let engine = engine(place.account())
        .keep_stored_for(Duration::from_secs(3 * 24 * 3600))
        .build()
        .unwrap();
    let patient = request("bob").idle_timeout(Duration::from_secs(5 * 3600));
    for request in [request("alice"), patient] {
        assert!(claim(&engine, &request).await);
    }
    let created = place.standin.recorded("POST /api/sandbox");
    let minutes = |key: &str| {
        let bodies = created.iter().map(|created| created.body.as_ref().unwrap());
        bodies.map(|body| body[key].as_i64()).collect::<Vec<_>>()
    };
    assert_eq!(minutes("autoStopInterval"), [Some(120), Some(600)]);
    assert_eq!(minutes("autoDeleteInterval"), [Some(3 * 24 * 60); 2]);
    for builder in [
        crate::support::daytona::engine(place.account()).auto_stop(Duration::from_secs(59)),
        crate::support::daytona::engine(place.account()).keep_stored_for(Duration::ZERO),
        crate::support::daytona::engine(place.account()).space("A b"),
    ] {
        assert_eq!(builder.build().unwrap_err().kind(), ErrorKind::Config);
    }
}
