//! The preview of a write for the approver, and the state that the file must still be in
//! when the answer arrives.

use backend_core::ops::{ContentHash, Links, ReadOptions, WriteMode};
use backend_core::{Backend, Error, ErrorKind, Result, VPath};
use bytes::Bytes;

use super::guard::Guarded;
use crate::approval::Effect;

/// Maximum size of a file whose change is shown in a question, in bytes.
pub const PREVIEW_BYTES: u64 = 1024 * 1024;

/// The state of a file when the approver was asked.
#[derive(Debug)]
pub(super) enum FileState {
    /// The file did not exist.
    Missing,
    /// The file had these contents.
    Contents(Bytes),
    /// Not known, because the file is large or cannot be read.
    Unknown,
}

impl FileState {
    /// Returns the mode for the write: it fails if the file is not as it was shown.
    pub(super) fn bind_mode(&self, mode: WriteMode) -> WriteMode {
        match (mode, self) {
            (WriteMode::Overwrite, Self::Missing) => WriteMode::CreateNew,
            (WriteMode::Overwrite, Self::Contents(bytes)) => {
                WriteMode::IfUnchanged(ContentHash::of(bytes))
            }
            (WriteMode::Overwrite, Self::Unknown)
            | (WriteMode::CreateNew | WriteMode::IfUnchanged(_), _) => mode,
        }
    }

    /// Fails as the write would, before the approver is asked.
    pub(super) fn check(&self, mode: WriteMode) -> Result<()> {
        match self {
            Self::Missing => mode.check(None),
            Self::Contents(bytes) => mode.check(Some(bytes)),
            Self::Unknown => Ok(()),
        }
    }

    /// Returns the effect of writing `new`.
    pub(super) fn write_effect(&self, path: &VPath, new: &Bytes) -> Effect {
        match self {
            Self::Contents(old) if is_small(new) => Effect::write(path.as_str(), Some(old), new),
            Self::Missing if is_small(new) => Effect::write(path.as_str(), None, new),
            _ => Effect::None,
        }
    }

    /// Returns the hash of the contents.
    pub(super) fn hash(&self) -> Option<ContentHash> {
        match self {
            Self::Contents(bytes) => Some(ContentHash::of(bytes)),
            Self::Missing | Self::Unknown => None,
        }
    }
}

/// Returns whether contents are small enough to be shown.
pub(super) fn is_small(bytes: &[u8]) -> bool {
    bytes.len() as u64 <= PREVIEW_BYTES
}

impl<B: Backend> Guarded<B> {
    /// Reads the state of the file at `at` before a write.
    pub(super) async fn file_state(&self, at: &VPath) -> Result<FileState> {
        let options = ReadOptions::default()
            .links(Links::Refuse)
            .max_bytes(PREVIEW_BYTES);
        match self.backend().read(at, options).await {
            Ok(found) => Ok(FileState::Contents(found.data)),
            Err(error) => match error.kind() {
                ErrorKind::NotFound => Ok(FileState::Missing),
                ErrorKind::IsADirectory | ErrorKind::NotADirectory => Err(error),
                _ => Ok(FileState::Unknown),
            },
        }
    }
}

/// Converts the error of a change to a file that is not as it was shown.
pub(super) fn changed_meanwhile(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Conflict | ErrorKind::AlreadyExists => Error::new(
            ErrorKind::Conflict,
            "the file changed in the meantime; read it again and retry",
        ),
        _ => error,
    }
}
