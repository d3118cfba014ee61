//! [`Place`]: the directory of one session, with its files, its record and its locks.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use backend_core::{Error, ErrorKind, Result};
use rustix::fs::OFlags;

use super::blocking::from_io;
use crate::id::SessionId;
use crate::mark;
use crate::record::{Record, RecordState};
use crate::request::OpenRequest;

/// The directory of the files.
const WORKSPACE: &str = "workspace";

/// The file with the record.
const RECORD: &str = "session.json";

/// The name of a record until it is complete.
const NEW_RECORD: &str = "session.json.new";

/// The file with the variables of commands, if there are any.
const ENV: &str = "env.json";

/// The name of that file until it is complete.
const NEW_ENV: &str = "env.json.new";

/// The largest record that is read. Ours are far smaller.
const RECORD_BYTES: u64 = 64 * 1024;

/// The largest file of variables that is read.
const ENV_BYTES: u64 = 4 * 1024 * 1024;

/// The mode of directories: only the owner may enter.
const PRIVATE: u32 = 0o700;

/// The directory of one session. It need not exist.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) id: SessionId,
    path: PathBuf,
}

/// The proof that this process uses a session: a shared lock on its record, which the
/// kernel releases when the process ends in whatever way.
#[derive(Debug)]
pub(super) struct InUse {
    record: File,
}

impl Drop for InUse {
    /// Closing the file would keep the lock for as long as a program that another thread
    /// just starts has its copy of it.
    fn drop(&mut self) {
        // If it fails, closing the file releases the lock.
        let _ = self.record.unlock();
    }
}

/// The outcome of an attempt to take a session's directory away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    /// There was none.
    Missing,
    /// A process uses the session.
    Used,
    /// It is not due.
    Kept,
    /// The directory is now where it was to be moved.
    Moved,
}

impl Place {
    pub(super) fn new(root: &Path, id: &SessionId) -> Self {
        Self {
            id: id.clone(),
            path: root.join(id.as_str()),
        }
    }

    /// Makes the session this process's: creates what is missing and begins a new record.
    /// `None` if a process uses it already.
    pub(super) fn claim(&self, request: &OpenRequest, now: SystemTime) -> Result<Option<InUse>> {
        let held = loop {
            create_directory(&self.path).map_err(from_io)?;
            // It may be removed before it is held.
            if let Some(held) = self.hold()? {
                break held;
            }
        };
        let mut record = Record::new(request, now);
        let mut is_known = false;
        if let Some(file) = self.open_record()? {
            if is_locked(&file)? {
                return Ok(None);
            }
            if let Some(before) = self.known_record(&file)? {
                before.check_serves(request)?;
                record.tenant = record.tenant.or(before.tenant);
                is_known = true;
            }
        }
        if !is_known {
            self.check_free()?;
        }
        create_directory(&self.path.join(WORKSPACE)).map_err(from_io)?;
        self.write_env(&request.env)?;
        let used = self.write_record(&record);
        drop(held);
        used.map(Some)
    }

    /// Refuses a directory of another program: it would be purged with the session.
    fn check_free(&self) -> Result<()> {
        let is_free = if self.exists() {
            !mark::is_root(&self.path)
        } else {
            let mut entries = fs::read_dir(&self.path).map_err(from_io)?.flatten();
            // Left by a process that was killed.
            entries.all(|entry| {
                [ENV, NEW_ENV, NEW_RECORD]
                    .iter()
                    .any(|own| entry.file_name() == *own)
            })
        };
        if is_free {
            return Ok(());
        }
        Err(mark::occupied(&self.id))
    }

    /// Joins the processes that use the session, or wakes it. `None` if there is no such
    /// session.
    pub(super) fn enter(&self) -> Result<Option<InUse>> {
        let Some(_held) = self.hold()? else {
            return Ok(None);
        };
        let Some(record) = self.open_record()? else {
            return Ok(None);
        };
        share(record).map(Some)
    }

    /// Returns the variables of the session's commands.
    pub(super) fn env(&self) -> Result<BTreeMap<String, String>> {
        let Some(file) = self.open_own(ENV)? else {
            return Ok(BTreeMap::new());
        };
        let mut json = Vec::new();
        let read = file.take(ENV_BYTES).read_to_end(&mut json);
        read.map_err(from_io)?;
        Ok(serde_json::from_slice(&json).unwrap_or_default())
    }

    /// Replaces the variables of a session's commands.
    pub(super) fn set_env(&self, env: &BTreeMap<String, String>) -> Result<()> {
        match self.hold()? {
            Some(_held) => self.write_env(env),
            None => Ok(()),
        }
    }

    /// Whether the session was opened by an engine of this kind.
    pub(super) fn has_record(&self) -> bool {
        let record = fs::symlink_metadata(self.path.join(RECORD));
        record.is_ok_and(|found| found.is_file())
    }

    /// Returns what tells the directory of the files from any other while it is open.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        let files = fs::symlink_metadata(self.path.join(WORKSPACE)).ok()?;
        Some((files.dev(), files.ino()))
    }

    /// Whether the session has a directory with files.
    pub(super) fn exists(&self) -> bool {
        let files = fs::symlink_metadata(self.path.join(WORKSPACE));
        files.is_ok_and(|found| found.is_dir())
    }

    /// Returns the record and whether a process uses the session.
    pub(super) fn record(&self) -> Result<Option<Record>> {
        let Some(_held) = self.hold()? else {
            return Ok(None);
        };
        if !self.exists() {
            return Ok(None);
        }
        let Some(file) = self.open_record()? else {
            if mark::is_root(&self.path) {
                return Ok(None);
            }
            // Files that another program stored here.
            let files = fs::symlink_metadata(self.path.join(WORKSPACE)).map_err(from_io)?;
            return Ok(Some(self.unknown(changed(&files)?)));
        };
        let state = if is_locked(&file)? {
            RecordState::Running
        } else {
            RecordState::Stored
        };
        Ok(Some(self.parse_record(&file)?.with_state(state)))
    }

    /// Writes the time of the last use, never earlier than what is there.
    pub(super) fn touch(&self, at: SystemTime) -> Result<()> {
        let Some(_held) = self.hold()? else {
            return Ok(());
        };
        let Some(file) = self.open_record()? else {
            return Ok(());
        };
        let known = changed(&file.metadata().map_err(from_io)?)?;
        if at > known {
            file.set_modified(at).map_err(from_io)?;
        }
        Ok(())
    }

    /// Moves the directory to `to`, an empty directory, if it is a session's, no process
    /// uses it and `is_due` says so of its record. From then on the session does not exist.
    pub(super) fn move_away(
        &self,
        to: &Path,
        is_due: impl FnOnce(&Record) -> bool,
    ) -> Result<Removal> {
        let found = fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| !found.is_dir()) {
            return Ok(Removal::Missing);
        }
        let Some(_held) = self.hold()? else {
            return Ok(Removal::Missing);
        };
        let file = self.open_record()?;
        if let Some(file) = &file
            && is_locked(file)?
        {
            return Ok(Removal::Used);
        }
        let Some(record) = self.removable(file.as_ref())? else {
            return Ok(Removal::Missing);
        };
        if !is_due(&record) {
            return Ok(Removal::Kept);
        }
        fs::rename(&self.path, to).map_err(from_io)?;
        Ok(Removal::Moved)
    }

    /// Returns the record of a directory that is a session's. `None` for any other
    /// directory, which only has a name that could be an id.
    fn removable(&self, file: Option<&File>) -> Result<Option<Record>> {
        if self.exists() {
            let Some(file) = file else {
                if mark::is_root(&self.path) {
                    return Ok(None);
                }
                let found = fs::symlink_metadata(&self.path).map_err(from_io)?;
                return Ok(Some(self.unknown(changed(&found)?)));
            };
            return self.parse_record(file).map(Some);
        }
        // Its commands may have deleted the workspace. A file with the name of a record is
        // not enough: other programs use that name too.
        let Some(file) = file else {
            return Ok(None);
        };
        Ok(self.known_record(file)?.filter(|known| known.id == self.id))
    }

    /// Passes on a path of the files that leads to exactly this directory while `open`
    /// runs, even if something else gets its name.
    ///
    /// # Errors
    ///
    /// `NotFound` if there are no files; those of `open`.
    pub(super) fn with_files<T>(&self, open: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        // A link in place of either directory is refused.
        let directory = open_directory(&self.path).map_err(|error| self.absent(error))?;
        let files = through(&directory).join(WORKSPACE);
        let files = open_directory(&files).map_err(|error| self.absent(error))?;
        open(&through(&files))
    }

    fn absent(&self, error: io::Error) -> Error {
        if error.kind() == io::ErrorKind::NotFound {
            let message = "no files are stored for this session";
            return Error::new(ErrorKind::NotFound, message).about(&self.id);
        }
        from_io(error).about(&self.id)
    }

    /// Locks the directory for a moment, against all others that do the same. `None` if
    /// there is none.
    fn hold(&self) -> Result<Option<File>> {
        loop {
            let directory = match open_directory(&self.path) {
                Ok(directory) => directory,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(from_io(error).about(&self.id)),
            };
            directory.lock().map_err(from_io)?;
            // It may have been removed, and another one created, until the lock was free.
            if is_at(&directory, &self.path).map_err(from_io)? {
                return Ok(Some(directory));
            }
        }
    }

    fn open_record(&self) -> Result<Option<File>> {
        self.open_own(RECORD)
    }

    /// Opens a file beside the workspace. A link in its place is refused, and a FIFO is not
    /// waited for.
    fn open_own(&self, name: &str) -> Result<Option<File>> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags.bits() as i32)
            .open(self.path.join(name));
        match opened {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(from_io(error).about(&self.id)),
        }
    }

    /// Reads a record. One that cannot be read counts as empty, because the files beside it
    /// must stay reachable.
    fn parse_record(&self, file: &File) -> Result<Record> {
        let last_activity = changed(&file.metadata().map_err(from_io)?)?;
        let mut record = match self.known_record(file)? {
            Some(record) => record,
            None => self.unknown(last_activity),
        };
        record.id = self.id.clone();
        record.last_activity = last_activity;
        Ok(record)
    }

    /// Reads what a record says, if it is one. Commands without confinement may write
    /// anything there.
    fn known_record(&self, file: &File) -> Result<Option<Record>> {
        let mut text = Vec::new();
        let read = file.take(RECORD_BYTES).read_to_end(&mut text);
        read.map_err(from_io)?;
        let parsed = serde_json::from_slice(&text);
        if let Err(error) = &parsed {
            tracing::warn!(session = %self.id, %error, "a session has no readable record");
        }
        Ok(parsed.ok())
    }

    /// Describes stored files of which only the time is known.
    fn unknown(&self, changed: SystemTime) -> Record {
        let request = OpenRequest::new(self.id.clone());
        Record::new(&request, changed).with_state(RecordState::Stored)
    }

    /// Replaces the record as a whole and locks it.
    fn write_record(&self, record: &Record) -> Result<InUse> {
        let json = serde_json::to_vec(record)
            .map_err(|error| Error::internal("the record cannot be written").with_source(error))?;
        let path = self.path.join(NEW_RECORD);
        let file = write_private(&path, &json).map_err(from_io)?;
        let dated = file.set_modified(record.last_activity);
        dated.map_err(from_io)?;
        let used = share(file)?;
        fs::rename(&path, self.path.join(RECORD)).map_err(from_io)?;
        Ok(used)
    }

    /// Writes the variables of commands, or removes those of an earlier life.
    fn write_env(&self, env: &BTreeMap<String, String>) -> Result<()> {
        let path = self.path.join(ENV);
        if env.is_empty() {
            return remove_file(&path).map_err(from_io);
        }
        let json = serde_json::to_vec(env).map_err(|error| {
            Error::internal("the variables cannot be written").with_source(error)
        })?;
        let new = self.path.join(NEW_ENV);
        drop(write_private(&new, &json).map_err(from_io)?);
        fs::rename(&new, &path).map_err(from_io)
    }
}

/// Writes a file that only its owner may read, and replaces what a killed process left.
fn write_private(path: &Path, content: &[u8]) -> io::Result<File> {
    remove_file(path)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(content)?;
    Ok(file)
}

/// Removes a file; a missing one is a success.
fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Returns a path that leads to an open file, whatever its name is now.
fn through(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Creates a directory that only its owner may enter; an existing one is a success.
pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(PRIVATE).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

/// Opens a directory that is not a link.
fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits() as i32);
    options.open(path)
}

fn is_at(directory: &File, path: &Path) -> io::Result<bool> {
    let held = directory.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a process uses the session with this record. The directory must be held, so that
/// two that ask at once do not see each other.
fn is_locked(record: &File) -> Result<bool> {
    match record.try_lock() {
        Ok(()) => {
            record.unlock().map_err(from_io)?;
            Ok(false)
        }
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(from_io(error)),
    }
}

/// Locks a record as one of its users. The directory must be held: then there is no
/// exclusive lock that this would wait for.
fn share(record: File) -> Result<InUse> {
    match record.try_lock_shared() {
        Ok(()) => Ok(InUse { record }),
        Err(TryLockError::WouldBlock) => Err(Error::unavailable(
            "the session's record is locked; try again",
        )),
        Err(TryLockError::Error(error)) => Err(from_io(error)),
    }
}

fn changed(found: &fs::Metadata) -> Result<SystemTime> {
    found.modified().map_err(from_io)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_lock_in_a_program_that_starts_keeps_no_session() {
        let root = tempfile::tempdir().unwrap();
        let id = SessionId::new("alice").unwrap();
        let place = Place::new(root.path(), &id);
        let request = OpenRequest::new(id);
        let claim = || place.claim(&request, SystemTime::now()).unwrap();
        let used = claim().unwrap();
        let _copy = used.record.try_clone().unwrap();
        assert!(claim().is_none());
        drop(used);
        assert!(claim().is_some());
    }
}
