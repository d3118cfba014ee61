//! Shared helpers of these tests.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use backend_core::ops::{FileBytes, ReadOptions};
use backend_core::{Backend, Result, Sandbox, VPath};
use backend_state::StateBackend;

/// Timeout of a test. Only a deadlock takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test that must not hang.
pub(crate) fn in_time(test: impl FnOnce() + Send + 'static) {
    let (told, done) = mpsc::channel();
    let test = std::thread::spawn(move || {
        test();
        let _ = told.send(());
    });
    match done.recv_timeout(PATIENCE) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("no end after {PATIENCE:?}"),
        _ => {
            if let Err(panic) = test.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Files in memory. Each read waits for a timer of the runtime that polls it, or
/// forever.
#[derive(Debug, Default)]
pub(crate) struct Slow {
    state: StateBackend,
    /// Notified when a read begins that never ends.
    stuck: Option<Mutex<mpsc::Sender<()>>>,
    dropped: Mutex<Option<mpsc::Sender<()>>>,
}

/// Sends a message on drop.
struct Tells(Option<mpsc::Sender<()>>);

impl Drop for Tells {
    fn drop(&mut self) {
        if let Some(told) = self.0.take() {
            let _ = told.send(());
        }
    }
}

impl Slow {
    /// Creates a backend whose reads never end. The receiver is notified when one
    /// begins.
    pub(crate) fn stuck() -> (Self, mpsc::Receiver<()>) {
        let (began, has_begun) = mpsc::channel();
        let this = Self {
            stuck: Some(Mutex::new(began)),
            ..Self::default()
        };
        (this, has_begun)
    }

    /// Returns a receiver that is notified when a read is dropped.
    pub(crate) fn dropped(&self) -> mpsc::Receiver<()> {
        let (told, dropped) = mpsc::channel();
        *self.dropped.lock().unwrap() = Some(told);
        dropped
    }

    async fn wait(&self) {
        let _tells = Tells(self.dropped.lock().unwrap().take());
        if let Some(began) = &self.stuck {
            began.lock().unwrap().send(()).unwrap();
            tokio::time::sleep(Duration::from_secs(100_000)).await;
        }
        tokio::time::sleep(Duration::from_micros(10)).await;
        tokio::spawn(async { tokio::task::yield_now().await })
            .await
            .unwrap();
    }
}

#[async_trait]
impl Backend for Slow {
    backend_core::delegate! {
        |self| self.state => info, working_dir, resolve, stat, ls, read_text, write, edit,
        create_dir, delete, rename, copy, glob, grep, watch
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        None
    }

    async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        self.wait().await;
        self.state.read(path, options).await
    }
}
