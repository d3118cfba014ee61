//! Reading through symbolic links, inside the backend and out of it.

use backend_core::ops::{FileKind, Links, LsOptions, ReadOptions, StatOptions};
use backend_core::{BackendExt as _, ErrorKind};

use super::ops::{all_fail, reads, searches};
use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::{check, check_eq};

/// Returns the rows of a listing as name, kind and whether it is a link.
pub(crate) async fn rows(t: &Env, path: &str) -> Result<Vec<(String, FileKind, bool)>, Failure> {
    let listing = t.backend().list_dir(path).await?;
    let entries = listing.entries.iter();
    Ok(entries
        .map(|entry| (entry.name().to_owned(), entry.kind, entry.link))
        .collect())
}

/// Returns a relative link that climbs with `..` and leads to the same path as an
/// absolute one.
pub(crate) fn climbing(absolute: &str) -> String {
    format!("{}{}", "../".repeat(64), absolute.trim_start_matches('/'))
}

/// Every read operation follows a link to a file.
pub async fn file_link_is_read_through(t: &Env) -> CaseResult {
    t.put("real/file", "one\ntwo\n").await?;
    t.link("link", "real/file").await?;
    check_eq!(t.get("link").await?, b"one\ntwo\n")?;
    check_eq!(t.lines("link").await?, ["one", "two"])?;
    let options = ReadOptions::default().range(4..7);
    let part = t.backend().read(&t.path("link")?, options).await?;
    check_eq!((&part.data[..], part.size), (&b"two"[..], 8))?;
    check_eq!(t.backend().is_file("link").await?, true)
}

/// Entries of a directory can be reached through any number of links, and keep the
/// requested path.
pub async fn directory_link_is_entered(t: &Env) -> CaseResult {
    t.put("real/inner/file", "x").await?;
    t.link("link", "real").await?;
    t.link("real/again", "inner").await?;
    check_eq!(t.get("link/inner/file").await?, b"x")?;
    check_eq!(t.get("link/again/file").await?, b"x")?;
    check_eq!(t.names("link").await?, ["again/", "inner/"])?;
    let listing = t.backend().list_dir("link/again").await?;
    check_eq!(listing.entries[0].path, t.path("link/again/file")?)
}

/// A chain of links is followed to its end.
pub async fn chain_is_followed(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    let mut target = "file".to_owned();
    for number in 0..20 {
        let name = format!("link{number}");
        t.link(&name, &target).await?;
        target = name;
    }
    check_eq!(t.get(&target).await?, b"x")?;
    check_eq!(t.resolve(&target).await?, t.path("file")?)
}

/// `..` in a link is relative to the link's directory, not to the path by which it was
/// reached.
pub async fn parent_in_a_link_climbs_from_the_link(t: &Env) -> CaseResult {
    t.put("a/b/c/here", "here").await?;
    t.put("a/there", "there").await?;
    t.link("a/b/c/up", "../../there").await?;
    t.link("short", "a/b/c").await?;
    check_eq!(t.get("short/up").await?, b"there")?;
    check_eq!(t.get("a/b/c/up").await?, b"there")?;
    t.link("a/b/round", "../b/./c/../c/here").await?;
    check_eq!(t.get("a/b/round").await?, b"here")
}

/// `..` after a link in another link's text is relative to that link's target.
pub async fn parent_after_a_link_climbs_from_its_target(t: &Env) -> CaseResult {
    t.put("a/b/file", "beside the target").await?;
    t.put("file", "beside the link").await?;
    t.put("a/b/c/x", "x").await?;
    t.link("deep", "a/b/c").await?;
    t.link("link", "deep/../file").await?;
    check_eq!(t.get("link").await?, b"beside the target")?;
    check_eq!(t.resolve("link").await?, t.path("a/b/file")?)
}

/// An absolute link that stays inside is followed.
pub async fn absolute_link_inside_is_followed(t: &Env) -> CaseResult {
    t.put("real/file", "x").await?;
    let file = t.fixture().link_text(&t.path("real/file")?);
    let directory = t.fixture().link_text(&t.path("real")?);
    t.link("real/to-file", &file).await?;
    t.link("to-directory", &directory).await?;
    check_eq!(t.get("real/to-file").await?, b"x")?;
    check_eq!(t.get("to-directory/to-file").await?, b"x")?;
    check_eq!(
        t.resolve("to-directory/to-file").await?,
        t.path("real/file")?
    )?;
    check_eq!(t.resolve("to-directory/new").await?, t.path("real/new")?)?;
    let root = t.fixture().link_text(&t.backend().working_dir());
    t.link("real/top", &root).await?;
    check_eq!(t.get("real/top/real/file").await?, b"x")
}

/// The entry of a link describes its target, under the link's name.
pub async fn stat_describes_the_target(t: &Env) -> CaseResult {
    t.put("real/file", "12345").await?;
    t.link("to-file", "real/file").await?;
    t.link("to-directory", "real").await?;
    let backend = t.backend();
    let file = backend.metadata("to-file").await?;
    check_eq!(file.path, t.path("to-file")?)?;
    check_eq!((file.kind, file.link), (FileKind::File, true))?;
    check_eq!(file.size, Some(5))?;
    let directory = backend.metadata("to-directory").await?;
    check_eq!(
        (directory.kind, directory.link),
        (FileKind::Directory, true)
    )?;
    check_eq!((directory.size, directory.modified), (None, None))?;
    // Only the path itself counts: an entry reached through a link is not marked as
    // one.
    let inner = backend.metadata("to-directory/file").await?;
    check_eq!((inner.kind, inner.link), (FileKind::File, false))
}

/// Listing a link to a file returns the link.
pub async fn file_link_lists_itself(t: &Env) -> CaseResult {
    t.put("real/file", "12345").await?;
    t.link("link", "real/file").await?;
    let listing = t.backend().list_dir("link").await?;
    check_eq!(listing.total, 1)?;
    let entry = &listing.entries[0];
    check_eq!(entry.path, t.path("link")?)?;
    check_eq!((entry.kind, entry.link), (FileKind::File, true))?;
    check_eq!(entry.size, Some(5))
}

/// A dangling link is missing, except in the listing of its directory.
pub async fn dangling_link_is_missing(t: &Env) -> CaseResult {
    t.put("real/file", "x").await?;
    t.link("dangling", "real/gone").await?;
    let path = t.path("dangling")?;
    let backend = t.backend();
    all_fail(
        ErrorKind::NotFound,
        &reads(backend, &path, Links::Follow).await,
    )?;
    all_fail(
        ErrorKind::NotFound,
        &searches(backend, &path, Links::Follow).await,
    )?;
    check_eq!(backend.exists("dangling").await?, false)?;
    let edited = backend.replace_text("dangling", "a", "b").await;
    t.fails(ErrorKind::NotFound, edited)?;
    let expected = ("dangling".to_owned(), FileKind::Link, true);
    check!(rows(t, ".").await?.contains(&expected))
}

/// Following a link through a file is `NotADirectory`.
pub async fn link_beneath_a_file(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    t.link("link", "file/beneath").await?;
    let read = t.backend().read_bytes("link").await;
    t.fails(ErrorKind::NotADirectory, read)?;
    t.link("to-file", "file").await?;
    let read = t.backend().read_bytes("to-file/beneath").await;
    t.fails(ErrorKind::NotADirectory, read)
}

/// Circular links give the same kind of error in every operation that follows them, and
/// break no listing and no search.
pub async fn circle_is_invalid(t: &Env) -> CaseResult {
    t.put("file", "text").await?;
    t.link("a", "b").await?;
    t.link("b", "a").await?;
    t.link("self", "self").await?;
    let backend = t.backend();
    for path in ["a", "self", "self/beneath"] {
        let path = t.path(path)?;
        all_fail(
            ErrorKind::InvalidPath,
            &reads(backend, &path, Links::Follow).await,
        )?;
        all_fail(
            ErrorKind::InvalidPath,
            &searches(backend, &path, Links::Follow).await,
        )?;
        let written = backend.write(&path, "x".into(), Default::default()).await;
        t.fails(ErrorKind::InvalidPath, written)?;
        t.fails(ErrorKind::InvalidPath, t.resolve(path.as_str()).await)?;
    }
    check_eq!(backend.exists("a").await?, false)?;
    let link = |name: &str| (name.to_owned(), FileKind::Link, true);
    let file = ("file".to_owned(), FileKind::File, false);
    check_eq!(
        rows(t, ".").await?,
        [link("a"), link("b"), file, link("self")]
    )?;
    check_eq!(t.glob("**").await?, ["file"])?;
    check_eq!(t.grep("text").await?, ["file:1:text"])
}

/// Nothing is read through a link that leads outside, however the link is written.
pub async fn link_out_is_denied(t: &Env) -> CaseResult {
    let outside = t.fixture().make_outside().await?;
    let backend = t.backend();
    for (name, text) in [
        ("absolute", outside.clone()),
        ("climbing", climbing(&outside)),
    ] {
        t.link(name, &text).await?;
        t.link(&format!("{name}-file"), &format!("{text}/secret"))
            .await?;
        t.link(&format!("{name}-chain"), &format!("{name}-file"))
            .await?;
        let beneath = format!("{name}/secret");
        let missing = format!("{name}/missing");
        let file = format!("{name}-file");
        let chain = format!("{name}-chain");
        for path in [name, &beneath, &missing, &file, &chain] {
            let path = t.path(path)?;
            let answers = reads(backend, &path, Links::Follow).await;
            all_fail(ErrorKind::PermissionDenied, &answers)?;
            let answers = searches(backend, &path, Links::Follow).await;
            all_fail(ErrorKind::PermissionDenied, &answers)?;
            check_eq!(backend.exists(path.as_str()).await?, false)?;
        }
    }
    t.fixture().check_outside().await
}

/// A link that leads outside is listed as a link, without details about its target.
pub async fn link_out_is_listed_as_a_link(t: &Env) -> CaseResult {
    let outside = t.fixture().make_outside().await?;
    t.link("directory", &outside).await?;
    t.link("file", &format!("{outside}/secret")).await?;
    t.link("missing", &format!("{outside}/missing")).await?;
    t.link("climbing", &climbing(&outside)).await?;
    let listing = t.backend().list_dir(".").await?;
    check_eq!(listing.total, 4)?;
    for entry in &listing.entries {
        check_eq!((entry.kind, entry.link), (FileKind::Link, true))?;
        check_eq!((entry.size, entry.modified), (None, None))?;
    }
    Ok(())
}

/// A link that leads outside and back inside is denied.
pub async fn link_out_and_back_is_denied(t: &Env) -> CaseResult {
    t.put("file", "x").await?;
    let outside = t.fixture().make_outside().await?;
    let back = t.fixture().link_text(&t.path("file")?);
    t.link("link", &format!("{outside}/../{}", climbing(&back)))
        .await?;
    let read = t.backend().read_bytes("link").await;
    t.fails(ErrorKind::PermissionDenied, read)
}

/// Resolving follows every link, keeps the missing end, and is idempotent.
pub async fn resolve_goes_to_the_end(t: &Env) -> CaseResult {
    t.put("real/inner/file", "x").await?;
    t.link("one", "two").await?;
    t.link("two", "real/inner").await?;
    t.link("dangling", "real/new/deeper").await?;
    for (path, leads_to) in [
        ("one", "real/inner"),
        ("one/file", "real/inner/file"),
        ("two/missing/deeper", "real/inner/missing/deeper"),
        ("dangling", "real/new/deeper"),
        ("dangling/still", "real/new/deeper/still"),
    ] {
        let resolved = t.resolve(path).await?;
        check_eq!(resolved, t.path(leads_to)?)?;
        check_eq!(t.resolve(resolved.as_str()).await?, resolved)?;
    }
    t.fails(
        ErrorKind::NotADirectory,
        t.resolve("one/file/beneath").await,
    )
}

/// A link never resolves to a path outside, whether that exists or not.
pub async fn resolve_of_a_link_out_is_denied(t: &Env) -> CaseResult {
    let outside = t.fixture().make_outside().await?;
    t.link("absolute", &outside).await?;
    t.link("climbing", &climbing(&outside)).await?;
    t.link("chain", "absolute").await?;
    t.link("missing", &format!("{outside}/missing")).await?;
    for path in [
        "absolute",
        "climbing",
        "chain",
        "missing",
        "absolute/secret",
        "chain/new",
    ] {
        t.fails(ErrorKind::PermissionDenied, t.resolve(path).await)?;
    }
    Ok(())
}

/// A call that refuses links reports one, wherever in the path it is and wherever it
/// leads.
pub async fn refused_by_every_read(t: &Env) -> CaseResult {
    t.put("real/inner/file", "x").await?;
    t.link("directory", "real").await?;
    t.link("real/file", "inner/file").await?;
    t.link("dangling", "gone").await?;
    t.link("circle", "circle").await?;
    for path in [
        "directory",
        "directory/inner/file",
        "directory/missing",
        "real/file",
        "dangling",
        "circle",
        "circle/beneath",
    ] {
        let path = t.path(path)?;
        let answers = reads(t.backend(), &path, Links::Refuse).await;
        all_fail(ErrorKind::IsALink, &answers)?;
        let answers = searches(t.backend(), &path, Links::Refuse).await;
        all_fail(ErrorKind::IsALink, &answers)?;
    }
    Ok(())
}

/// A call that refuses links reports a link that leads outside as a link.
pub async fn refused_link_out_is_a_link(t: &Env) -> CaseResult {
    let outside = t.fixture().make_outside().await?;
    t.link("link", &outside).await?;
    for path in ["link", "link/secret"] {
        let answers = reads(t.backend(), &t.path(path)?, Links::Refuse).await;
        all_fail(ErrorKind::IsALink, &answers)?;
    }
    Ok(())
}

/// Refusing links changes nothing if there are none in the path.
pub async fn refusing_is_free_without_links(t: &Env) -> CaseResult {
    t.put("real/file", "x").await?;
    t.link("real/beside", "file").await?;
    let options = StatOptions::default().links(Links::Refuse);
    let path = t.path("real/file")?;
    check_eq!(t.backend().stat(&path, options).await?.size, Some(1))?;
    let options = LsOptions::default().links(Links::Refuse);
    let listing = t.backend().ls(&t.path("real")?, options).await?;
    check_eq!(listing.total, 2)
}
