//! Creating directories.

use std::sync::Arc;

use backend_core::{BackendExt as _, ErrorKind, Result};

use super::concurrent::at_once;
use crate::env::Env;
use crate::failure::CaseResult;
use crate::{check, check_eq};

pub(crate) async fn create_dir(t: &Env, path: &str) -> Result<()> {
    t.backend().create_dir_all(path).await
}

/// Missing parents are created too.
pub async fn creates_parents(t: &Env) -> CaseResult {
    create_dir(t, "a/b/c").await?;
    check_eq!(t.names("").await?, ["a/"])?;
    check_eq!(t.names("a").await?, ["b/"])?;
    check_eq!(t.names("a/b").await?, ["c/"])
}

/// Creating an existing directory succeeds and keeps its contents.
pub async fn exists_already_is_fine(t: &Env) -> CaseResult {
    t.put("directory/file", "kept").await?;
    for path in ["directory", "."] {
        create_dir(t, path).await?;
    }
    check_eq!(t.get("directory/file").await?, b"kept")
}

/// A file is not replaced by a directory.
pub async fn over_a_file(t: &Env) -> CaseResult {
    t.put("file", "kept").await?;
    t.fails(ErrorKind::AlreadyExists, create_dir(t, "file").await)?;
    check_eq!(t.get("file").await?, b"kept")
}

/// Nothing is created below a file, and the file is unchanged.
pub async fn beneath_a_file(t: &Env) -> CaseResult {
    t.put("file", "kept").await?;
    for path in ["file/beneath", "file/far/beneath"] {
        t.fails(ErrorKind::NotADirectory, create_dir(t, path).await)?;
    }
    check_eq!(t.get("file").await?, b"kept")?;
    check_eq!(t.names("").await?, ["file"])
}

/// An empty directory exists like any other.
pub async fn empty_directory_is_listed(t: &Env) -> CaseResult {
    create_dir(t, "empty").await?;
    let entry = t.backend().metadata("empty").await?;
    check!(entry.is_dir(), "{entry:?}")?;
    check!(t.names("empty").await?.is_empty(), "it is not empty")?;
    check_eq!(t.names("").await?, ["empty/"])
}

/// A directory remains when its last entry is removed.
pub async fn stays_when_its_last_entry_goes(t: &Env) -> CaseResult {
    create_dir(t, "directory").await?;
    t.put("directory/file", "x").await?;
    t.backend().delete_file("directory/file").await?;
    check_eq!(t.names("").await?, ["directory/"])
}

/// Directories that a write created remain when the file is deleted.
pub async fn written_parents_stay(t: &Env) -> CaseResult {
    t.put("a/b/deleted", "x").await?;
    t.backend().delete_file("a/b/deleted").await?;
    check_eq!(t.names("a").await?, ["b/"])?;
    t.put("c/d/moved", "x").await?;
    t.backend().move_to("c/d/moved", "moved").await?;
    check_eq!(t.names("c").await?, ["d/"])
}

/// Concurrent calls that create the same directory all succeed.
pub async fn race_is_fine(t: &Env) -> CaseResult {
    let results = at_once((0..16).map(|_| {
        let backend = Arc::clone(t.backend());
        async move { backend.create_dir_all("a/b/c").await }
    }));
    results.await?.into_iter().collect::<Result<()>>()?;
    check_eq!(t.names("a/b").await?, ["c/"])
}
