//! Shared helpers of these tests.

use std::sync::{Mutex, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use backend_core::ops::*;
use backend_core::text::TextWindow;
use backend_core::{Backend, BackendInfo, Edit, Result, Sandbox, VPath};
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
    fn info(&self) -> BackendInfo {
        self.state.info()
    }

    fn working_dir(&self) -> VPath {
        self.state.working_dir()
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        None
    }

    async fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath> {
        self.state.resolve(path, options).await
    }

    async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        self.state.stat(path, options).await
    }

    async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
        self.state.ls(path, options).await
    }

    async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        self.wait().await;
        self.state.read(path, options).await
    }

    async fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow> {
        self.state.read_text(path, options).await
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        self.state.write(path, content, options).await
    }

    async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        self.state.edit(path, edits, options).await
    }

    async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        self.state.create_dir(path, options).await
    }

    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        self.state.delete(path, options).await
    }

    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        self.state.rename(from, to, options).await
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        self.state.copy(from, to, options).await
    }

    async fn glob(&self, query: GlobQuery) -> Result<GlobResult> {
        self.state.glob(query).await
    }

    async fn grep(&self, query: GrepQuery) -> Result<GrepResult> {
        self.state.grep(query).await
    }
}
