//! The file of a state: used by one process at a time, and replaced as a whole.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use backend_state::{Snapshot, StateBuilder};

use crate::exit::{Failure, environment, usage};
use crate::system;

/// The suffix of a document that is still being written.
const TEMPORARY_SUFFIX: &str = ".agentbox-new";

/// A document that no other process has open.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) path: PathBuf,
    /// The temporary file for the next version. Only the holder of the lock writes it,
    /// so a fixed name suffices, and the leftover of a killed process can be
    /// recognized.
    new: PathBuf,
    /// Locked while it is the file at `path`.
    file: File,
}

impl Document {
    /// Opens and loads the document. Creates it if it does not exist.
    pub(super) fn open(
        path: &Path,
        builder: StateBuilder,
    ) -> Result<(Self, StateBuilder), Failure> {
        let shown = path.display();
        let cannot = |error: io::Error| {
            environment!("the state file {shown} cannot be opened: {error}; give another")
        };
        let file = lock(path).map_err(cannot)?.ok_or_else(|| {
            environment!(
                "the state file {shown} is in use by another agentbox; end that one or give another file"
            )
        })?;
        let found = file.metadata().map_err(cannot)?;
        if !found.is_file() {
            return Err(usage!(
                "the state file {shown} is not a regular file; give another"
            ));
        }
        // A link to the file stays. Its target exists by now.
        let path = path.canonicalize().map_err(cannot)?;
        let document = Self {
            new: temporary_path(&path),
            path,
            file,
        };
        document.discard().map_err(cannot)?;
        let builder = match found.len() {
            0 => builder,
            _ => builder
                .load(&document.file)
                .map_err(|error| usage!("{shown}: {}; give another file", error.message()))?,
        };
        Ok((document, builder))
    }

    /// Replaces the document atomically. After an error it is the old one.
    pub(super) fn save(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        self.discard()?;
        let saved = self.replace(snapshot);
        if saved.is_err() {
            // The first error is the one to report.
            let _ = self.discard();
        }
        self.file = saved?;
        Ok(())
    }

    fn replace(&self, snapshot: &Snapshot) -> io::Result<File> {
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        let new = system::make_private(&mut options).open(&self.new)?;
        let mut writer = BufWriter::new(&new);
        serde_json::to_writer(&mut writer, snapshot)?;
        writer.flush()?;
        drop(writer);
        new.set_permissions(self.file.metadata()?.permissions())?;
        // Before it gets its final name, under which other processes look for it.
        new.lock()?;
        new.sync_data()?;
        fs::rename(&self.new, &self.path)?;
        Ok(new)
    }

    fn discard(&self) -> io::Result<()> {
        match fs::remove_file(&self.new) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// Releases the lock explicitly. A process that is being started has a copy of the
/// handle until its program begins, and closing this handle alone would leave the lock
/// with that copy.
impl Drop for Document {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Returns the path of the temporary file, on the same file system.
fn temporary_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(TEMPORARY_SUFFIX);
    path.with_file_name(name)
}

/// Opens and locks the file at `path`. Returns `None` if another process has it.
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
        // It may have been replaced meanwhile, by a process that has ended since.
        if system::is_same(&file, path)? {
            return Ok(Some(file));
        }
    }
}

#[cfg(test)]
mod tests {
    use backend_state::StateBackend;

    use super::*;

    fn open(path: &Path) -> Result<(Document, Snapshot), Failure> {
        let (document, builder) = Document::open(path, StateBackend::builder())?;
        Ok((document, builder.build().snapshot()))
    }

    #[test]
    fn one_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let (mut document, snapshot) = open(&path).unwrap();
        assert!(snapshot.is_empty());
        let files = Snapshot::from_files([("/a", "one")]).unwrap();
        for _ in 0..2 {
            let error = open(&path).unwrap_err().to_string();
            assert!(error.contains("in use"), "{error}");
            document.save(&files).unwrap();
        }
        drop(document);
        let (_document, snapshot) = open(&path).unwrap();
        assert_eq!(snapshot, files);
        // Only the document is left.
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_stays_also_if_it_led_nowhere() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target.json");
        let link = directory.path().join("state.json");
        std::os::unix::fs::symlink("target.json", &link).unwrap();
        let files = Snapshot::from_files([("/a", "one")]).unwrap();
        let (mut document, _) = open(&link).unwrap();
        document.save(&files).unwrap();
        drop(document);
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert!(target.symlink_metadata().unwrap().is_file());
        let (_document, snapshot) = open(&target).unwrap();
        assert_eq!(snapshot, files);
    }

    #[test]
    fn what_is_no_document_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.txt");
        std::fs::write(&path, "no document").unwrap();
        assert!(open(&path).unwrap_err().is_usage());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "no document");
        assert!(open(directory.path()).is_err());
        assert!(open(&directory.path().join("no/where")).is_err());
        let fifo = directory.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        assert!(open(&fifo).unwrap_err().is_usage());
    }

    #[test]
    fn what_a_killed_program_left_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let (mut document, _) = open(&path).unwrap();
        let files = Snapshot::from_files([("/a", "one")]).unwrap();
        document.save(&files).unwrap();
        drop(document);
        std::fs::write(temporary_path(&path), "half a docum").unwrap();
        // The temporary file of another document stays.
        let other = directory.path().join(".other.json.agentbox-new");
        std::fs::write(&other, "somebody saves").unwrap();
        let (mut document, snapshot) = open(&path).unwrap();
        assert_eq!(snapshot, files);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
        // A symbolic link in its place is not followed.
        std::os::unix::fs::symlink(&other, temporary_path(&path)).unwrap();
        document.save(&Snapshot::default()).unwrap();
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "somebody saves");
        assert!(path.symlink_metadata().unwrap().is_file());
    }

    #[test]
    fn limits_hold_for_what_is_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let (mut document, _) = open(&path).unwrap();
        let files = Snapshot::from_files([("/a", "x".repeat(2_000))]).unwrap();
        document.save(&files).unwrap();
        drop(document);
        let small = StateBackend::builder().max_file_bytes(1_000);
        let error = Document::open(&path, small).unwrap_err();
        assert!(error.is_usage());
        assert!(error.to_string().contains("1000 bytes"), "{error}");
    }
}
