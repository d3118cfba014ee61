//! The mark of a root: the engine whose sessions it holds.
//!
//! Both engines keep the files of a session in `{root}/{id}/workspace`, but each of them
//! knows in its own way which sessions run. So an engine refuses the root of the other one,
//! where it would take files away from sessions that are in use.

use std::fs;
use std::io::{self, ErrorKind as IoKind, Read as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use backend_core::{Error, ErrorKind, Result};

use crate::id::SessionId;
use crate::layout::{RECORD, RECORD_BYTES, STATE, WORKSPACE, holds_only_own};
use crate::record::Record;

/// The file with the name of the engine. No id begins with a dot.
pub(crate) const FILE: &str = ".engine";

/// Distinguishes the files that this process writes.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// The engines that keep files beneath a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Docker,
    Local,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Local => "local",
        }
    }
}

/// Refuses a root that holds the sessions of another engine. It creates nothing.
///
/// # Errors
///
/// `Config` for the root of another engine, or of one that is not known here;
/// `Unavailable`.
pub(crate) fn check(root: &Path, own: Kind) -> Result<()> {
    match engine_of(root)? {
        Some(other) if other != own => Err(foreign(other)),
        _ => Ok(()),
    }
}

/// Marks a root for an engine that is about to store something there.
///
/// # Errors
///
/// As [`check`].
pub(crate) fn claim(root: &Path, own: Kind) -> Result<()> {
    check(root, own)?;
    if written(root)?.is_some() {
        return Ok(());
    }
    write(root, own).map_err(unusable)?;
    // An engine of the other kind may have been faster.
    check(root, own)
}

/// Returns the engine whose sessions a root holds. `None` if it holds none.
fn engine_of(root: &Path) -> Result<Option<Kind>> {
    if let Some(kind) = written(root)? {
        return Ok(Some(kind));
    }
    // A root that was used before there were marks.
    if root.join(STATE).is_dir() {
        return Ok(Some(Kind::Docker));
    }
    Ok(has_local_session(root).then_some(Kind::Local))
}

fn written(root: &Path) -> Result<Option<Kind>> {
    let text = match fs::read_to_string(root.join(FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == IoKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(error)),
    };
    let name = text.trim();
    let mut known = [Kind::Docker, Kind::Local].into_iter();
    let kind = known.find(|kind| kind.name() == name);
    kind.map(Some).ok_or_else(|| {
        let message = "the directory holds sessions of an engine that this version does not know; \
                       use the version that wrote its file .engine";
        Error::new(ErrorKind::Config, message)
    })
}

fn has_local_session(root: &Path) -> bool {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.any(|name| SessionId::new(&name).is_ok() && is_local_session(&root.join(name)))
}

/// Whether a directory is that of a local session. Other programs use the name of its record
/// too.
fn is_local_session(directory: &Path) -> bool {
    let record = directory.join(RECORD);
    let has_layout = record.is_file() && directory.join(WORKSPACE).is_dir();
    has_layout && (holds_only_own(directory) || is_record(&record))
}

fn is_record(path: &Path) -> bool {
    let mut text = Vec::new();
    let opened = fs::File::open(path);
    let read = opened.and_then(|file| file.take(RECORD_BYTES).read_to_end(&mut text));
    read.is_ok() && serde_json::from_slice::<Record>(&text).is_ok()
}

/// Writes a mark as a whole, unless there is one.
fn write(root: &Path, own: Kind) -> io::Result<()> {
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let new = root.join(format!("{FILE}-{}-{number}", std::process::id()));
    let mark = root.join(FILE);
    fs::write(&new, format!("{}\n", own.name()))?;
    match fs::hard_link(&new, &mark) {
        Ok(()) => {}
        Err(error) if error.kind() == IoKind::AlreadyExists => {}
        // Some file systems have no such links.
        Err(_) => return fs::rename(&new, &mark),
    }
    fs::remove_file(&new)
}

fn foreign(kind: Kind) -> Error {
    let message = match kind {
        Kind::Docker => {
            "the directory holds sessions in containers; open it with the Docker engine, \
             in agentbox with --backend docker"
        }
        Kind::Local => {
            "the directory holds sessions in local directories; open it with the local engine, \
             in agentbox with --backend local"
        }
    };
    Error::new(ErrorKind::Config, message)
}

fn unusable(source: io::Error) -> Error {
    Error::unavailable("the mark of the directory of sessions cannot be used; see the cause")
        .with_source(source)
}

#[cfg(test)]
mod tests;
