//! A manager over fake sandboxes, whose starts and files a test controls.

#[cfg(all(feature = "daytona", target_os = "linux"))]
pub(crate) mod daytona;
#[cfg(feature = "docker")]
pub(crate) mod docker;
mod engine;
#[cfg(feature = "k8s")]
pub(crate) mod k8s;
#[cfg(any(
    feature = "docker",
    feature = "k8s",
    all(feature = "daytona", target_os = "linux")
))]
pub(crate) mod killed;
#[cfg(feature = "k8s")]
pub(crate) mod requests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend_core::{Error, Result, Sandbox};
use backend_state::StateBackend;
use backend_testkit::fake::{FakeSandbox, PausedClock};
use sessions::{Clock, OpenRequest, SessionId, SessionManager, SessionManagerBuilder};
use tokio::sync::Semaphore;

pub(crate) use engine::SharedEngine;

pub(crate) type Fake = FakeSandbox<StateBackend>;

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// A place where fake sandboxes are made. Clones are the same place.
#[derive(Clone)]
pub(crate) struct Lab {
    pub(crate) clock: PausedClock,
    inner: Arc<Inner>,
}

struct Inner {
    /// The files of each session, which survive its sandboxes if they are kept.
    files: Mutex<HashMap<SessionId, StateBackend>>,
    keeps_files: bool,
    /// Every sandbox that was ever made.
    made: Mutex<Vec<(SessionId, Fake)>>,
    /// One permit for each start that may go on.
    starts: Semaphore,
    waiting: AtomicUsize,
    fails: Mutex<Option<fn() -> Error>>,
}

impl Lab {
    /// Sandboxes whose files end with them.
    pub(crate) fn new() -> Self {
        Self::with_files(false)
    }

    /// Sandboxes whose files are there again.
    pub(crate) fn keeping_files() -> Self {
        Self::with_files(true)
    }

    fn with_files(keeps_files: bool) -> Self {
        Self {
            clock: PausedClock::new(),
            inner: Arc::new(Inner {
                files: Mutex::default(),
                keeps_files,
                made: Mutex::default(),
                starts: Semaphore::new(Semaphore::MAX_PERMITS),
                waiting: AtomicUsize::new(0),
                fails: Mutex::default(),
            }),
        }
    }

    /// Returns a builder for a manager of this place.
    pub(crate) fn builder(&self) -> SessionManagerBuilder {
        let (lab, clock) = (self.clone(), self.clock.clone());
        let factory = move |request: OpenRequest| {
            let lab = lab.clone();
            async move { lab.make(&request.id).await }
        };
        SessionManager::builder()
            .factory(factory)
            .keeps_files(self.inner.keeps_files)
            .clock(Clock::new(move || clock.now()))
    }

    pub(crate) fn manager(&self) -> SessionManager {
        self.builder().build().unwrap()
    }

    async fn make(&self, id: &SessionId) -> Result<Arc<dyn Sandbox>> {
        self.inner.waiting.fetch_add(1, Ordering::SeqCst);
        let permit = self.inner.starts.acquire().await.unwrap();
        permit.forget();
        self.inner.waiting.fetch_sub(1, Ordering::SeqCst);
        if let Some(fails) = *self.inner.fails.lock().unwrap() {
            return Err(fails());
        }
        let files = if self.inner.keeps_files {
            let mut files = self.inner.files.lock().unwrap();
            files.entry(id.clone()).or_default().clone()
        } else {
            StateBackend::new()
        };
        let sandbox = FakeSandbox::new(id.as_str(), files, self.clock.clone());
        let mut made = self.inner.made.lock().unwrap();
        made.push((id.clone(), sandbox.clone()));
        Ok(Arc::new(sandbox))
    }

    /// Lets no start go on until [`allow_starts`](Self::allow_starts).
    pub(crate) fn hold_starts(&self) {
        self.inner.starts.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub(crate) fn allow_starts(&self, count: usize) {
        self.inner.starts.add_permits(count);
    }

    /// Waits until this many starts are held.
    pub(crate) async fn starts_held(&self, count: usize) {
        while self.inner.waiting.load(Ordering::SeqCst) < count {
            tokio::task::yield_now().await;
        }
    }

    /// Makes every start fail from now on, or none.
    pub(crate) fn fail_starts(&self, fails: Option<fn() -> Error>) {
        *self.inner.fails.lock().unwrap() = fails;
    }

    /// Returns the sandboxes that were made for a session, the latest last.
    pub(crate) fn made(&self, id: &str) -> Vec<Fake> {
        let made = self.inner.made.lock().unwrap();
        let of = made.iter().filter(|(made, _)| made.as_str() == id);
        of.map(|(_, sandbox)| sandbox.clone()).collect()
    }

    /// Returns the latest sandbox of a session.
    pub(crate) fn latest(&self, id: &str) -> Fake {
        self.made(id).pop().unwrap()
    }

    /// Returns the sandboxes that run, of all sessions.
    pub(crate) fn running(&self) -> Vec<SessionId> {
        let made = self.inner.made.lock().unwrap();
        let running = made.iter().filter(|(_, sandbox)| sandbox.is_running());
        running.map(|(id, _)| id.clone()).collect()
    }

    /// Deletes the files of a session.
    pub(crate) fn forget_files(&self, id: &str) {
        self.inner.files.lock().unwrap().remove(id);
    }
}

pub(crate) fn request(id: &str) -> OpenRequest {
    OpenRequest::new(SessionId::new(id).unwrap())
}

/// Lets the tasks of the manager come as far as they can.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}
