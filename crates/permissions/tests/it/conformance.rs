//! Runs the whole conformance suite through a guard: without rules, with rules that
//! never match, and with an approver that says yes to every question.

use std::sync::Arc;

use backend_core::Backend;
use backend_local::{Commands, LocalBackend, Supervisor};
use backend_state::StateBackend;
use backend_testkit::{ClockFixture, DirectoryFixture};
use permissions::approval::ApproveAll;
use permissions::{Guarded, Policy, Ruleset};

/// Rules about a path that no case uses.
const NEVER: &str = r#"{
    "default": "allow",
    "read": { "rules": [
        { "pattern": "/no/such/place/**", "action": "deny", "hide": true },
        { "pattern": "**/*.no-such-suffix", "action": "ask" }
    ] },
    "write": { "rules": [{ "pattern": "/no/such/place/**", "action": "deny" }] },
    "edit": { "rules": [{ "pattern": "/no/such/place/**", "action": "deny" }] },
    "delete": { "rules": [{ "pattern": "/no/such/place/**", "action": "deny" }] },
    "move": { "rules": [{ "pattern": "/no/such/place/**", "action": "deny" }] },
    "copy": { "rules": [{ "pattern": "/no/such/place/**", "action": "deny" }] },
    "ls": { "rules": [{ "pattern": "/no/such/place/**", "action": "deny" }] },
    "glob": { "rules": [{ "pattern": "/no/such/place/**", "action": "deny" }] },
    "grep": { "rules": [{ "pattern": "/no/such/place/**", "action": "deny" }] },
    "execute": { "default": "allow", "opaque": "allow", "dangerous": "allow" }
}"#;

fn open<B: Backend>(backend: B) -> Arc<dyn Backend> {
    Arc::new(Guarded::builder(backend).build())
}

fn open_dyn<B: Backend>(backend: B) -> Arc<dyn Backend> {
    let backend: Arc<dyn Backend> = Arc::new(backend);
    open(backend)
}

fn ruled<B: Backend>(backend: B) -> Arc<dyn Backend> {
    with_rules(backend, serde_json::from_str(NEVER).unwrap())
}

/// Asks about everything, with an approver that always says yes. The cases start servers,
/// some of which count as dangerous.
fn asked<B: Backend>(backend: B) -> Arc<dyn Backend> {
    let rules = r#"{ "default": "ask", "execute": { "default": "ask", "dangerous": "ask" } }"#;
    with_rules(backend, serde_json::from_str(rules).unwrap())
}

fn with_rules<B: Backend>(backend: B, rules: Ruleset) -> Arc<dyn Backend> {
    let policy = Policy::builder()
        .ruleset(&rules, &backend.working_dir())
        .build();
    let guarded = Guarded::builder(backend)
        .policy(policy)
        .approver(ApproveAll);
    Arc::new(guarded.build())
}

/// A guarded store in memory.
fn state(guard: fn(StateBackend) -> Arc<dyn Backend>) -> ClockFixture {
    ClockFixture::new(|clock| guard(StateBackend::builder().clock(clock).build()))
}

/// A guarded directory.
fn local(guard: fn(LocalBackend) -> Arc<dyn Backend>) -> DirectoryFixture {
    DirectoryFixture::new(|root| {
        let builder = LocalBackend::builder(root);
        let read_only = builder.clone().read_only(true).open().unwrap();
        let commands = Commands::default().supervisor(Supervisor::None);
        let backend = builder.enable_execute(true).commands(commands).open();
        (guard(backend.unwrap()), Some(guard(read_only)))
    })
}

backend_testkit::conformance! {
    mod state_open;
    fixture = async || state(open);
    skipped = 210;

    mod state_open_dyn;
    fixture = async || state(open_dyn);
    skipped = 210;

    mod state_ruled;
    fixture = async || state(ruled);
    skipped = 210;

    mod local_open;
    fixture = async || local(open);
    skipped = 32;

    mod local_ruled;
    fixture = async || local(ruled);
    skipped = 32;
}

/// An approved write replaces only the content that the question showed. Of several
/// concurrent ones, only one succeeds.
const BOUND_TO_THE_ANSWER: &[&str] = &["write::concurrent_writes_never_mix"];

#[test]
fn state_asked() {
    let fixture = async || state(asked);
    let report = backend_testkit::block_on(backend_testkit::run_all(fixture));
    assert_eq!(report.failed_ids(), BOUND_TO_THE_ANSWER, "{report}");
    assert_eq!(report.skipped.len(), 210);
}

#[test]
fn local_asked() {
    let fixture = async || local(asked);
    let report = backend_testkit::block_on(backend_testkit::run_all(fixture));
    assert_eq!(report.failed_ids(), BOUND_TO_THE_ANSWER, "{report}");
    assert_eq!(report.skipped.len(), 32);
}
