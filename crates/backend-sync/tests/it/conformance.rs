//! The whole suite through blocking calls: on plain threads, inside a runtime, on a
//! borrowed one, with commands, and over an implementation that blocks itself.

use std::sync::{Arc, OnceLock};

use backend_core::Backend;
use backend_local::{Commands, LocalBackend, Supervisor};
use backend_state::StateBackend;
use backend_sync::{BlockingAdapter, Engine, SyncBackend};
use backend_testkit::{
    CASES, ClockFixture, DirectoryFixture, Fixture, Outcome, block_on, run_case,
};
use tokio::runtime::Runtime;

use crate::support::flat::Flat;
use crate::support::inline::Inline;

/// A blocking backend that is wrapped again: calls are made by plain threads.
fn back<B: Backend>(backend: B) -> Arc<dyn Backend> {
    let blocking = SyncBackend::new(Arc::new(backend));
    Arc::new(BlockingAdapter::new(blocking))
}

/// The same on a borrowed runtime.
fn borrowed<B: Backend>(backend: B) -> Arc<dyn Backend> {
    static LENDER: OnceLock<Runtime> = OnceLock::new();
    let lender = LENDER.get_or_init(|| Runtime::new().unwrap());
    let engine = Engine::borrowed(lender.handle()).unwrap();
    let blocking = SyncBackend::new(Arc::new(backend)).on(&engine);
    Arc::new(BlockingAdapter::new(blocking))
}

/// Blocking calls inside the runtime of the suite.
fn inside<B: Backend>(backend: B) -> Arc<dyn Backend> {
    Arc::new(Inline(SyncBackend::new(Arc::new(backend))))
}

/// A wrapped store in memory.
fn state_behind(wrap: fn(StateBackend) -> Arc<dyn Backend>) -> ClockFixture {
    ClockFixture::new(|clock| wrap(StateBackend::builder().clock(clock).build()))
}

/// A wrapped directory.
fn local_behind(wrap: fn(LocalBackend) -> Arc<dyn Backend>) -> DirectoryFixture {
    DirectoryFixture::new(|root| {
        let builder = LocalBackend::builder(root);
        let read_only = builder.clone().read_only(true).open().unwrap();
        let commands = Commands::default().supervisor(Supervisor::None);
        let backend = builder.enable_execute(true).commands(commands).open();
        (wrap(backend.unwrap()), Some(wrap(read_only)))
    })
}

/// An implementation that blocks and uses derived operations.
struct Blocking(Arc<BlockingAdapter<Flat>>);

impl Fixture for Blocking {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.0) as Arc<dyn Backend>
    }
}

backend_testkit::conformance! {
    mod state;
    fixture = async || state_behind(back);
    skipped = 210;

    mod local;
    fixture = async || local_behind(back);
    skipped = 46;
}

/// Runs every case except `but`. The number of skipped cases is fixed.
fn all<F: Fixture>(but: &[&str], skipped: usize, fixture: impl Fn() -> F) {
    let (mut failed, mut left_out) = (Vec::new(), 0);
    for case in CASES.iter().filter(|case| !but.contains(&&*case.id())) {
        match block_on(async { run_case(case, fixture()).await }) {
            Outcome::Passed => {}
            Outcome::Skipped(_) => left_out += 1,
            outcome => failed.push((case.id(), outcome)),
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(left_out, skipped);
}

#[test]
fn state_on_a_borrowed_runtime() {
    all(&[], 210, || state_behind(borrowed));
}

#[test]
fn state_inside_a_runtime() {
    // A call that blocks its thread cannot be dropped.
    let but = ["write::dropped_write_has_not_happened"];
    all(&but, 230, || state_behind(inside));
}

#[test]
fn blocking_implementation() {
    all(&[], 239, || {
        Blocking(Arc::new(BlockingAdapter::new(Flat::default())))
    });
}
