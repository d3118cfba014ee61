//! Copying files and directories.

use std::sync::Arc;

use backend_core::ops::CopyOptions;
use backend_core::{BackendExt as _, ErrorKind, Result};

use super::create_dir::create_dir;
use super::read::large_content;
use super::write::{at_once, one_winner};
use crate::case::CaseResult;
use crate::env::Env;
use crate::{check, check_eq};

async fn copy(t: &Env, from: &str, to: &str, options: CopyOptions) -> Result<()> {
    let (from, to) = (t.backend().path(from)?, t.backend().path(to)?);
    t.backend().copy(&from, &to, options).await
}

fn recursive() -> CopyOptions {
    CopyOptions::default().recursive(true)
}

/// Checks that a recursive copy fails in the same way whether or not it may overwrite.
async fn refused(t: &Env, kind: ErrorKind, from: &str, to: &str) -> CaseResult {
    for overwrite in [false, true] {
        let options = recursive().overwrite(overwrite);
        t.fails(kind, copy(t, from, to, options).await)?;
    }
    Ok(())
}

/// A copy has the same bytes and is independent of the original.
pub async fn file_is_copied(t: &Env) -> CaseResult {
    t.put("from", b"\0bytes\xff").await?;
    t.backend().copy_to("from", "to").await?;
    copy(t, "from", "too", recursive()).await?;
    for path in ["from", "to", "too"] {
        check_eq!(t.get(path).await?, b"\0bytes\xff");
    }
    t.put("from", "changed").await?;
    t.backend().delete_file("too").await?;
    check_eq!(t.get("to").await?, b"\0bytes\xff");
    t.put("to", "changed too").await?;
    check_eq!(t.get("from").await?, b"changed");
    Ok(())
}

/// Parents of the destination are created.
pub async fn creates_parents(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    t.backend().copy_to("file", "a/b/file").await?;
    check_eq!(t.get("a/b/file").await?, b"x");
    check_eq!(t.names("").await?, ["a/", "file"]);
    Ok(())
}

/// A file at the destination is not replaced unless the caller allows it.
pub async fn never_overwrites(t: &Env) -> CaseResult {
    t.put("from", "new").await?;
    t.put("to", "old").await?;
    let copied = t.backend().copy_to("from", "to").await;
    t.fails(ErrorKind::AlreadyExists, copied)?;
    check_eq!(t.get("from").await?, b"new");
    check_eq!(t.get("to").await?, b"old");
    Ok(())
}

/// A file replaces a file if the caller allows it.
pub async fn overwrites_when_told(t: &Env) -> CaseResult {
    t.put("from", "new").await?;
    t.put("to", "something old").await?;
    copy(t, "from", "to", CopyOptions::default().overwrite(true)).await?;
    check_eq!(t.get("from").await?, b"new");
    check_eq!(t.get("to").await?, b"new");
    Ok(())
}

/// A directory, empty or not, is copied only with `recursive`.
pub async fn directory_needs_recursive(t: &Env) -> CaseResult {
    t.put_all(&["full/file", "in-the-way"]).await?;
    create_dir(t, "empty").await?;
    for from in ["empty", "full"] {
        for to in ["new/to", "in-the-way"] {
            let copied = t.backend().copy_to(from, to).await;
            t.fails(ErrorKind::IsADirectory, copied)?;
        }
    }
    check_eq!(t.names("").await?, ["empty/", "full/", "in-the-way"]);
    Ok(())
}

/// A directory is copied with its contents, and the copy is independent.
pub async fn directory_is_copied_whole(t: &Env) -> CaseResult {
    t.put_all(&["from/a", "from/b/.hidden", "from/b/c/d", "from/.gitignore"])
        .await?;
    create_dir(t, "from/empty").await?;
    copy(t, "from", "x/to", recursive()).await?;
    t.put("from/a", "changed").await?;
    t.put("from/b/new", "new").await?;
    t.backend().delete_tree("from/b/c").await?;
    check_eq!(t.names("x/to").await?, ["b/", "empty/", ".gitignore", "a"]);
    check_eq!(t.names("x/to/b").await?, ["c/", ".hidden"]);
    check_eq!(t.get("x/to/a").await?, b"text\n");
    check_eq!(t.get("x/to/b/c/d").await?, b"text\n");
    t.backend().delete_tree("x").await?;
    check_eq!(t.names("from").await?, ["b/", "empty/", ".gitignore", "a"]);
    check_eq!(t.get("from/b/.hidden").await?, b"text\n");
    Ok(())
}

/// Copying something onto itself is rejected and loses nothing.
pub async fn onto_itself(t: &Env) -> CaseResult {
    t.put("directory/file", "kept").await?;
    for path in ["directory/file", "directory"] {
        refused(t, ErrorKind::InvalidInput, path, path).await?;
    }
    check_eq!(t.get("directory/file").await?, b"kept");
    Ok(())
}

/// Nothing is copied into itself, not even the working directory.
pub async fn into_itself(t: &Env) -> CaseResult {
    t.put("directory/inner/file", "kept").await?;
    for to in ["directory/new", "directory/inner/new"] {
        refused(t, ErrorKind::InvalidInput, "directory", to).await?;
    }
    let (from, to) = ("directory/inner/file", "directory/inner/file/new");
    refused(t, ErrorKind::InvalidInput, from, to).await?;
    refused(t, ErrorKind::InvalidInput, ".", "new").await?;
    check_eq!(t.names("").await?, ["directory/"]);
    check_eq!(t.names("directory").await?, ["inner/"]);
    check_eq!(t.names("directory/inner").await?, ["file"]);
    check_eq!(t.get("directory/inner/file").await?, b"kept");
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
    refused(t, ErrorKind::AlreadyExists, "directory/inner", "directory").await?;
    check_eq!(t.names("").await?, ["directory/", "empty/", "file"]);
    check_eq!(t.names("empty").await?, [""; 0]);
    check_eq!(t.names("directory").await?, ["inner/"]);
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

/// Nothing is copied to a path below a file.
pub async fn beneath_a_file(t: &Env) -> CaseResult {
    t.put_all(&["directory/inner", "source"]).await?;
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

/// An empty file is copied, even over a non-empty one.
pub async fn empty_file_is_copied(t: &Env) -> CaseResult {
    t.put("empty", "").await?;
    t.put("full", "old").await?;
    t.backend().copy_to("empty", "new").await?;
    check_eq!(t.get("new").await?, b"");
    copy(t, "empty", "full", CopyOptions::default().overwrite(true)).await?;
    check_eq!(t.get("full").await?, b"");
    Ok(())
}

/// A large file is copied completely.
pub async fn large_file(t: &Env) -> CaseResult {
    let content = large_content();
    t.put("from", content.as_slice()).await?;
    t.backend().copy_to("from", "to").await?;
    check!(t.get("to").await? == content, "the bytes differ");
    Ok(())
}

/// Of several files copied to one path concurrently, exactly one succeeds.
pub async fn race_has_one_winner(t: &Env) -> CaseResult {
    for source in 0..8 {
        t.put(&format!("{source}"), format!("from {source}"))
            .await?;
    }
    let results = at_once((0..8).map(|source| {
        let backend = Arc::clone(t.backend());
        async move { backend.copy_to(&format!("{source}"), "to").await }
    }));
    let winner = one_winner(t, ErrorKind::AlreadyExists, results.await?)?;
    check_eq!(t.get("to").await?, format!("from {winner}").as_bytes());
    check_eq!(t.names("").await?.len(), 9);
    Ok(())
}

/// A tree is not copied to a destination where an entry inside would have no valid
/// path.
pub async fn nothing_inside_loses_its_path(t: &Env) -> CaseResult {
    let deep = "d/".repeat(150);
    t.put(&format!("{deep}f"), "x").await?;
    let (from, to) = (t.path("d")?, t.path(&"e/".repeat(150))?);
    let done = t
        .backend()
        .copy(&from, &to, CopyOptions::default().recursive(true))
        .await;
    t.fails(ErrorKind::InvalidPath, done)?;
    check_eq!(t.get(&format!("{deep}f")).await?, b"x");
    Ok(())
}
