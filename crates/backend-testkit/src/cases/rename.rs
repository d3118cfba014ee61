//! Moving files and directories.

use std::sync::Arc;

use backend_core::ops::RenameOptions;
use backend_core::{BackendExt as _, ErrorKind, Result};

use super::create_dir::create_dir;
use super::write::{at_once, one_winner};
use crate::case::CaseResult;
use crate::check_eq;
use crate::env::Env;

async fn rename(t: &Env, from: &str, to: &str, overwrite: bool) -> Result<()> {
    let (from, to) = (t.backend().path(from)?, t.backend().path(to)?);
    let options = RenameOptions::default().overwrite(overwrite);
    t.backend().rename(&from, &to, options).await
}

/// Checks that a move fails in the same way whether or not it may overwrite.
async fn refused(t: &Env, kind: ErrorKind, from: &str, to: &str) -> CaseResult {
    for overwrite in [false, true] {
        t.fails(kind, rename(t, from, to, overwrite).await)?;
    }
    Ok(())
}

/// A moved file is at its destination and nowhere else.
pub async fn file_moves(t: &Env) -> CaseResult {
    t.put("directory/old", b"\0bytes\xff").await?;
    rename(t, "directory/old", "new", false).await?;
    check_eq!(t.get("new").await?, b"\0bytes\xff");
    t.fails(
        ErrorKind::NotFound,
        t.backend().metadata("directory/old").await,
    )?;
    check_eq!(t.names("").await?, ["directory/", "new"]);
    Ok(())
}

/// Parents of the destination are created.
pub async fn creates_parents(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    rename(t, "file", "a/b/file", false).await?;
    check_eq!(t.get("a/b/file").await?, b"x");
    check_eq!(t.names("").await?, ["a/"]);
    Ok(())
}

/// A file at the destination is not replaced unless the caller allows it.
pub async fn never_overwrites(t: &Env) -> CaseResult {
    t.put("from", "new").await?;
    t.put("to", "old").await?;
    let moved = rename(t, "from", "to", false).await;
    t.fails(ErrorKind::AlreadyExists, moved)?;
    check_eq!(t.get("from").await?, b"new");
    check_eq!(t.get("to").await?, b"old");
    Ok(())
}

/// A file replaces a file if the caller allows it.
pub async fn overwrites_when_told(t: &Env) -> CaseResult {
    t.put("from", "new").await?;
    t.put("to", "something old").await?;
    rename(t, "from", "to", true).await?;
    check_eq!(t.get("to").await?, b"new");
    check_eq!(t.names("").await?, ["to"]);
    Ok(())
}

/// A directory moves with its contents.
pub async fn directory_moves_with_content(t: &Env) -> CaseResult {
    t.put_all(&["from/a", "from/b/.hidden", "from/b/c/d"])
        .await?;
    create_dir(t, "from/empty").await?;
    rename(t, "from", "x/to", false).await?;
    check_eq!(t.names("").await?, ["x/"]);
    check_eq!(t.names("x/to").await?, ["b/", "empty/", "a"]);
    check_eq!(t.names("x/to/b").await?, ["c/", ".hidden"]);
    check_eq!(t.get("x/to/b/c/d").await?, b"text\n");
    t.fails(ErrorKind::NotFound, t.backend().metadata("from/a").await)
}

/// Moving something onto itself is rejected and loses nothing.
pub async fn onto_itself(t: &Env) -> CaseResult {
    t.put("directory/file", "kept").await?;
    for path in ["directory/file", "directory"] {
        refused(t, ErrorKind::InvalidInput, path, path).await?;
    }
    check_eq!(t.get("directory/file").await?, b"kept");
    Ok(())
}

/// Nothing can be moved into itself.
pub async fn into_itself(t: &Env) -> CaseResult {
    t.put("directory/inner/file", "kept").await?;
    for to in ["directory/new", "directory/inner/new", "directory/a/b"] {
        refused(t, ErrorKind::InvalidInput, "directory", to).await?;
    }
    let (from, to) = ("directory/inner/file", "directory/inner/file/new");
    refused(t, ErrorKind::InvalidInput, from, to).await?;
    check_eq!(t.get("directory/inner/file").await?, b"kept");
    check_eq!(t.names("directory").await?, ["inner/"]);
    check_eq!(t.names("directory/inner").await?, ["file"]);
    Ok(())
}

/// A missing source is reported first, and no directory is created for it.
pub async fn missing_source(t: &Env) -> CaseResult {
    t.put("file", "kept").await?;
    for to in ["new/parent/file", "file", "."] {
        refused(t, ErrorKind::NotFound, "missing", to).await?;
    }
    refused(t, ErrorKind::NotADirectory, "file/beneath", "new/to").await?;
    t.fails(ErrorKind::NotFound, t.backend().metadata("new").await)?;
    check_eq!(t.get("file").await?, b"kept");
    Ok(())
}

/// A directory at the destination is never replaced, entered or merged with.
pub async fn over_a_directory(t: &Env) -> CaseResult {
    t.put_all(&["directory/inner/kept", "file"]).await?;
    create_dir(t, "empty").await?;
    for from in ["file", "directory"] {
        for to in ["empty", "."] {
            refused(t, ErrorKind::AlreadyExists, from, to).await?;
        }
    }
    refused(t, ErrorKind::AlreadyExists, "file", "directory").await?;
    // Its current parent.
    refused(t, ErrorKind::AlreadyExists, "directory/inner", "directory").await?;
    check_eq!(t.names("").await?, ["directory/", "empty/", "file"]);
    check_eq!(t.names("empty").await?, [""; 0]);
    check_eq!(t.names("directory/inner").await?, ["kept"]);
    Ok(())
}

/// A directory never replaces a file.
pub async fn directory_over_a_file(t: &Env) -> CaseResult {
    t.put("directory/inner", "kept").await?;
    t.put("file", "kept too").await?;
    refused(t, ErrorKind::AlreadyExists, "directory", "file").await?;
    check_eq!(t.get("directory/inner").await?, b"kept");
    check_eq!(t.get("file").await?, b"kept too");
    Ok(())
}

/// Nothing can be moved to a path below a file.
pub async fn beneath_a_file(t: &Env) -> CaseResult {
    t.put("directory/inner", "kept").await?;
    t.put("source", "kept").await?;
    t.put("file", "kept").await?;
    for from in ["source", "directory"] {
        for to in ["file/beneath", "file/far/beneath"] {
            refused(t, ErrorKind::NotADirectory, from, to).await?;
        }
    }
    check_eq!(t.names("").await?, ["directory/", "file", "source"]);
    check_eq!(t.get("file").await?, b"kept");
    Ok(())
}

/// The working directory and its parents cannot be moved.
pub async fn working_directory_is_refused(t: &Env) -> CaseResult {
    t.put("file", "kept").await?;
    for from in [".", "/"] {
        refused(t, ErrorKind::InvalidInput, from, "/elsewhere").await?;
    }
    check_eq!(t.get("file").await?, b"kept");
    Ok(())
}

/// An empty directory moves like any other.
pub async fn empty_directory_moves(t: &Env) -> CaseResult {
    create_dir(t, "from").await?;
    rename(t, "from", "to", false).await?;
    check_eq!(t.names("").await?, ["to/"]);
    check_eq!(t.names("to").await?, [""; 0]);
    Ok(())
}

/// A name that begins with the source's name is a sibling, not inside it.
pub async fn to_a_name_that_begins_alike(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    rename(t, "file", "file2", false).await?;
    check_eq!(t.get("file2").await?, b"x");
    t.put_all(&["foo/inner", "foobar/other"]).await?;
    rename(t, "foo", "foobar/foo", false).await?;
    check_eq!(t.names("").await?, ["foobar/", "file2"]);
    check_eq!(t.names("foobar").await?, ["foo/", "other"]);
    rename(t, "foobar", "foo", false).await?;
    check_eq!(t.get("foo/foo/inner").await?, b"text\n");
    Ok(())
}

/// Of several files moved to one path concurrently, exactly one succeeds and the others
/// stay.
pub async fn race_has_one_winner(t: &Env) -> CaseResult {
    for source in 0..8 {
        t.put(&format!("{source}"), format!("from {source}"))
            .await?;
    }
    let results = at_once((0..8).map(|source| {
        let backend = Arc::clone(t.backend());
        async move { backend.move_to(&format!("{source}"), "to").await }
    }));
    let winner = one_winner(t, ErrorKind::AlreadyExists, results.await?)?;
    check_eq!(t.get("to").await?, format!("from {winner}").as_bytes());
    let mut left: Vec<_> = (0..8).map(|source| format!("{source}")).collect();
    left[winner] = "to".to_owned();
    left.sort_unstable();
    check_eq!(t.names("").await?, left);
    Ok(())
}

/// A tree is not moved to a destination where an entry inside would have no valid path.
pub async fn nothing_inside_loses_its_path(t: &Env) -> CaseResult {
    let deep = "d/".repeat(150);
    t.put(&format!("{deep}f"), "x").await?;
    let (from, to) = (t.path("d")?, t.path(&"e/".repeat(150))?);
    let done = t
        .backend()
        .rename(&from, &to, RenameOptions::default())
        .await;
    t.fails(ErrorKind::InvalidPath, done)?;
    check_eq!(t.get(&format!("{deep}f")).await?, b"x");
    Ok(())
}
