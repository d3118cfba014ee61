//! [`Root`]: the directory that holds the directories of all sessions.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use backend_core::{Error, Result};

use super::blocking::from_io;
use super::host::create_directory;
use super::measure::measure;
use super::place::{Place, Removal};
use crate::disk::{self, remove_tree};
use crate::id::SessionId;
use crate::layout::in_use;
use crate::mark::{self, Kind};
use crate::record::{Record, RecordState};
use crate::time::elapsed;

/// The beginning of the names of directories that are being deleted. No id begins with a
/// dot.
const REMOVED: &str = ".removed-";

/// Distinguishes the directories that this process deletes.
static REMOVALS: AtomicU64 = AtomicU64::new(0);

/// The directory that holds the directories of all sessions.
#[derive(Debug, Clone)]
pub(super) struct Root {
    path: Arc<Path>,
}

impl Root {
    /// Opens a directory, and creates it if it is missing.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let mut builder = fs::DirBuilder::new();
        let created = builder.recursive(true).mode(0o700).create(path);
        created.map_err(|error| from_io(error).about("the directory of sessions"))?;
        Self::open(path)
    }

    /// Opens a directory that exists.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let about = |error| from_io(error).about("the directory of sessions");
        let path = fs::canonicalize(path).map_err(about)?;
        if !fs::metadata(&path).map_err(about)?.is_dir() {
            return Err(Error::not_a_directory().about("the directory of sessions"));
        }
        Ok(Self { path: path.into() })
    }

    /// Refuses a root that holds the sessions of another engine.
    pub(super) fn check_engine(&self) -> Result<()> {
        mark::check(&self.path, Kind::Local)
    }

    /// Marks the root, in which a session is about to be stored.
    pub(super) fn mark_engine(&self) -> Result<()> {
        mark::claim(&self.path, Kind::Local)
    }

    pub(super) fn place(&self, id: &SessionId) -> Place {
        Place::new(&self.path, id)
    }

    /// Returns the records of this engine's sessions, in order of ids.
    pub(super) fn records(&self) -> Result<Vec<Record>> {
        self.read_all(Place::record)
    }

    /// Returns those of all sessions that have files, of any engine.
    pub(super) fn stored(&self) -> Result<Vec<Record>> {
        self.read_all(Place::stored)
    }

    fn read_all(&self, read: fn(&Place) -> Result<Option<Record>>) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        for name in self.names()? {
            let Ok(id) = SessionId::new(&name) else {
                continue;
            };
            match read(&self.place(&id)) {
                Ok(record) => records.extend(record),
                // One broken session must not hide the others.
                Err(error) => {
                    tracing::warn!(session = %id, error = %error.chain(), "a session cannot be read");
                }
            }
        }
        records.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        Ok(records)
    }

    /// Returns the bytes that a session's files have.
    pub(super) fn stored_bytes(&self, id: &SessionId) -> Result<u64> {
        self.place(id).with_files(measure)
    }

    /// Returns the bytes that the files of all sessions have. Those in places that cannot be
    /// measured are left out: one session must not keep all others from being opened.
    pub(super) fn total_bytes(&self) -> Result<u64> {
        let mut total = 0_u64;
        for record in self.stored()? {
            let place = self.place(&record.id);
            let bytes = place.with_files(|files| Ok(disk::measure(files).bytes));
            // A session may be removed meanwhile.
            total = total.saturating_add(bytes.unwrap_or_default());
        }
        Ok(total)
    }

    /// Deletes a session with its files. Returns `false` if there is none: a directory that
    /// holds no session stays.
    ///
    /// # Errors
    ///
    /// `Conflict` if a process uses the session; `Config` for the root of another engine.
    pub(super) fn remove(&self, id: &SessionId) -> Result<bool> {
        self.check_engine()?;
        match self.remove_if(id, |_| true)? {
            Removal::Used => Err(in_use(id)),
            removal => Ok(removal == Removal::Moved),
        }
    }

    /// Deletes the sessions that no process uses and that were last used more than
    /// `time_to_live` before `now`. Returns their ids.
    pub(super) fn remove_expired(
        &self,
        time_to_live: Duration,
        now: SystemTime,
    ) -> Result<Vec<SessionId>> {
        self.check_engine()?;
        let is_due = |record: &Record| elapsed(record.last_activity, now) > time_to_live;
        let mut removed = Vec::new();
        for record in self.records()? {
            if record.state != RecordState::Stored || !is_due(&record) {
                continue;
            }
            // Looked at again when it is held.
            match self.remove_if(&record.id, is_due) {
                Ok(Removal::Moved) => removed.push(record.id),
                Ok(_) => {}
                // It must not keep the others.
                Err(error) => {
                    tracing::warn!(session = %record.id, error = %error.chain(), "stored files past their time were not deleted");
                }
            }
        }
        Ok(removed)
    }

    /// Deletes what processes that were killed did not finish deleting.
    pub(super) fn remove_leftovers(&self) -> Result<()> {
        self.check_engine()?;
        let mut result = Ok(());
        for name in self.names()? {
            if is_removed(&name)
                && let Err(error) = delete(&self.path.join(name))
            {
                // It must not keep the others.
                result = Err(error);
            }
        }
        result
    }

    fn remove_if(&self, id: &SessionId, is_due: impl FnOnce(&Record) -> bool) -> Result<Removal> {
        let place = self.place(id);
        let number = REMOVALS.fetch_add(1, Ordering::Relaxed);
        let name = format!("{REMOVED}{}-{number}-{id}", std::process::id());
        // A directory can be renamed to an empty one. If one is left from a process with
        // the same number, it is emptied first.
        let to = self.path.join(name);
        delete(&to)?;
        create_directory(&to).map_err(from_io)?;
        let moved = place.move_away(&to, is_due);
        // Not under the session's lock: the id is free from here on.
        delete(&to)?;
        moved
    }

    /// Returns the names of all directories.
    fn names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(from_io)? {
            let entry = entry.map_err(from_io)?;
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            // Ours are ASCII.
            if is_directory && let Ok(name) = entry.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }
}

/// Whether a name is one that [`Root::remove_if`] gives.
fn is_removed(name: &str) -> bool {
    let mut parts = name
        .strip_prefix(REMOVED)
        .unwrap_or_default()
        .splitn(3, '-');
    let mut number = || parts.next().is_some_and(|part| part.parse::<u64>().is_ok());
    let has_numbers = number() && number();
    has_numbers && parts.next().is_some_and(|id| SessionId::new(id).is_ok())
}

fn delete(path: &Path) -> Result<()> {
    remove_tree(path).map_err(from_io)
}
