//! The whole suite on the in-memory backend.

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::ops::{ReadOptions, WriteOptions};
use backend_core::{Backend, VPath};
use backend_state::StateBackend;
use backend_testkit::{CaseResult, Fixture, Need};

/// A store whose clock the suite can set.
struct StateFixture {
    backend: StateBackend,
    now: Arc<Mutex<Option<SystemTime>>>,
}

impl StateFixture {
    fn new() -> Self {
        let now = Arc::new(Mutex::new(None));
        let clock = Arc::clone(&now);
        let now_or_set = move || clock.lock().unwrap().unwrap_or_else(SystemTime::now);
        Self {
            backend: StateBackend::builder().clock(now_or_set).build(),
            now,
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
        *self.now.lock().unwrap() = Some(time);
        let options = WriteOptions::default();
        let written = self.backend.write(path, content.into(), options).await;
        *self.now.lock().unwrap() = None;
        written?;
        Ok(())
    }
}

backend_testkit::conformance! {
    mod state;
    fixture = async || StateFixture::new();
    skipped = 6;
}
