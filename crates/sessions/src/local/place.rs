//! [`Place`]: the directory of one session, with its files, its record and its locks.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use backend_core::{Error, ErrorKind, Result};
use rustix::fs::OFlags;

use super::blocking::from_io;
use super::host::{
    changed, create_directory, is_at, open_directory, remove_file, through, write_private,
};
use crate::id::SessionId;
use crate::layout::{
    ENV, NEW_ENV, NEW_RECORD, RECORD, RECORD_BYTES, RELEASE, WORKSPACE, holds_only_own, in_use,
    is_session, occupied,
};
use crate::record::{Record, RecordState};
use crate::request::OpenRequest;

/// The largest file of variables that is read.
const ENV_BYTES: u64 = 4 * 1024 * 1024;

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
    /// When this process began to use it, or was last asked to end it.
    since: SystemTime,
}

impl InUse {
    /// Takes a request of this time to end the session. Returns `false` if it is older than
    /// the use, or was taken before.
    pub(super) fn take_request(&mut self, at: SystemTime) -> bool {
        let is_new = at > self.since;
        self.since = self.since.max(at);
        is_new
    }
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
    /// `None` if a process uses it already. `mark` is called once nothing refuses the claim,
    /// before anything is stored.
    pub(super) fn claim(
        &self,
        request: &OpenRequest,
        now: SystemTime,
        mark: impl FnOnce() -> Result<()>,
    ) -> Result<Option<InUse>> {
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
        // A directory of another program would be purged with the session.
        if !is_known && !holds_only_own(&self.path) {
            return Err(occupied(&self.id));
        }
        mark()?;
        create_directory(&self.path.join(WORKSPACE)).map_err(from_io)?;
        // The record first: what has none is no session, and must hold no variables.
        let used = self.write_record(&record)?;
        self.write_env(&request.env)?;
        remove_file(&self.path.join(RELEASE)).map_err(from_io)?;
        drop(held);
        Ok(Some(used))
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

    /// Gives a session that no process uses to another tenant. `false` if there is no such
    /// session.
    pub(super) fn set_tenant(&self, tenant: &str) -> Result<bool> {
        let Some(_held) = self.hold()? else {
            return Ok(false);
        };
        let Some(file) = self.open_record()? else {
            return Ok(false);
        };
        if is_locked(&file)? {
            return Err(in_use(&self.id));
        }
        let Some(mut record) = self.session_record(&file)? else {
            return Ok(false);
        };
        record.tenant = Some(tenant.into());
        self.write_record(&record).map(|_| true)
    }

    /// Asks the processes that use the session to end it. `false` if none does.
    pub(super) fn request_release(&self) -> Result<bool> {
        let Some(_held) = self.hold()? else {
            return Ok(false);
        };
        let Some(record) = self.open_record()? else {
            return Ok(false);
        };
        if !is_locked(&record)? {
            return Ok(false);
        }
        let file = write_private(&self.path.join(RELEASE), b"").map_err(from_io)?;
        // The kernel's own time of a change can be earlier than a use before it.
        let dated = file.set_modified(SystemTime::now());
        dated.map_err(from_io).map(|()| true)
    }

    /// Returns when a process last asked to end the session.
    pub(super) fn release_requested(&self) -> Option<SystemTime> {
        let found = fs::symlink_metadata(self.path.join(RELEASE)).ok()?;
        found.modified().ok()
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

    /// Returns the record and whether a process uses the session. `None` for a directory
    /// without one, which is not a session of this engine.
    pub(super) fn record(&self) -> Result<Option<Record>> {
        let Some(_held) = self.hold()? else {
            return Ok(None);
        };
        if !self.exists() {
            return Ok(None);
        }
        let Some(file) = self.open_record()? else {
            return Ok(None);
        };
        let state = if is_locked(&file)? {
            RecordState::Running
        } else {
            RecordState::Stored
        };
        let record = self.own_record(&file, state)?;
        Ok(record.map(|record| record.with_state(state)))
    }

    /// Returns the same, or the time of the last change of files that another engine or a
    /// person has put here.
    pub(super) fn stored(&self) -> Result<Option<Record>> {
        let record = self.record()?;
        if record.is_some() || !self.exists() || !is_session(&self.path) {
            return Ok(record);
        }
        let files = fs::symlink_metadata(self.path.join(WORKSPACE)).map_err(from_io)?;
        Ok(Some(self.unknown(changed(&files)?)))
    }

    /// Writes the time of the last use, never earlier than what is there.
    /// Returns whether there is a session.
    pub(super) fn touch(&self, at: SystemTime) -> Result<bool> {
        let Some(_held) = self.hold()? else {
            return Ok(false);
        };
        let Some(file) = self.open_record()? else {
            return Ok(true);
        };
        let known = changed(&file.metadata().map_err(from_io)?)?;
        if at > known {
            file.set_modified(at).map_err(from_io)?;
        }
        Ok(true)
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
        let Some(file) = self.open_record()? else {
            return Ok(Removal::Missing);
        };
        if is_locked(&file)? {
            return Ok(Removal::Used);
        }
        let Some(record) = self.session_record(&file)? else {
            return Ok(Removal::Missing);
        };
        if !is_due(&record) {
            return Ok(Removal::Kept);
        }
        fs::rename(&self.path, to).map_err(from_io)?;
        Ok(Removal::Moved)
    }

    /// Returns the record of a session that no process uses. `None` for any other directory,
    /// which only has a name that could be an id.
    fn session_record(&self, file: &File) -> Result<Option<Record>> {
        if self.exists() {
            return self.own_record(file, RecordState::Stored);
        }
        // Its commands may have deleted the workspace. A file with the name of a record is
        // not enough: other programs use that name too.
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
    /// must stay reachable; if there is more beside it and no process uses it, it is another
    /// program's, which uses that name too, and there is none.
    fn own_record(&self, file: &File, state: RecordState) -> Result<Option<Record>> {
        let last_activity = changed(&file.metadata().map_err(from_io)?)?;
        let mut record = match self.known_record(file)? {
            Some(record) => record,
            None if state == RecordState::Running || holds_only_own(&self.path) => {
                self.unknown(last_activity)
            }
            None => return Ok(None),
        };
        record.id = self.id.clone();
        record.last_activity = last_activity;
        Ok(Some(record))
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
        Ok(()) => Ok(InUse {
            record,
            since: SystemTime::now(),
        }),
        Err(TryLockError::WouldBlock) => Err(Error::unavailable(
            "the session's record is locked; try again",
        )),
        Err(TryLockError::Error(error)) => Err(from_io(error)),
    }
}

#[cfg(test)]
mod tests;
