//! The names beneath a root of sessions, for both engines, and what tells the directory of
//! a session from any other.

use std::fs;
use std::io::ErrorKind as IoKind;
use std::path::Path;

use backend_core::{Error, ErrorKind};

use crate::id::SessionId;

/// The directory of a session's files: `{root}/{id}/workspace`.
pub(crate) const WORKSPACE: &str = "workspace";
/// The record of a session in a local directory, beside its files.
pub(crate) const RECORD: &str = "session.json";
/// The largest such record that is read. Ours are far smaller.
pub(crate) const RECORD_BYTES: u64 = 64 * 1024;
/// The name of that record until it is complete.
pub(crate) const NEW_RECORD: &str = "session.json.new";
/// The variables of such a session's commands, if it has any.
pub(crate) const ENV: &str = "env.json";
/// The name of that file until it is complete.
pub(crate) const NEW_ENV: &str = "env.json.new";
/// A request to the processes that use such a session to end it; its time of change is that
/// of the request.
pub(crate) const RELEASE: &str = "release";
/// The tenant of a session in a container, beside its files, which may outlive the container.
pub(crate) const TENANT: &str = "tenant";
/// The directory of the records of containers, which every root of containers has.
pub(crate) const STATE: &str = ".state";

/// Everything that an engine puts into the directory of a session.
const OWN: [&str; 7] = [WORKSPACE, RECORD, NEW_RECORD, ENV, NEW_ENV, RELEASE, TENANT];

/// Whether a directory is that of a session without a record: one in a container, or one
/// whose files were put there by hand. Any other directory only has a name that could be an
/// id.
pub(crate) fn is_session(directory: &Path) -> bool {
    let has_files = directory.join(WORKSPACE).is_dir();
    match (has_files, directory.join(TENANT).is_file()) {
        (true, true) => true,
        (false, false) => false,
        // A session may have no tenant, and an interrupted claim leaves the tenant alone.
        _ => holds_only_own(directory),
    }
}

/// Whether a directory holds nothing but what an engine puts there, or is missing. One that
/// cannot be read may hold more.
pub(crate) fn holds_only_own(directory: &Path) -> bool {
    match fs::read_dir(directory) {
        Ok(mut entries) => entries
            .all(|entry| entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(is_own))),
        Err(error) => error.kind() == IoKind::NotFound,
    }
}

fn is_own(name: &str) -> bool {
    // A killed process may leave a file that was not complete.
    OWN.contains(&name) || name.strip_prefix('.').is_some_and(is_key)
}

/// Whether a text is a key, and so harmless as a part of a path.
pub(crate) fn is_key(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the error for an id whose directory holds something else than a session.
pub(crate) fn occupied(id: &SessionId) -> Error {
    let message = "there is a directory with this name that is no session; choose another id";
    Error::new(ErrorKind::Conflict, message).about(id)
}

/// Returns the error for a change of a session that must not run meanwhile.
pub(crate) fn in_use(id: &SessionId) -> Error {
    let message = "the session is in use; release it first";
    Error::new(ErrorKind::Conflict, message).about(id)
}

#[cfg(test)]
mod tests;
