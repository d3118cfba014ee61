//! A machine whose programs are functions of a test.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Result, VPath};
use tokio::io::DuplexStream;

use super::{Machine, Process, Spawn};

/// A machine that always runs.
pub(crate) struct FakeMachine {
    start: Box<dyn Fn(Spawn) -> Process + Send + Sync>,
    spawned: AtomicUsize,
}

impl fmt::Debug for FakeMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FakeMachine")
    }
}

impl FakeMachine {
    /// Creates a machine that starts programs with this function.
    pub(crate) fn new(start: impl Fn(Spawn) -> Process + Send + Sync + 'static) -> Self {
        Self {
            start: Box::new(start),
            spawned: AtomicUsize::new(0),
        }
    }

    /// Creates a machine whose programs are tasks with one end of a pipe.
    pub(crate) fn piped<F>(program: impl Fn(DuplexStream) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::new(move |_| {
            let (near, far) = tokio::io::duplex(64 * 1024);
            tokio::spawn(program(far));
            let (reader, writer) = tokio::io::split(near);
            Process::over(reader, writer)
        })
    }

    /// Returns the number of programs started.
    pub(crate) fn spawned(&self) -> usize {
        self.spawned.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Machine for FakeMachine {
    fn name(&self) -> Cow<'static, str> {
        "fake".into()
    }

    fn id(&self) -> String {
        "fake".into()
    }

    fn working_dir(&self) -> VPath {
        VPath::root()
    }

    async fn start(&self) -> Result<()> {
        Ok(())
    }

    async fn stop(&self, _: StopMode) -> Result<()> {
        Ok(())
    }

    async fn is_alive(&self) -> Result<bool> {
        Ok(true)
    }

    async fn agent(&self) -> Result<Vec<String>> {
        Ok(vec!["agent".into()])
    }

    async fn spawn(&self, program: Spawn) -> Result<Process> {
        self.spawned.fetch_add(1, Ordering::SeqCst);
        Ok((self.start)(program))
    }
}
