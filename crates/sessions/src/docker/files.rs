//! The directories of sessions on the host: `{root}/{id}/workspace` is mounted in the
//! container of a session.
//!
//! A container that is created before its session has `{root}/.pool/{key}/workspace`. When
//! a session claims it, that directory becomes the session's, and a link remains in its
//! place: a container that is started again finds its mount by the path it was created
//! with. `{root}/.state` holds the records of sessions, and `{root}/.engine` says that they
//! are in containers. A directory that is deleted goes to `{root}/.trash` first, in one step.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind as IoKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend_core::{Error, ErrorKind, Result};
use bytes::Bytes;

use super::names::new_key;
use crate::disk::{measure, remove_tree};
use crate::error::QuotaError;
use crate::id::SessionId;
use crate::layout::{self, STATE, TENANT, WORKSPACE, is_key};
use crate::mark::{self, Kind};

/// The directory of containers without a session. No id begins with a point.
const POOL: &str = ".pool";
/// The directory of what is being deleted.
const TRASH: &str = ".trash";
/// How often a directory is moved to a place where others make one.
const MOVES: u32 = 100;
/// The age at which a directory without a container is no longer about to get one.
const ORPHAN_AGE: Duration = Duration::from_secs(3600);

/// The directories below one root.
#[derive(Debug, Clone)]
pub(super) struct Files {
    root: PathBuf,
    /// The most bytes that all sessions may store.
    pub(super) quota: Option<u64>,
    /// The time after the last use at which files are deleted.
    pub(super) keep_for: Option<Duration>,
}

impl Files {
    /// Uses a root, which is created if it is missing.
    pub(super) fn new(root: &Path) -> Result<Self> {
        let make = || {
            create_private(root)?;
            fs::canonicalize(root)
        };
        let root = make().map_err(|source| failed("the root of the workspaces", source))?;
        Ok(Self {
            root,
            quota: None,
            keep_for: None,
        })
    }

    /// Refuses a root that holds the sessions of another engine.
    pub(super) fn check_engine(&self) -> Result<()> {
        mark::check(&self.root, Kind::Docker)
    }

    /// Marks the root, in which a session or a spare is about to be stored.
    pub(super) fn mark_engine(&self) -> Result<()> {
        mark::claim(&self.root, Kind::Docker)
    }

    /// The directory of the records.
    pub(super) fn state(&self) -> PathBuf {
        self.root.join(STATE)
    }

    fn session(&self, id: &SessionId) -> PathBuf {
        self.root.join(id.as_str())
    }

    fn spare(&self, key: &str) -> PathBuf {
        self.root.join(POOL).join(key)
    }

    /// Whether a session has stored files. An empty directory is none: a start that failed
    /// may have left it.
    pub(super) fn is_stored(&self, id: &SessionId) -> bool {
        let entries = fs::read_dir(self.session(id).join(WORKSPACE));
        entries.is_ok_and(|mut entries| entries.next().is_some())
    }

    /// Whether a session has a directory, empty or not.
    pub(super) fn is_prepared(&self, id: &SessionId) -> bool {
        self.session(id).join(WORKSPACE).is_dir()
    }

    /// Refuses an id whose directory is that of another one: some file systems ignore case.
    pub(super) fn check_name(&self, id: &SessionId) -> Result<()> {
        let found = fs::canonicalize(self.session(id)).ok();
        let name = found.as_deref().and_then(Path::file_name);
        let is_other = |name: &OsStr| name != id.as_str() && name.eq_ignore_ascii_case(id.as_str());
        if !name.is_some_and(is_other) {
            return Ok(());
        }
        let message = "there is a session whose id differs only in capitals, which the file system \
                       of the workspaces does not tell apart; choose another id";
        Err(Error::new(ErrorKind::Conflict, message).about(id))
    }

    /// Refuses a directory of another program: it would be purged with the session.
    pub(super) fn check_free(&self, id: &SessionId) -> Result<()> {
        if self.is_session(id) || layout::holds_only_own(&self.session(id)) {
            return Ok(());
        }
        Err(layout::occupied(id))
    }

    /// Makes sure that a session has a directory, and returns it.
    pub(super) fn prepare(&self, id: &SessionId) -> Result<PathBuf> {
        let workspace = self.session(id).join(WORKSPACE);
        let made = create_workspace(&workspace);
        made.map_err(|source| failed("the workspace of a session", source))?;
        Ok(workspace)
    }

    /// Makes the directory of a container without a session, and returns it.
    pub(super) fn prepare_spare(&self, key: &str) -> Result<PathBuf> {
        self.mark_engine()?;
        let workspace = self.spare(key).join(WORKSPACE);
        let made = create_workspace(&workspace);
        made.map_err(|source| failed("the workspace of a spare sandbox", source))?;
        Ok(workspace)
    }

    /// Deletes the directory of a container that got no session.
    pub(super) fn remove_spare(&self, key: &str) -> Result<()> {
        // It may be a label that the container has from its image.
        if !is_key(key) {
            return Ok(());
        }
        let spare = self.spare(key);
        let is_link = fs::symlink_metadata(&spare).is_ok_and(|found| found.is_symlink());
        let removed = if is_link {
            fs::remove_file(&spare)
        } else {
            remove_tree(&spare)
        };
        unless_missing(removed).map_err(|source| failed("the workspace of a spare", source))
    }

    /// Makes the directory of a claimed container that of its session. It can be repeated,
    /// after any interruption and by several processes.
    pub(super) fn adopt(&self, key: &str, id: &SessionId) -> Result<()> {
        if !is_key(key) {
            return Ok(());
        }
        let (spare, session) = (self.spare(key), self.session(id));
        let is_adopted = || fs::symlink_metadata(&spare).map(|found| found.is_symlink());
        let adopt = || -> io::Result<()> {
            if matches!(is_adopted(), Ok(true)) {
                return Ok(());
            }
            // One process at a time: it must not remove the directory that another one has
            // just moved to its place, which is empty too.
            let pool = File::open(self.root.join(POOL))?;
            pool.lock()?;
            match is_adopted() {
                Ok(true) => return Ok(()),
                Ok(false) => move_to(&spare, &session)?,
                Err(error) if error.kind() == IoKind::NotFound => {}
                Err(error) => return Err(error),
            }
            let target = Path::new("..").join(id.as_str());
            match link(&target, &spare) {
                Err(error) if error.kind() == IoKind::AlreadyExists => Ok(()),
                linked => linked,
            }
        };
        adopt().map_err(|source| failed("the workspace of a session", source))
    }

    /// Whether a session without a container has a directory. Any other one only has a name
    /// that could be an id.
    pub(super) fn is_session(&self, id: &SessionId) -> bool {
        layout::is_session(&self.session(id))
    }

    /// Moves the directory of a session out of its place. `None` if there is none: a
    /// directory that holds no session stays, unless a container has its files.
    pub(super) fn trash(&self, id: &SessionId, has_container: bool) -> Result<Option<PathBuf>> {
        let is_own = self.is_session(id) || (has_container && self.is_prepared(id));
        if !is_own {
            return Ok(None);
        }
        let trash = self.root.join(TRASH);
        let aside = trash.join(new_key());
        let moved = fs::create_dir_all(&trash).and_then(|()| fs::rename(self.session(id), &aside));
        match moved {
            Ok(()) => Ok(Some(aside)),
            Err(error) if error.kind() == IoKind::NotFound => Ok(None),
            Err(error) => Err(failed("the workspace of a session", error)),
        }
    }

    /// Moves a directory back that was not to be deleted after all.
    pub(super) fn restore(&self, trashed: &Path, id: &SessionId) -> Result<()> {
        let moved = fs::rename(trashed, self.session(id));
        moved.map_err(|source| failed("the workspace of a session", source))
    }

    /// Deletes a directory that is out of its place.
    pub(super) fn delete(&self, trashed: &Path) -> Result<()> {
        remove_tree(trashed).map_err(|source| failed("the deleted workspace of a session", source))
    }

    /// Lists the sessions with a directory, and when it was last changed.
    pub(super) fn stored(&self) -> Result<Vec<(SessionId, SystemTime)>> {
        let list = || -> io::Result<Vec<_>> {
            let mut found = Vec::new();
            for entry in fs::read_dir(&self.root)? {
                let name = entry?.file_name();
                let id = name.to_str().and_then(|name| SessionId::new(name).ok());
                if let Some(id) = id
                    && let Some(changed) = self.changed(&id)
                {
                    found.push((id, changed));
                }
            }
            Ok(found)
        };
        list().map_err(|source| failed("the root of the workspaces", source))
    }

    /// When the directory of a session was last changed, at its first level. `None` if
    /// nothing is stored.
    pub(super) fn changed(&self, id: &SessionId) -> Option<SystemTime> {
        if !self.is_stored(id) || !self.is_session(id) {
            return None;
        }
        let found = fs::symlink_metadata(self.session(id).join(WORKSPACE)).ok()?;
        found.modified().ok()
    }

    /// The tenant of a session with a directory, if it has one.
    pub(super) fn tenant(&self, id: &SessionId) -> Result<Option<Arc<str>>> {
        match fs::read_to_string(self.session(id).join(TENANT)) {
            Ok(tenant) => Ok(Some(tenant.into())),
            Err(error) if error.kind() == IoKind::NotFound => Ok(None),
            Err(error) => Err(failed("the workspace of a session", error)),
        }
    }

    /// Writes the tenant of a session with a directory.
    pub(super) fn set_tenant(&self, id: &SessionId, tenant: &str) -> Result<()> {
        put_file(&self.session(id), TENANT, tenant.as_bytes(), false)
    }

    /// The bytes that a session stores. What cannot be read counts as nothing.
    pub(super) fn bytes_of(&self, id: &SessionId) -> u64 {
        measure(&self.session(id).join(WORKSPACE)).bytes
    }

    /// Refuses a new session if the quota is used up.
    pub(super) fn check_quota(&self) -> Result<()> {
        let Some(limit) = self.quota else {
            return Ok(());
        };
        let used = measure(&self.root).bytes;
        let used = used.saturating_sub(measure(&self.state()).bytes);
        let mark = fs::symlink_metadata(self.root.join(mark::FILE));
        let used = used.saturating_sub(mark.map_or(0, |found| found.len()));
        if used < limit {
            return Ok(());
        }
        Err(QuotaError::new(used, limit).into())
    }

    /// Deletes what interrupted work left: links and directories of containers that no
    /// longer exist, their records, and what was being deleted. `is_used` says whether there
    /// is a container with a key or id.
    pub(super) fn sweep(&self, now: SystemTime, is_used: impl Fn(&str) -> bool) -> Result<()> {
        let old = |path: &Path| {
            let changed = fs::symlink_metadata(path).and_then(|found| found.modified());
            changed.is_ok_and(|changed| {
                now.duration_since(changed)
                    .is_ok_and(|age| age > ORPHAN_AGE)
            })
        };
        let mut result = Ok(());
        // What cannot be deleted must not keep the rest.
        let mut note = |deleted: Result<()>| {
            if deleted.is_err() {
                result = deleted;
            }
        };
        for name in names_in(&self.root.join(POOL)) {
            if is_key(&name) && !is_used(&name) && old(&self.spare(&name)) {
                note(self.remove_spare(&name));
            }
        }
        for name in names_in(&self.state()) {
            let path = self.state().join(&name);
            if is_container(&name) && !is_used(&name) && old(&path) {
                note(self.delete(&path));
            }
        }
        let trash = self.root.join(TRASH);
        for name in names_in(&trash) {
            let path = trash.join(&name);
            if is_key(&name) && old(&path) {
                note(self.delete(&path));
            }
        }
        result
    }
}

/// Writes a small file in one step. Its directory is created, or must exist.
pub(super) fn put_file(directory: &Path, name: &str, text: &[u8], creates: bool) -> Result<()> {
    let put = || {
        if creates {
            create_private(directory)?;
        }
        let new = directory.join(format!(".{}", new_key()));
        fs::write(&new, text)?;
        fs::rename(&new, directory.join(name))
    };
    put().map_err(|source| {
        if source.kind() == IoKind::NotFound {
            return Error::not_found().with_source(source);
        }
        failed("the record of a session", source)
    })
}

/// Reads all files of a directory; none if it is missing.
pub(super) fn small_files(directory: &Path) -> Result<BTreeMap<String, Bytes>> {
    let mut found = BTreeMap::new();
    for name in names_in(directory) {
        match fs::read(directory.join(&name)) {
            Ok(text) => {
                found.insert(name, text.into());
            }
            // It was replaced meanwhile.
            Err(error) if error.kind() == IoKind::NotFound => {}
            Err(error) => return Err(failed("the record of a session", error)),
        }
    }
    Ok(found)
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().into_string());
    names.filter_map(std::result::Result::ok).collect()
}

/// Whether a name is the whole id of a container.
fn is_container(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Moves the directory of a spare to that of its session. Other processes may have prepared
/// the session, and lost the race for its name: only empty directories are removed.
fn move_to(spare: &Path, session: &Path) -> io::Result<()> {
    let mut tries = 0;
    loop {
        if fs::remove_dir(session.join(WORKSPACE)).is_ok() {
            let _ = fs::remove_file(session.join(TENANT));
            let _ = fs::remove_dir(session);
        }
        match fs::rename(spare, session) {
            // Prepared again meanwhile.
            Err(error) if error.kind() == IoKind::DirectoryNotEmpty && tries < MOVES => tries += 1,
            moved => return moved,
        }
    }
}

fn unless_missing(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == IoKind::NotFound => Ok(()),
        done => done,
    }
}

/// Creates the mounted part of a directory that is private. Its own mode is for the users
/// of the container.
fn create_workspace(path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        create_private(directory)?;
    }
    fs::create_dir_all(path)
}

/// Creates a directory that only its owner may enter: the daemon mounts what is in it all
/// the same.
#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

#[cfg(unix)]
fn link(target: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, at)
}

/// Daemons on other systems do not see this system's links.
#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> io::Result<()> {
    Err(IoKind::Unsupported.into())
}

fn failed(what: &str, source: io::Error) -> Error {
    Error::unavailable(format!("{what} cannot be used; see the cause")).with_source(source)
}

#[cfg(test)]
mod tests;
