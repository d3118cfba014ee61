//! Listing directories.

use std::time::{Duration, SystemTime};

use backend_core::ops::{FileKind, Listing, LsOptions};
use backend_core::search::Exclude;
use backend_core::{BackendExt as _, ErrorKind};

use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::{check, check_eq};

async fn list(t: &Env, path: &str) -> Result<Listing, Failure> {
    Ok(t.backend().list_dir(path).await?)
}

/// Directories come first. Within each group, names are in byte order.
pub async fn directories_first_then_bytes(t: &Env) -> CaseResult {
    t.put_all(&["b", "a", "B", "ä", "z/1", "a-b/1", "a.b", "10", "9", "M/1"])
        .await?;
    let expected = ["M/", "a-b/", "z/", "10", "9", "B", "a", "a.b", "b", "ä"];
    check_eq!(t.names(".").await?, expected)
}

/// Only direct entries of the directory are listed.
pub async fn one_level_only(t: &Env) -> CaseResult {
    t.put_all(&["a/b/c/d", "a/e", "f"]).await?;
    check_eq!(t.names(".").await?, ["a/", "f"])?;
    check_eq!(t.names("a").await?, ["b/", "e"])
}

/// Listing a file returns the file.
pub async fn file_lists_itself(t: &Env) -> CaseResult {
    t.put("a/file", "123").await?;
    let listing = list(t, "a/file").await?;
    check_eq!(listing.total, 1)?;
    check_eq!(listing.entries[0].path, t.path("a/file")?)?;
    check_eq!(listing.entries[0].size, Some(3))
}

/// A missing directory is an error, not an empty one.
pub async fn missing_is_not_found(t: &Env) -> CaseResult {
    let listing = t.backend().list_dir("missing").await;
    t.fails(ErrorKind::NotFound, listing)
}

/// Listing a path below a file is an error.
pub async fn beneath_a_file(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    let listing = t.backend().list_dir("file/beneath").await;
    t.fails(ErrorKind::NotADirectory, listing)
}

/// Listing an empty directory succeeds with no entries.
pub async fn empty_directory(t: &Env) -> CaseResult {
    t.backend().create_dir_all("empty").await?;
    let listing = list(t, "empty").await?;
    check_eq!((listing.total, listing.is_truncated()), (0, false))?;
    check!(list(t, ".").await?.total == 1)
}

/// Files have sizes, directories have none.
pub async fn sizes_are_of_files(t: &Env) -> CaseResult {
    t.put("directory/file", "x").await?;
    t.put("file", "12345").await?;
    let listing = list(t, ".").await?;
    let sizes: Vec<_> = listing
        .entries
        .iter()
        .map(|entry| (entry.kind, entry.size))
        .collect();
    check_eq!(
        sizes,
        [(FileKind::Directory, None), (FileKind::File, Some(5))]
    )
}

/// Files have times, directories have none.
pub async fn times_are_of_files(t: &Env) -> CaseResult {
    t.put("directory/file", "x").await?;
    t.put("file", "x").await?;
    let listing = list(t, ".").await?;
    check_eq!(listing.entries[0].modified, None)?;
    check!(listing.entries[1].modified.is_some())
}

/// A listing shows the actual time of a file.
pub async fn times_are_real(t: &Env) -> CaseResult {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    t.put("file", "x").await?;
    t.fixture().set_modified(&t.path("file")?, time).await?;
    check_eq!(list(t, ".").await?.entries[0].modified, Some(time))
}

/// Paths in a listing are absolute and can be used in calls.
pub async fn paths_are_absolute(t: &Env) -> CaseResult {
    t.put("a/b/file", "x").await?;
    for (directory, path) in [(".", "a"), ("a", "a/b"), ("./a//b/", "a/b/file")] {
        check_eq!(list(t, directory).await?.entries[0].path, t.path(path)?)?;
    }
    Ok(())
}

/// Hidden and ignored entries are listed like others.
pub async fn everything_is_shown(t: &Env) -> CaseResult {
    t.put(".gitignore", "ignored\n").await?;
    t.put_all(&["ignored", ".hidden", ".git/config", "shown"])
        .await?;
    let expected = [".git/", ".gitignore", ".hidden", "ignored", "shown"];
    check_eq!(t.names(".").await?, expected)
}

/// Entries that appear and vanish during a listing do not affect others.
pub async fn vanishing_entries_break_nothing(t: &Env) -> CaseResult {
    t.put_all(&["d/a", "d/z"]).await?;
    let come_and_go = async {
        for round in 0..50 {
            let name = format!("d/m{}", round % 5);
            t.put(&name, "x").await?;
            t.backend().delete_file(&name).await?;
        }
        CaseResult::Ok(())
    };
    let list = async {
        for _ in 0..50 {
            let names = t.names("d").await?;
            check!(names.first().is_some_and(|name| name == "a"), "{names:?}")?;
            check!(names.last().is_some_and(|name| name == "z"), "{names:?}")?;
        }
        Ok(())
    };
    futures::try_join!(come_and_go, list)?;
    Ok(())
}

/// A limit returns the beginning of the listing and the total number of entries.
pub async fn limit_gives_the_head(t: &Env) -> CaseResult {
    t.put_all(&["a", "b", "c/1", "d"]).await?;
    let path = t.path(".")?;
    let listing = t.backend().ls(&path, LsOptions::default().limit(2)).await?;
    let names: Vec<_> = listing.entries.iter().map(|entry| entry.name()).collect();
    check_eq!(names, ["c", "a"])?;
    check_eq!((listing.total, listing.is_truncated()), (4, true))?;
    let listing = t.backend().ls(&path, LsOptions::default().limit(4)).await?;
    check_eq!((listing.total, listing.is_truncated()), (4, false))
}

/// A limit of zero is rejected.
pub async fn zero_limit_is_invalid(t: &Env) -> CaseResult {
    let path = t.path(".")?;
    let listing = t.backend().ls(&path, LsOptions::default().limit(0)).await;
    t.fails(ErrorKind::InvalidInput, listing)
}

/// Excluded entries count neither towards the limit nor in the total.
pub async fn exclude_comes_before_the_limit(t: &Env) -> CaseResult {
    t.put_all(&["a.secret", "b", "c.secret", "d"]).await?;
    let exclude = Exclude::hide(["*.secret"]).map_err(backend_core::Error::from)?;
    let options = LsOptions::default().limit(2).exclude(exclude);
    let listing = t.backend().ls(&t.path(".")?, options).await?;
    let names: Vec<_> = listing.entries.iter().map(|entry| entry.name()).collect();
    check_eq!(names, ["b", "d"])?;
    check_eq!((listing.total, listing.is_truncated()), (2, false))
}

/// Entries in an excluded directory are excluded too.
pub async fn exclude_hides_what_is_inside(t: &Env) -> CaseResult {
    t.put_all(&["secrets/key", "other/key"]).await?;
    let exclude = Exclude::hide(["secrets"]).map_err(backend_core::Error::from)?;
    let options = LsOptions::default().exclude(exclude);
    let inside = t.backend().ls(&t.path("secrets")?, options.clone()).await?;
    check_eq!(inside.total, 0)?;
    let beside = t.backend().ls(&t.path("other")?, options).await?;
    check_eq!(beside.total, 1)
}

/// A link is marked, and described by its target.
pub async fn links_are_marked(t: &Env) -> CaseResult {
    t.put("real/file", "123").await?;
    t.fixture().make_link(&t.path("to-dir")?, "real").await?;
    t.fixture()
        .make_link(&t.path("to-file")?, "real/file")
        .await?;
    t.fixture().make_link(&t.path("nowhere")?, "gone").await?;
    let listing = list(t, ".").await?;
    let rows: Vec<_> = listing
        .entries
        .iter()
        .map(|entry| (entry.name(), entry.kind, entry.link, entry.size))
        .collect();
    let expected = [
        ("real", FileKind::Directory, false, None),
        ("to-dir", FileKind::Directory, true, None),
        ("nowhere", FileKind::Link, true, None),
        ("to-file", FileKind::File, true, Some(3)),
    ];
    check_eq!(rows, expected)
}

/// A FIFO is listed without being opened.
pub async fn fifo_is_listed(t: &Env) -> CaseResult {
    t.fixture().make_fifo(&t.path("pipe")?).await?;
    let listing = list(t, ".").await?;
    check_eq!(listing.entries[0].kind, FileKind::Other)?;
    let read = t.backend().read(&t.path("pipe")?, Default::default()).await;
    t.fails(ErrorKind::InvalidInput, read)
}

/// A name that is not UTF-8 is left out and counted, and breaks nothing.
pub async fn raw_names_are_counted(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    t.fixture()
        .make_raw_name(&t.path(".")?, b"\xff\xfe")
        .await?;
    let listing = list(t, ".").await?;
    check_eq!((listing.total, listing.skipped.not_utf8), (1, 1))
}
