//! The file that a state is kept in: one program at a time, replaced as a whole.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use backend_state::Snapshot;
use tempfile::NamedTempFile;

use crate::exit::Failure;

/// A document that nobody else has open.
#[derive(Debug)]
pub(super) struct Document {
    path: PathBuf,
    /// Locked as long as this is the file at `path`.
    file: File,
}

impl Document {
    /// Opens the document, which is created if it is not there, and reads it.
    pub(super) fn open(path: &Path) -> Result<(Self, Snapshot), Failure> {
        let shown = path.display();
        let cannot = |error: io::Error| {
            Failure::environment(format!(
                "the state file {shown} cannot be opened: {error}; give another"
            ))
        };
        // What is replaced is the file, not a link to it.
        let path = match path.canonicalize() {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_path_buf(),
            Err(error) => return Err(cannot(error)),
        };
        let mut file = lock(&path).map_err(cannot)?.ok_or_else(|| {
            Failure::environment(format!(
                "the state file {shown} is in use by another agentbox; end that one or give another file"
            ))
        })?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(cannot)?;
        let snapshot = match text.is_empty() {
            true => Snapshot::default(),
            false => Snapshot::from_json(&text).map_err(|error| {
                Failure::usage(format!("{shown}: {}; give another file", error.message()))
            })?,
        };
        Ok((Self { path, file }, snapshot))
    }

    /// Replaces the document. Whoever reads it sees the old one or the new one.
    pub(super) fn save(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let text = snapshot.to_json().map_err(io::Error::other)?;
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let mut new = NamedTempFile::with_prefix_in(".agentbox-state-", directory)?;
        new.write_all(text.as_bytes())?;
        new.as_file()
            .set_permissions(self.file.metadata()?.permissions())?;
        // Before it has the name that others look for.
        new.as_file().lock()?;
        new.as_file().sync_data()?;
        self.file = new.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// The file at `path`, locked; `None` if somebody else has it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    loop {
        let mut options = File::options();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        // Meanwhile it may have been replaced by one who has gone since.
        let (ours, there) = (file.metadata()?, std::fs::metadata(path));
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
            return Ok(Some(file));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let (mut document, snapshot) = Document::open(&path).unwrap();
        assert!(snapshot.is_empty());
        let files = Snapshot::from_files([("/a", "one")]).unwrap();
        for _ in 0..2 {
            let error = Document::open(&path).unwrap_err().to_string();
            assert!(error.contains("in use"), "{error}");
            document.save(&files).unwrap();
        }
        drop(document);
        let (_document, snapshot) = Document::open(&path).unwrap();
        assert_eq!(snapshot, files);
        // Nothing but the document stays.
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_document_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.txt");
        std::fs::write(&path, "no document").unwrap();
        assert!(Document::open(&path).unwrap_err().is_usage());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "no document");
        assert!(Document::open(directory.path()).is_err());
        assert!(Document::open(&directory.path().join("no/where")).is_err());
    }
}
