//! [`Fixture`], which provides the backend of a case, and two that fit most backends.

mod clock;
#[cfg(target_os = "linux")]
mod directory;

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::{Backend, VPath};

use crate::case::{CaseResult, Failure, Need};

pub use clock::ClockFixture;
#[cfg(target_os = "linux")]
pub use directory::DirectoryFixture;

/// Provides a fresh, empty backend for one case, and performs the changes that the
/// contract mentions but the trait cannot make.
///
/// A fixture lives as long as its case. Clean up in `Drop`.
///
/// # Signatures
///
/// The async methods, as they are written under `#[async_trait]`:
///
/// ```text
/// async fn make_link(&self, path: &VPath, target: &str) -> CaseResult;
/// async fn make_fifo(&self, path: &VPath) -> CaseResult;
/// async fn make_raw_name(&self, directory: &VPath, name: &[u8]) -> CaseResult;
/// async fn set_mode(&self, path: &VPath, mode: u32) -> CaseResult;
/// async fn make_outside(&self) -> Result<String, Failure>;
/// async fn check_outside(&self) -> CaseResult;
/// async fn set_modified(&self, path: &VPath, time: SystemTime) -> CaseResult;
/// ```
#[async_trait]
pub trait Fixture: Send + Sync + 'static {
    /// Returns the backend under test. Its working directory is empty and not shared.
    fn backend(&self) -> Arc<dyn Backend>;

    /// Whether cases with this requirement can run.
    ///
    /// By default this follows the backend's capabilities. Requirements that the
    /// fixture itself must meet are not provided.
    fn provides(&self, need: Need) -> bool {
        let capabilities = self.backend().info().capabilities;
        match need {
            Need::Write => capabilities.writable,
            Need::Times => capabilities.times,
            Need::Commands => capabilities.commands,
            Need::ReadOnly => self.read_only().is_some(),
            Need::SetTime | Need::Links | Need::Fifo | Need::RawName => false,
            Need::Modes | Need::Outside => false,
        }
    }

    /// Returns a read-only backend on the same files, if there can be one.
    fn read_only(&self) -> Option<Arc<dyn Backend>> {
        None
    }

    /// Returns the text of an absolute link to `path`: the path as seen by the code
    /// that follows links.
    fn link_text(&self, path: &VPath) -> String {
        path.to_string()
    }

    /// Creates a symbolic link at `path` with exactly this text.
    async fn make_link(&self, path: &VPath, target: &str) -> CaseResult {
        Err(Failure::unprovided(Need::Links, path, target))
    }

    /// Creates a FIFO at `path`.
    async fn make_fifo(&self, path: &VPath) -> CaseResult {
        Err(Failure::unprovided(Need::Fifo, path, ""))
    }

    /// Creates an empty file in `directory` whose name is these bytes.
    async fn make_raw_name(&self, directory: &VPath, name: &[u8]) -> CaseResult {
        let name = String::from_utf8_lossy(name);
        Err(Failure::unprovided(Need::RawName, directory, &name))
    }

    /// Sets the permission bits of the entry at `path`.
    async fn set_mode(&self, path: &VPath, mode: u32) -> CaseResult {
        Err(Failure::unprovided(Need::Modes, path, &format!("{mode:o}")))
    }

    /// Creates a directory outside the backend that contains one file, `secret`, with
    /// the text `secret`. Returns the text of an absolute link to the directory.
    async fn make_outside(&self) -> Result<String, Failure> {
        let root = VPath::root();
        Err(Failure::unprovided(Need::Outside, &root, "has no outside"))
    }

    /// Fails unless the directory outside is unchanged: its names, and the file's text,
    /// bits and time.
    async fn check_outside(&self) -> CaseResult {
        let root = VPath::root();
        Err(Failure::unprovided(Need::Outside, &root, "has no outside"))
    }

    /// Sets the modification time of the file at `path`.
    async fn set_modified(&self, path: &VPath, time: SystemTime) -> CaseResult {
        Err(Failure::unprovided(
            Need::SetTime,
            path,
            &format!("{time:?}"),
        ))
    }
}
