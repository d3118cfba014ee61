//! Deleting files and directories.

use backend_core::ops::DeleteOptions;
use backend_core::{BackendExt as _, ErrorKind, Result};

use super::create_dir::create_dir;
use crate::env::Env;
use crate::failure::CaseResult;
use crate::{check, check_eq};

async fn delete(t: &Env, path: &str, recursive: bool) -> Result<()> {
    let path = t.backend().path(path)?;
    let options = DeleteOptions::default().recursive(recursive);
    t.backend().delete(&path, options).await
}

/// A file is deleted, with and without `recursive`.
pub async fn file_goes(t: &Env) -> CaseResult {
    t.put_all(&["kept", "one", "two"]).await?;
    delete(t, "one", false).await?;
    delete(t, "two", true).await?;
    t.fails(ErrorKind::NotFound, t.backend().metadata("one").await)?;
    check_eq!(t.names("").await?, ["kept"])
}

/// Deleting a missing entry, or deleting one twice, fails.
pub async fn missing(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    delete(t, "file", false).await?;
    for path in ["file", "missing", "missing/deeper"] {
        for recursive in [false, true] {
            let deleted = delete(t, path, recursive).await;
            t.fails(ErrorKind::NotFound, deleted)?;
        }
    }
    Ok(())
}

/// A directory, empty or not, is deleted only with `recursive`.
pub async fn directory_needs_recursive(t: &Env) -> CaseResult {
    create_dir(t, "empty").await?;
    t.put("full/file", "kept").await?;
    for path in ["empty", "full"] {
        t.fails(ErrorKind::IsADirectory, delete(t, path, false).await)?;
    }
    check_eq!(t.names("").await?, ["empty/", "full/"])?;
    check_eq!(t.get("full/file").await?, b"kept")
}

/// A directory is deleted with its contents, including hidden entries and empty
/// directories.
pub async fn recursive_takes_everything(t: &Env) -> CaseResult {
    t.put_all(&["tree/.hidden/a", "tree/.gitignore", "tree/b/c/d", "tree/e"])
        .await?;
    create_dir(t, "tree/empty/inner").await?;
    create_dir(t, "nothing").await?;
    t.put("kept", "x").await?;
    delete(t, "tree", true).await?;
    delete(t, "nothing", true).await?;
    check_eq!(t.names("").await?, ["kept"])?;
    t.fails(ErrorKind::NotFound, t.backend().metadata("tree/e").await)
}

/// The working directory and its parents cannot be deleted, and their contents stay.
pub async fn working_directory_is_refused(t: &Env) -> CaseResult {
    t.put("directory/file", "kept").await?;
    let above = t.backend().working_dir().ancestors().collect::<Vec<_>>();
    let above = above.iter().map(|path| path.as_str());
    for path in above.chain(["", ".", "/"]) {
        for recursive in [false, true] {
            let deleted = delete(t, path, recursive).await;
            t.fails(ErrorKind::InvalidInput, deleted)?;
        }
    }
    check_eq!(t.get("directory/file").await?, b"kept")
}

/// A path below a file cannot be deleted.
pub async fn beneath_a_file(t: &Env) -> CaseResult {
    t.put("file", "kept").await?;
    for recursive in [false, true] {
        let deleted = delete(t, "file/beneath", recursive).await;
        t.fails(ErrorKind::NotADirectory, deleted)?;
    }
    check_eq!(t.get("file").await?, b"kept")
}

/// Siblings whose names only begin with the same text stay.
pub async fn siblings_with_the_same_beginning_stay(t: &Env) -> CaseResult {
    t.put_all(&["foo/file", "foo-bar/file", "foobar/file", "foo.txt"])
        .await?;
    delete(t, "foo", true).await?;
    check_eq!(t.names("").await?, ["foo-bar/", "foobar/", "foo.txt"])?;
    check_eq!(t.names("foobar").await?, ["file"])?;
    check_eq!(t.names("foo-bar").await?, ["file"])
}

/// A deleted path can be reused for another kind of entry.
pub async fn deleted_path_can_be_written_again(t: &Env) -> CaseResult {
    t.put("path/beneath", "old").await?;
    delete(t, "path", true).await?;
    t.put("path", "a file now").await?;
    check_eq!(t.get("path").await?, b"a file now")?;
    delete(t, "path", false).await?;
    t.put("path/other", "beneath again").await?;
    check_eq!(t.names("path").await?, ["other"])?;
    check!(!t.backend().exists("path/beneath").await?)
}
