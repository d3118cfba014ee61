//! Moving files and directories.

use backend_core::{BackendExt as _, ErrorKind};

use super::create_dir::create_dir;
use super::transfer::Transfer::Rename;
use crate::check_eq;
use crate::env::Env;
use crate::failure::CaseResult;

/// A moved file is at its destination and nowhere else.
pub async fn file_moves(t: &Env) -> CaseResult {
    t.put("directory/old", b"\0bytes\xff").await?;
    Rename.run(t, "directory/old", "new", false).await?;
    check_eq!(t.get("new").await?, b"\0bytes\xff")?;
    t.fails(
        ErrorKind::NotFound,
        t.backend().metadata("directory/old").await,
    )?;
    check_eq!(t.names("").await?, ["directory/", "new"])
}

/// Parents of the destination are created.
pub async fn creates_parents(t: &Env) -> CaseResult {
    Rename.creates_parents(t).await?;
    check_eq!(t.names("").await?, ["a/"])
}

/// A file at the destination is not replaced unless the caller allows it.
pub async fn never_overwrites(t: &Env) -> CaseResult {
    Rename.never_overwrites(t).await
}

/// A file replaces a file if the caller allows it.
pub async fn overwrites_when_told(t: &Env) -> CaseResult {
    Rename.overwrites_when_told(t).await?;
    check_eq!(t.names("").await?, ["to"])
}

/// A directory moves with its contents.
pub async fn directory_moves_with_content(t: &Env) -> CaseResult {
    t.put_all(&["from/a", "from/b/.hidden", "from/b/c/d"])
        .await?;
    create_dir(t, "from/empty").await?;
    Rename.run(t, "from", "x/to", false).await?;
    check_eq!(t.names("").await?, ["x/"])?;
    check_eq!(t.names("x/to").await?, ["b/", "empty/", "a"])?;
    check_eq!(t.names("x/to/b").await?, ["c/", ".hidden"])?;
    check_eq!(t.get("x/to/b/c/d").await?, b"text\n")?;
    t.fails(ErrorKind::NotFound, t.backend().metadata("from/a").await)
}

/// Moving something onto itself is rejected and loses nothing.
pub async fn onto_itself(t: &Env) -> CaseResult {
    Rename.onto_itself(t).await
}

/// Nothing can be moved into itself.
pub async fn into_itself(t: &Env) -> CaseResult {
    let destinations = ["directory/new", "directory/inner/new", "directory/a/b"];
    Rename.into_itself(t, &destinations).await
}

/// A missing source is reported first, and no directory is created for it.
pub async fn missing_source(t: &Env) -> CaseResult {
    Rename.missing_source(t).await
}

/// A directory at the destination is never replaced, entered or merged with.
pub async fn over_a_directory(t: &Env) -> CaseResult {
    Rename.over_a_directory(t).await?;
    check_eq!(t.names("directory/inner").await?, ["kept"])
}

/// A directory never replaces a file.
pub async fn directory_over_a_file(t: &Env) -> CaseResult {
    Rename.directory_over_a_file(t).await
}

/// Nothing can be moved to a path below a file.
pub async fn beneath_a_file(t: &Env) -> CaseResult {
    Rename.beneath_a_file(t).await
}

/// The working directory and its parents cannot be moved.
pub async fn working_directory_is_refused(t: &Env) -> CaseResult {
    t.put("file", "kept").await?;
    for from in [".", "/"] {
        Rename
            .refused(t, ErrorKind::InvalidInput, from, "/elsewhere")
            .await?;
    }
    check_eq!(t.get("file").await?, b"kept")
}

/// An empty directory moves like any other.
pub async fn empty_directory_moves(t: &Env) -> CaseResult {
    create_dir(t, "from").await?;
    Rename.run(t, "from", "to", false).await?;
    check_eq!(t.names("").await?, ["to/"])?;
    check_eq!(t.names("to").await?, [""; 0])
}

/// A name that begins with the source's name is a sibling, not inside it.
pub async fn to_a_name_that_begins_alike(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    Rename.run(t, "file", "file2", false).await?;
    check_eq!(t.get("file2").await?, b"x")?;
    t.put_all(&["foo/inner", "foobar/other"]).await?;
    Rename.run(t, "foo", "foobar/foo", false).await?;
    check_eq!(t.names("").await?, ["foobar/", "file2"])?;
    check_eq!(t.names("foobar").await?, ["foo/", "other"])?;
    Rename.run(t, "foobar", "foo", false).await?;
    check_eq!(t.get("foo/foo/inner").await?, b"text\n")
}

/// Of several files moved to one path concurrently, exactly one succeeds and the others
/// stay.
pub async fn race_has_one_winner(t: &Env) -> CaseResult {
    let winner = Rename.race(t).await?;
    let mut left: Vec<_> = (0..8).map(|source| format!("{source}")).collect();
    left[winner] = "to".to_owned();
    left.sort_unstable();
    check_eq!(t.names("").await?, left)
}

/// A tree is not moved to a destination where an entry inside would have no valid path.
pub async fn nothing_inside_loses_its_path(t: &Env) -> CaseResult {
    Rename.nothing_inside_loses_its_path(t).await
}
