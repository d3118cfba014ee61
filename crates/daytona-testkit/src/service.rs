//! [`Service`]: everything that the handlers of requests share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::faults::Faults;
use crate::id;
use crate::latency::Latency;
use crate::options::Options;
use crate::requests::Log;
use crate::sandbox::Sandbox;

/// The state of a stand-in.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) options: Options,
    /// The address with its scheme.
    pub(crate) origin: String,
    pub(crate) jwt: String,
    pub(crate) organization: String,
    pub(crate) faults: Faults,
    pub(crate) log: Log,
    pub(crate) latency: Latency,
    /// The last answer to a request that lists sandboxes.
    pub(crate) last_list: Mutex<Value>,
    pub(crate) volumes: Mutex<Vec<Value>>,
    sandboxes: Mutex<Vec<Arc<Sandbox>>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Service {
    pub(crate) fn new(options: Options, origin: String) -> Self {
        let latency = Latency::default();
        latency.set(options.latency);
        Self {
            options,
            origin,
            // The form is that of a JWT; its parts have no content.
            jwt: format!("eyJhbGciOiJub25lIn0.e30.{}", id::random()),
            organization: id::random(),
            faults: Faults::default(),
            log: Log::default(),
            latency,
            last_list: Mutex::new(serde_json::json!({"items": [], "nextCursor": null})),
            volumes: Mutex::default(),
            sandboxes: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Returns all sandboxes in the order of their creation, the destroyed ones too.
    pub(crate) fn sandboxes(&self) -> MutexGuard<'_, Vec<Arc<Sandbox>>> {
        self.sandboxes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a sandbox that is not destroyed.
    pub(crate) fn find(&self, id_or_name: &str) -> Option<Arc<Sandbox>> {
        let sandboxes = self.sandboxes();
        sandboxes.iter().find(|it| it.is(id_or_name)).cloned()
    }

    /// Starts a task that ends with the stand-in.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let task = self.stop.clone().run_until_cancelled_owned(task);
        self.tasks.spawn(async {
            task.await;
        });
    }

    /// Ends all tasks, now or, with [`Self::stopped`], soon.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
    }

    /// Waits for the end of all tasks.
    pub(crate) async fn stopped(&self) {
        self.tasks.wait().await;
    }
}
