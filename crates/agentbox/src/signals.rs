//! Ctrl-C: the first cancels the work, the second always ends the program.
//!
//! Signals are handled by a separate thread, so no call can keep the program from
//! ending. Commands end with it, because their supervisor notices.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use backend_core::sync::lock;
use tokio::sync::watch;

use crate::exit::{Failure, environment};
use crate::system::{self, StopSignals};

/// Directories to remove if the program has to end at once.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Reports signals that ask the program to end.
#[derive(Debug, Clone)]
pub(crate) struct Interrupts(watch::Receiver<Option<u8>>);

impl Interrupts {
    pub(crate) fn watch() -> Result<Self, Failure> {
        let cannot =
            |error: std::io::Error| environment!("signals cannot be received: {error}; try again");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .map_err(cannot)?;
        let entered = runtime.enter();
        // A program started with `nohup` stays when the terminal is closed.
        let mut signals = StopSignals::listen(!system::ignores_hangup()).map_err(cannot)?;
        drop(entered);
        let (tell, told) = watch::channel(None);
        let watch = async move {
            loop {
                let code = signals.next().await;
                if tell.borrow().is_some() {
                    for directory in &*lock(&TEMPORARY) {
                        let _ = std::fs::remove_dir_all(directory);
                    }
                    system::restore_terminal();
                    std::process::exit(i32::from(code));
                }
                tell.send_replace(Some(code));
            }
        };
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || runtime.block_on(watch))
            .map_err(cannot)?;
        Ok(Self(told))
    }

    /// Waits for the first signal. Returns the exit code.
    pub(crate) async fn wait(&self) -> u8 {
        let mut told = self.0.clone();
        let code = told.wait_for(Option::is_some).await.map(|code| *code);
        match code {
            Ok(code) => code.unwrap_or_default(),
            // The watching thread never ends.
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits for `work`, but drops it at the first signal.
    pub(crate) async fn unless<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            // There is nothing to report.
            code = self.wait() => Err(Failure::new(code, "")),
            done = work => Ok(done),
        }
    }
}

/// Registers a directory to remove even if the program has to end at once.
pub(crate) fn temporary(directory: &Path) {
    lock(&TEMPORARY).push(directory.to_path_buf());
}
