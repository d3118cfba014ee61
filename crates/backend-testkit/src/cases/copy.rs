//! Copying files and directories.

use backend_core::{BackendExt as _, ErrorKind};

use super::create_dir::create_dir;
use super::read::large_content;
use super::transfer::Transfer;
use crate::env::Env;
use crate::failure::CaseResult;
use crate::{check, check_eq};

const FILE: Transfer = Transfer::Copy { recursive: false };
const TREE: Transfer = Transfer::Copy { recursive: true };

/// A copy has the same bytes and is independent of the original.
pub async fn file_is_copied(t: &Env) -> CaseResult {
    t.put("from", b"\0bytes\xff").await?;
    t.backend().copy_to("from", "to").await?;
    TREE.run(t, "from", "too", false).await?;
    for path in ["from", "to", "too"] {
        check_eq!(t.get(path).await?, b"\0bytes\xff")?;
    }
    t.put("from", "changed").await?;
    t.backend().delete_file("too").await?;
    check_eq!(t.get("to").await?, b"\0bytes\xff")?;
    t.put("to", "changed too").await?;
    check_eq!(t.get("from").await?, b"changed")
}

/// Parents of the destination are created.
pub async fn creates_parents(t: &Env) -> CaseResult {
    FILE.creates_parents(t).await?;
    check_eq!(t.names("").await?, ["a/", "file"])
}

/// A file at the destination is not replaced unless the caller allows it.
pub async fn never_overwrites(t: &Env) -> CaseResult {
    FILE.never_overwrites(t).await
}

/// A file replaces a file if the caller allows it.
pub async fn overwrites_when_told(t: &Env) -> CaseResult {
    FILE.overwrites_when_told(t).await?;
    check_eq!(t.get("from").await?, b"new")
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
    check_eq!(t.names("").await?, ["empty/", "full/", "in-the-way"])
}

/// A directory is copied with its contents, and the copy is independent.
pub async fn directory_is_copied_whole(t: &Env) -> CaseResult {
    t.put_all(&["from/a", "from/b/.hidden", "from/b/c/d", "from/.gitignore"])
        .await?;
    create_dir(t, "from/empty").await?;
    TREE.run(t, "from", "x/to", false).await?;
    t.put("from/a", "changed").await?;
    t.put("from/b/new", "new").await?;
    t.backend().delete_tree("from/b/c").await?;
    check_eq!(t.names("x/to").await?, ["b/", "empty/", ".gitignore", "a"])?;
    check_eq!(t.names("x/to/b").await?, ["c/", ".hidden"])?;
    check_eq!(t.get("x/to/a").await?, b"text\n")?;
    check_eq!(t.get("x/to/b/c/d").await?, b"text\n")?;
    t.backend().delete_tree("x").await?;
    check_eq!(t.names("from").await?, ["b/", "empty/", ".gitignore", "a"])?;
    check_eq!(t.get("from/b/.hidden").await?, b"text\n")
}

/// Copying something onto itself is rejected and loses nothing.
pub async fn onto_itself(t: &Env) -> CaseResult {
    TREE.onto_itself(t).await
}

/// Nothing is copied into itself, not even the working directory.
pub async fn into_itself(t: &Env) -> CaseResult {
    TREE.into_itself(t, &["directory/new", "directory/inner/new"])
        .await?;
    TREE.refused(t, ErrorKind::InvalidInput, ".", "new").await?;
    check_eq!(t.names("").await?, ["directory/"])
}

/// A missing source is reported first, and no directory is created for it.
pub async fn missing_source(t: &Env) -> CaseResult {
    TREE.missing_source(t).await
}

/// A directory at the destination is never replaced, entered or merged with.
pub async fn over_a_directory(t: &Env) -> CaseResult {
    TREE.over_a_directory(t).await?;
    check_eq!(t.names("directory").await?, ["inner/"])
}

/// A directory never replaces a file.
pub async fn directory_over_a_file(t: &Env) -> CaseResult {
    TREE.directory_over_a_file(t).await
}

/// Nothing is copied to a path below a file.
pub async fn beneath_a_file(t: &Env) -> CaseResult {
    TREE.beneath_a_file(t).await
}

/// An empty file is copied, even over a non-empty one.
pub async fn empty_file_is_copied(t: &Env) -> CaseResult {
    t.put("empty", "").await?;
    t.put("full", "old").await?;
    t.backend().copy_to("empty", "new").await?;
    check_eq!(t.get("new").await?, b"")?;
    FILE.run(t, "empty", "full", true).await?;
    check_eq!(t.get("full").await?, b"")
}

/// A large file is copied completely.
pub async fn large_file(t: &Env) -> CaseResult {
    let content = large_content();
    t.put("from", content.as_slice()).await?;
    t.backend().copy_to("from", "to").await?;
    check!(t.get("to").await? == content, "the bytes differ")
}

/// Of several files copied to one path concurrently, exactly one succeeds.
pub async fn race_has_one_winner(t: &Env) -> CaseResult {
    FILE.race(t).await?;
    check_eq!(t.names("").await?.len(), 9)
}

/// A tree is not copied to a destination where an entry inside would have no valid
/// path.
pub async fn nothing_inside_loses_its_path(t: &Env) -> CaseResult {
    TREE.nothing_inside_loses_its_path(t).await
}
