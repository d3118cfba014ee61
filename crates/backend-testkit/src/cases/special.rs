//! Special files, and names that are not UTF-8.

use backend_core::ops::{CopyOptions, FileKind, GlobQuery, GrepQuery};
use backend_core::{BackendExt as _, ErrorKind};

use crate::env::Env;
use crate::failure::CaseResult;
use crate::{check, check_eq};

const RAW: &[u8] = b"raw\xff\xfename";

/// A FIFO exists and is described, and is not a regular file.
pub async fn fifo_is_described(t: &Env) -> CaseResult {
    t.fixture().make_fifo(&t.path("pipe")?).await?;
    let entry = t.backend().metadata("pipe").await?;
    check_eq!((entry.kind, entry.size), (FileKind::Other, None))?;
    check_eq!(t.backend().exists("pipe").await?, true)?;
    check_eq!(t.backend().is_file("pipe").await?, false)
}

/// No operation waits for another process to open a FIFO.
pub async fn fifo_is_never_waited_for(t: &Env) -> CaseResult {
    t.fixture().make_fifo(&t.path("pipe")?).await?;
    let invalid = ErrorKind::InvalidInput;
    let backend = t.backend();
    t.fails(invalid, backend.read_bytes("pipe").await)?;
    t.fails(invalid, t.window("pipe", Default::default()).await)?;
    t.fails(invalid, backend.replace_text("pipe", "a", "b").await)?;
    t.fails(invalid, backend.copy_to("pipe", "copy").await)?;
    let query = GrepQuery::new("x", t.path("pipe")?);
    t.fails(invalid, backend.grep(query).await)?;
    let query = GlobQuery::new("*", t.path("pipe")?);
    t.fails(ErrorKind::NotADirectory, backend.glob(query).await)?;
    let beneath = backend.read_bytes("pipe/beneath").await;
    t.fails(ErrorKind::NotADirectory, beneath)?;
    check_eq!(t.names("").await?, ["pipe"])
}

/// A FIFO is not written to, nor replaced by a write.
pub async fn fifo_is_not_written(t: &Env) -> CaseResult {
    t.fixture().make_fifo(&t.path("pipe")?).await?;
    let written = t.backend().write_file("pipe", "x").await;
    t.fails(ErrorKind::InvalidInput, written)?;
    let created = t.backend().write_new_file("pipe", "x").await;
    t.fails(ErrorKind::AlreadyExists, created)?;
    let entry = t.backend().metadata("pipe").await?;
    check_eq!(entry.kind, FileKind::Other)?;
    check_eq!(t.names("").await?, ["pipe"])
}

/// A FIFO can be deleted, alone or with its directory.
pub async fn fifo_can_be_deleted(t: &Env) -> CaseResult {
    t.put("directory/file", "x").await?;
    t.fixture().make_fifo(&t.path("pipe")?).await?;
    t.fixture().make_fifo(&t.path("directory/pipe")?).await?;
    t.backend().delete_file("pipe").await?;
    t.backend().delete_tree("directory").await?;
    check!(t.names("").await?.is_empty())
}

/// Searches skip FIFOs, even one with the name of an ignore file.
pub async fn fifo_is_not_searched(t: &Env) -> CaseResult {
    t.put("file", "needle\n").await?;
    for name in ["pipe", ".gitignore", ".ignore"] {
        t.fixture().make_fifo(&t.path(name)?).await?;
    }
    check_eq!(t.glob("**").await?, ["file"])?;
    check_eq!(t.grep("needle").await?, ["file:1:needle"])?;
    let query = t.grep_query("needle").hidden(true).ignored(true);
    let found = t.backend().grep(query).await?;
    check_eq!(t.hits(&found), ["file:1:needle"])
}

/// A link to a FIFO is treated like the FIFO.
pub async fn link_to_a_fifo(t: &Env) -> CaseResult {
    t.fixture().make_fifo(&t.path("pipe")?).await?;
    t.link("link", "pipe").await?;
    let entry = t.backend().metadata("link").await?;
    check_eq!((entry.kind, entry.link), (FileKind::Other, true))?;
    let invalid = ErrorKind::InvalidInput;
    t.fails(invalid, t.backend().read_bytes("link").await)?;
    t.fails(invalid, t.backend().write_file("link", "x").await)?;
    let edited = t.backend().replace_text("link", "a", "b").await;
    t.fails(invalid, edited)?;
    check_eq!(t.backend().metadata("pipe").await?.kind, FileKind::Other)
}

/// Searches count names that are not UTF-8 and find everything else.
pub async fn raw_names_are_counted_by_searches(t: &Env) -> CaseResult {
    t.put_all(&["directory/a", "directory/z"]).await?;
    t.fixture()
        .make_raw_name(&t.path("directory")?, RAW)
        .await?;
    let found = t.backend().glob(t.glob_query("**")).await?;
    check_eq!(t.found(&found), ["directory/a", "directory/z"])?;
    check_eq!(found.skipped.not_utf8, 1)?;
    let found = t.backend().grep(t.grep_query("text")).await?;
    check_eq!(found.matches, 2)?;
    check_eq!(found.skipped.not_utf8, 1)
}

/// A directory is deleted with its contents, including names that are not UTF-8.
pub async fn raw_names_are_deleted_with_their_directory(t: &Env) -> CaseResult {
    t.put("tree/inner/file", "x").await?;
    t.fixture()
        .make_raw_name(&t.path("tree/inner")?, RAW)
        .await?;
    t.backend().delete_tree("tree").await?;
    check!(t.names("").await?.is_empty())
}

/// A directory is moved and copied with its contents, including names that are not
/// UTF-8.
pub async fn raw_names_go_along_with_their_directory(t: &Env) -> CaseResult {
    t.put("tree/inner/file", "x").await?;
    t.fixture()
        .make_raw_name(&t.path("tree/inner")?, RAW)
        .await?;
    let options = CopyOptions::default().recursive(true);
    let (from, to) = (t.path("tree")?, t.path("copy")?);
    t.backend().copy(&from, &to, options).await?;
    t.backend().move_to("tree", "moved").await?;
    for path in ["copy/inner", "moved/inner"] {
        let listing = t.backend().list_dir(path).await?;
        check_eq!((listing.total, listing.skipped.not_utf8), (1, 1))?;
    }
    Ok(())
}
