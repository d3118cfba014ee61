//! Tar archives into and out of a sandbox, as files that the toolbox moves.

use std::time::Duration;

use backend_core::{Error, ErrorKind, Quoted, Result};
use bytes::Bytes;

use crate::check;
use crate::client::Repeat;
use crate::toolbox::{Executed, Toolbox};

/// The time for an archive to be packed or unpacked.
const TIMEOUT: Duration = Duration::from_secs(600);
/// The size of an empty archive, and what is added to round it up.
const ARCHIVE_BYTES: usize = 10 * 1024;

/// The exit codes of the scripts for a missing `tar` and a missing path.
const NO_TAR: i64 = 97;
const NO_PATH: i64 = 98;

/// Unpacks the archive `$1` in the directory `$2`.
const UNPACK: &str = r#"trap 'rm -f "$1"' EXIT
command -v tar >/dev/null 2>&1 || exit 97
mkdir -p "$2" && tar -xf "$1" -C "$2" 2>&1"#;

/// Packs `$2` into the archive `$1`, with its own name only.
const PACK: &str = r#"command -v tar >/dev/null 2>&1 || exit 97
[ -e "$2" ] || [ -h "$2" ] || exit 98
mkdir -p "${1%/*}"
case $2 in
/) tar -cf "$1" -C / . 2>&1 ;;
*) tar -cf "$1" -C "${2%/*}/" "./${2##*/}" 2>&1 ;;
esac || { rm -f "$1"; exit 1; }"#;

/// Returns the path of a new archive in a sandbox.
fn path() -> String {
    format!("/tmp/.agentbox/archive-{:032x}.tar", fastrand::u128(..))
}

/// Unpacks an archive in a directory of a sandbox.
///
/// # Errors
///
/// `Unavailable` if it cannot be unpacked.
pub(crate) async fn put(toolbox: &Toolbox, directory: &str, archive: &Bytes) -> Result<()> {
    check::path(directory)?;
    let path = path();
    toolbox.upload(&path, archive).await?;
    let unpacked = toolbox
        .execute(UNPACK, &[&path, directory], TIMEOUT, Repeat::Unperformed)
        .await?;
    match unpacked.code {
        0 => Ok(()),
        _ => Err(failed(&unpacked, "unpacked in", directory)),
    }
}

/// Packs a file or directory of a sandbox.
///
/// # Errors
///
/// `NotFound` if there is none; `TooLarge` if the archive is larger than `limit`;
/// `Unavailable` if it cannot be packed.
pub(crate) async fn get(toolbox: &Toolbox, from: &str, limit: usize) -> Result<Bytes> {
    check::path(from)?;
    let (path, from) = (path(), trimmed(from));
    let packed = toolbox
        .execute(PACK, &[&path, from], TIMEOUT, Repeat::Unperformed)
        .await?;
    match packed.code {
        0 => {}
        NO_PATH => {
            let text = format!(
                "there is nothing at {} in the sandbox; name a path that exists",
                Quoted::new(from)
            );
            return Err(Error::new(ErrorKind::NotFound, text));
        }
        _ => return Err(failed(&packed, "packed from", from)),
    }
    let read = toolbox
        .download(&path, limit.saturating_add(ARCHIVE_BYTES))
        .await;
    let removed = toolbox
        .execute(r#"rm -f "$1""#, &[&path], TIMEOUT, Repeat::Safe)
        .await;
    if let Err(error) = removed {
        tracing::debug!("an archive was left in the sandbox: {}", error.chain());
    }
    let lost = || Error::unavailable("the archive was deleted while it was read; try again");
    let archive = read?.ok_or_else(lost)?;
    if archive.len() > limit {
        let text = format!("the archive is larger than {limit} bytes; pack less");
        return Err(Error::too_large(text));
    }
    Ok(archive)
}

/// Returns a path without slashes at its end.
fn trimmed(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" => "/",
        path => path,
    }
}

fn failed(executed: &Executed, what: &str, path: &str) -> Error {
    let path = Quoted::new(path);
    if executed.code == NO_TAR {
        return Error::unavailable("there is no `tar` in the sandbox; add it to the image");
    }
    let said = Quoted::new(executed.printed.trim()).to_string();
    Error::unavailable(format!(
        "the archive could not be {what} {path} in the sandbox, where `tar` said {said}; see whether the disk is full or the archive is damaged"
    ))
}
