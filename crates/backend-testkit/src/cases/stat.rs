//! Metadata of the entry at a path.

use backend_core::ops::FileKind;
use backend_core::{BackendExt as _, ErrorKind};

use crate::env::Env;
use crate::failure::CaseResult;
use crate::{check, check_eq};

/// A file has a kind, a path and its size.
pub async fn file(t: &Env) -> CaseResult {
    t.put("a/file", "12345").await?;
    let entry = t.backend().metadata("a/file").await?;
    check_eq!(entry.kind, FileKind::File)?;
    check_eq!(entry.size, Some(5))?;
    check_eq!(entry.path, t.path("a/file")?)?;
    check_eq!(entry.link, false)
}

/// Sizes are in bytes, not characters.
pub async fn size_counts_bytes(t: &Env) -> CaseResult {
    for (content, size) in [("", 0), ("é\n", 3), ("a\r\nb\n", 5)] {
        t.put("file", content).await?;
        let entry = t.backend().metadata("file").await?;
        check_eq!(entry.size, Some(size))?;
    }
    Ok(())
}

/// A directory has neither a size nor a time.
pub async fn directory(t: &Env) -> CaseResult {
    t.put("directory/file", "x").await?;
    for path in ["directory", "."] {
        let entry = t.backend().metadata(path).await?;
        check_eq!(entry.kind, FileKind::Directory)?;
        check_eq!((entry.size, entry.modified), (None, None))?;
    }
    Ok(())
}

/// A missing path is `NotFound`, and a path below a file `NotADirectory`.
pub async fn missing(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    t.fails(ErrorKind::NotFound, t.backend().metadata("missing").await)?;
    let stat = t.backend().metadata("file/beneath").await;
    t.fails(ErrorKind::NotADirectory, stat)
}

/// A write sets the modification time, and it never goes back.
pub async fn time_advances(t: &Env) -> CaseResult {
    t.put("file", "one").await?;
    let first = t.backend().metadata("file").await?;
    t.put("file", "two").await?;
    let second = t.backend().metadata("file").await?;
    check!(first.modified.is_some())?;
    check!(second.modified >= first.modified)
}
