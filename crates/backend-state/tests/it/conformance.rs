//! The whole conformance suite on the in-memory backend.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_core::ops::{ReadOptions, WriteOptions};
use backend_core::{Backend, VPath};
use backend_state::StateBackend;
use backend_testkit::fake::PausedClock;
use backend_testkit::{CaseResult, Fixture, Need};

/// A store with a clock that the suite can set.
struct StateFixture {
    backend: StateBackend,
    clock: PausedClock,
}

impl StateFixture {
    fn new() -> Self {
        let clock = PausedClock::new();
        let ticking = clock.clone();
        let tick = move || {
            ticking.advance(Duration::from_millis(1));
            ticking.now()
        };
        Self {
            backend: StateBackend::builder().clock(tick).build(),
            clock,
        }
    }
}

#[async_trait]
impl Fixture for StateFixture {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(self.backend.clone())
    }

    fn provides(&self, need: Need) -> bool {
        matches!(need, Need::Write | Need::Times | Need::SetTime)
    }

    async fn set_modified(&self, path: &VPath, time: SystemTime) -> CaseResult {
        let content = self.backend.read(path, ReadOptions::default()).await?.data;
        let now = self.clock.now();
        // The write reads the clock once, a millisecond later.
        self.clock.set(time - Duration::from_millis(1));
        let options = WriteOptions::default();
        let written = self.backend.write(path, content.into(), options).await;
        self.clock.set(now);
        written?;
        Ok(())
    }
}

backend_testkit::conformance! {
    mod state;
    fixture = async || StateFixture::new();
    skipped = 159;
}
