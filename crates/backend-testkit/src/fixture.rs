//! [`Fixture`], which provides the backend of a case, and three that fit most backends.

mod clock;
#[cfg(target_os = "linux")]
mod directory;
mod sandbox;

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::{Backend, Enforcement, VPath};

use crate::failure::{CaseResult, Failure};

pub use clock::ClockFixture;
#[cfg(target_os = "linux")]
pub use directory::DirectoryFixture;
pub use sandbox::SandboxFixture;

/// A requirement that not every backend or fixture meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Need {
    /// The backend is writable.
    Write,
    /// The backend reports modification times.
    Times,
    /// The fixture can set modification times.
    SetTime,
    /// The fixture can create symbolic links.
    Links,
    /// The fixture can create FIFOs.
    Fifo,
    /// The fixture can create names that are not UTF-8.
    RawName,
    /// The fixture can set permission bits.
    Modes,
    /// There is a directory outside the backend that a link can point to.
    Outside,
    /// The fixture has a second, read-only backend on the same files.
    ReadOnly,
    /// The backend runs commands.
    Commands,
    /// The backend reaches ports of commands.
    Ports,
    /// The backend tells changes.
    Watch,
    /// The backend runs shells in terminals.
    Terminals,
    /// The backend keeps paths from commands.
    Views,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write => "a backend that can be written to",
            Self::Times => "times of last change",
            Self::SetTime => "a fixture that sets times of last change",
            Self::Links => "symbolic links",
            Self::Fifo => "FIFOs",
            Self::RawName => "names that are not UTF-8",
            Self::Modes => "permission bits",
            Self::Outside => "a place outside the backend",
            Self::ReadOnly => "a read-only backend on the same place",
            Self::Commands => "commands",
            Self::Ports => "ports of commands",
            Self::Watch => "changes as a stream",
            Self::Terminals => "terminals",
            Self::Views => "paths that are kept from commands",
        })
    }
}

#[track_caller]
fn unprovided(need: Need, path: &VPath, detail: &str) -> Failure {
    Failure::new(format!(
        "the fixture says it provides {need} but does not implement it ({path} {detail})"
    ))
}

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
        let info = self.backend().info();
        let capabilities = info.capabilities;
        match need {
            Need::Write => capabilities.writable,
            Need::Times => capabilities.times,
            Need::Commands => capabilities.commands,
            Need::Ports => capabilities.ports,
            Need::Watch => capabilities.watch,
            Need::Terminals => capabilities.terminals,
            Need::Views => capabilities.commands && info.enforcement >= Enforcement::View,
            Need::ReadOnly => self.read_only().is_some(),
            Need::SetTime | Need::Links | Need::Fifo | Need::RawName => false,
            Need::Modes | Need::Outside => false,
        }
    }

    /// Returns a read-only backend on the same files, if there can be one.
    fn read_only(&self) -> Option<Arc<dyn Backend>> {
        None
    }

    /// Whether a write to a shell returns only after the shell's side has taken the input.
    /// If it is only sent, it may be lost with a shell that has just ended.
    fn acknowledges_input(&self) -> bool {
        true
    }

    /// Returns the text of an absolute link to `path`: the path as seen by the code
    /// that follows links.
    fn link_text(&self, path: &VPath) -> String {
        path.to_string()
    }

    /// Creates a symbolic link at `path` with exactly this text.
    async fn make_link(&self, path: &VPath, target: &str) -> CaseResult {
        Err(unprovided(Need::Links, path, target))
    }

    /// Creates a FIFO at `path`.
    async fn make_fifo(&self, path: &VPath) -> CaseResult {
        Err(unprovided(Need::Fifo, path, ""))
    }

    /// Creates an empty file in `directory` whose name is these bytes.
    async fn make_raw_name(&self, directory: &VPath, name: &[u8]) -> CaseResult {
        let name = String::from_utf8_lossy(name);
        Err(unprovided(Need::RawName, directory, &name))
    }

    /// Sets the permission bits of the entry at `path`.
    async fn set_mode(&self, path: &VPath, mode: u32) -> CaseResult {
        Err(unprovided(Need::Modes, path, &format!("{mode:o}")))
    }

    /// Creates a directory outside the backend that contains one file, `secret`, with
    /// the text `secret`. Returns the text of an absolute link to the directory.
    async fn make_outside(&self) -> Result<String, Failure> {
        let root = VPath::root();
        Err(unprovided(Need::Outside, &root, "has no outside"))
    }

    /// Fails unless the directory outside is unchanged: its names, and the file's text,
    /// bits and time.
    async fn check_outside(&self) -> CaseResult {
        let root = VPath::root();
        Err(unprovided(Need::Outside, &root, "has no outside"))
    }

    /// Sets the modification time of the file at `path`.
    async fn set_modified(&self, path: &VPath, time: SystemTime) -> CaseResult {
        Err(unprovided(Need::SetTime, path, &format!("{time:?}")))
    }
}
