//! Deleting, moving and copying symbolic links, and through them.

use backend_core::ops::{CopyOptions, DeleteOptions, FileKind, Links, RenameOptions};
use backend_core::{BackendExt as _, ErrorKind};

use super::link_read::{climbing, rows};
use super::ops::{all_fail, arrivals, departures};
use super::transfer::Transfer::{self, Rename};
use crate::env::Env;
use crate::failure::CaseResult;
use crate::{check, check_eq};

const COPY: Transfer = Transfer::Copy { recursive: true };

fn link(name: &str) -> (String, FileKind, bool) {
    (name.to_owned(), FileKind::Link, true)
}

/// Deleting a link deletes the link, whatever its target is.
pub async fn delete_takes_the_link(t: &Env) -> CaseResult {
    t.put("real/file", "kept").await?;
    for recursive in [false, true] {
        t.link("to-file", "real/file").await?;
        t.link("to-directory", "real").await?;
        t.link("dangling", "gone").await?;
        t.link("circle", "circle").await?;
        for path in ["to-file", "to-directory", "dangling", "circle"] {
            let options = DeleteOptions::default().recursive(recursive);
            t.backend().delete(&t.path(path)?, options).await?;
        }
        check_eq!(t.names("").await?, ["real/"])?;
        check_eq!(t.get("real/file").await?, b"kept")?;
    }
    Ok(())
}

/// Deleting a directory deletes its links, not their targets.
pub async fn recursive_delete_follows_no_link(t: &Env) -> CaseResult {
    t.put_all(&["kept/inner/file", "tree/deep/file"]).await?;
    t.link("tree/up", "..").await?;
    t.link("tree/kept", "../kept").await?;
    t.link("tree/deep/file-link", "../../kept/inner/file")
        .await?;
    t.link("tree/circle", "circle").await?;
    t.backend().delete_tree("tree").await?;
    check_eq!(t.names("").await?, ["kept/"])?;
    check_eq!(t.get("kept/inner/file").await?, b"text\n")
}

/// Deleting a path below a link to a directory deletes it from that directory.
pub async fn delete_goes_into_a_linked_directory(t: &Env) -> CaseResult {
    t.put_all(&["real/file", "real/tree/inner", "real/kept"])
        .await?;
    t.link("link", "real").await?;
    t.backend().delete_file("link/file").await?;
    t.backend().delete_tree("link/tree").await?;
    check_eq!(t.names("real").await?, ["kept"])?;
    check_eq!(t.names("").await?, ["link/", "real/"])
}

/// Moving a link moves the link and keeps its text.
pub async fn rename_moves_the_link(t: &Env) -> CaseResult {
    t.put_all(&["real/file", "other/real/file"]).await?;
    t.put("other/real/file", "elsewhere").await?;
    t.link("link", "real/file").await?;
    t.link("directory", "real").await?;
    t.link("dangling", "gone").await?;
    Rename.run(t, "link", "other/link", false).await?;
    Rename.run(t, "directory", "renamed", false).await?;
    Rename.run(t, "dangling", "other/dangling", false).await?;
    check_eq!(t.get("other/link").await?, b"elsewhere")?;
    check_eq!(t.names("renamed").await?, ["file"])?;
    check!(t.backend().metadata("renamed").await?.link)?;
    check_eq!(t.names("").await?, ["other/", "real/", "renamed/"])?;
    check_eq!(t.names("other").await?, ["real/", "dangling", "link"])?;
    check_eq!(t.get("real/file").await?, b"text\n")
}

/// Copying a link copies the link and keeps its text.
pub async fn copy_keeps_the_text(t: &Env) -> CaseResult {
    t.put("real/file", "here").await?;
    t.put("other/real/file", "elsewhere").await?;
    t.link("link", "real/file").await?;
    t.link("directory", "real").await?;
    t.link("dangling", "gone").await?;
    for name in ["link", "directory", "dangling"] {
        COPY.run(t, name, &format!("other/{name}"), false).await?;
        t.backend().copy_to(name, format!("{name}-plain")).await?;
    }
    check_eq!(t.get("link").await?, b"here")?;
    check_eq!(t.get("link-plain").await?, b"here")?;
    check_eq!(t.get("other/link").await?, b"elsewhere")?;
    check_eq!(t.get("other/directory/file").await?, b"elsewhere")?;
    for path in ["other/link", "other/directory", "directory-plain"] {
        check!(
            t.backend().metadata(path).await?.link,
            "{path} is not a link"
        )?;
    }
    check!(rows(t, "other").await?.contains(&link("dangling")))
}

/// The links in a copied directory are links in the copy.
pub async fn recursive_copy_copies_links(t: &Env) -> CaseResult {
    t.put_all(&["tree/file", "kept/file"]).await?;
    t.link("tree/beside", "file").await?;
    t.link("tree/kept", "../kept").await?;
    t.link("tree/dangling", "gone").await?;
    t.link("tree/up", "..").await?;
    COPY.run(t, "tree", "copy", false).await?;
    let expected = [
        ("kept".to_owned(), FileKind::Directory, true),
        ("up".to_owned(), FileKind::Directory, true),
        ("beside".to_owned(), FileKind::File, true),
        link("dangling"),
        ("file".to_owned(), FileKind::File, false),
    ];
    check_eq!(rows(t, "copy").await?, expected)?;
    t.put("copy/file", "changed").await?;
    check_eq!(t.get("copy/beside").await?, b"changed")?;
    check_eq!(t.get("tree/beside").await?, b"text\n")
}

/// A link at the destination is in the way, whatever its target is. The link itself is
/// replaced if the caller allows it.
pub async fn link_at_the_destination_is_replaced_itself(t: &Env) -> CaseResult {
    t.put("target", "kept").await?;
    for (number, text) in ["target", "gone", "to"].into_iter().enumerate() {
        let from = format!("from{number}");
        t.link("to", text).await?;
        t.put(&from, "new").await?;
        for transfer in [Rename, COPY] {
            let done = transfer.run(t, &from, "to", false).await;
            t.fails(ErrorKind::AlreadyExists, done)?;
        }
        COPY.run(t, &from, "to", true).await?;
        check!(
            !t.backend().metadata("to").await?.link,
            "still a link to {text}"
        )?;
        t.backend().delete_file("to").await?;
        t.link("to", text).await?;
        Rename.run(t, &from, "to", true).await?;
        let entry = t.backend().metadata("to").await?;
        check_eq!((entry.link, entry.size), (false, Some(3)))?;
        t.backend().delete_file("to").await?;
    }
    check_eq!(t.get("target").await?, b"kept")?;
    check_eq!(t.names("").await?, ["target"])
}

/// A link replaces a file if the caller allows it, and never a directory.
pub async fn link_replaces_a_file(t: &Env) -> CaseResult {
    t.put_all(&["directory/file", "target", "one", "two"])
        .await?;
    t.put("target", "kept").await?;
    t.link("link", "target").await?;
    for overwrite in [false, true] {
        let copied = COPY.run(t, "link", "directory", overwrite).await;
        t.fails(ErrorKind::AlreadyExists, copied)?;
        let moved = Rename.run(t, "link", "directory", overwrite).await;
        t.fails(ErrorKind::AlreadyExists, moved)?;
    }
    COPY.run(t, "link", "one", true).await?;
    Rename.run(t, "link", "two", true).await?;
    for path in ["one", "two"] {
        check_eq!(t.get(path).await?, b"kept")?;
        check!(t.backend().metadata(path).await?.link)?;
    }
    check_eq!(t.names("").await?, ["directory/", "one", "target", "two"])
}

/// Entries are moved and copied into and out of a linked directory.
pub async fn parents_may_be_links(t: &Env) -> CaseResult {
    t.put_all(&["real/out", "real/copied", "in", "copied-in"])
        .await?;
    t.link("link", "real").await?;
    Rename.run(t, "link/out", "out", false).await?;
    Rename.run(t, "in", "link/in", false).await?;
    COPY.run(t, "link/copied", "link/new/copied", false).await?;
    COPY.run(t, "copied-in", "link/copied-in", false).await?;
    check_eq!(
        t.names("real").await?,
        ["new/", "copied", "copied-in", "in"]
    )?;
    check_eq!(t.names("real/new").await?, ["copied"])?;
    check_eq!(t.names("").await?, ["link/", "real/", "copied-in", "out"])
}

/// Two names of one file are one file: nothing is moved or copied onto itself through a
/// link, and nothing is lost.
pub async fn onto_itself_through_a_link(t: &Env) -> CaseResult {
    t.put("real/file", "kept").await?;
    t.link("link", "real").await?;
    for (from, to) in [("real/file", "link/file"), ("link/file", "real/file")] {
        for transfer in [Rename, COPY] {
            let done = transfer.run(t, from, to, true).await;
            t.fails(ErrorKind::InvalidInput, done)?;
        }
        check_eq!(t.get("real/file").await?, b"kept")?;
    }
    check_eq!(t.names("real").await?, ["file"])
}

/// Nothing is moved or copied into itself through a link, and no copy grows without
/// end.
pub async fn into_itself_through_a_link(t: &Env) -> CaseResult {
    t.put("real/inner/file", "kept").await?;
    t.link("link", "real/inner").await?;
    t.link("real/up", "..").await?;
    for to in ["link/new", "real/up/real/new", "link/deeper/new"] {
        for transfer in [Rename, COPY] {
            let done = transfer.run(t, "real", to, false).await;
            t.fails(ErrorKind::InvalidInput, done)?;
        }
    }
    check_eq!(t.names("real").await?, ["inner/", "up/"])?;
    check_eq!(t.names("real/inner").await?, ["file"])
}

/// Nothing outside is deleted, moved or copied, and nothing is created there.
pub async fn link_out_is_denied(t: &Env) -> CaseResult {
    let outside = t.fixture().make_outside().await?;
    t.put("file", "kept").await?;
    let denied = ErrorKind::PermissionDenied;
    let (file, stolen) = (t.path("file")?, t.path("stolen")?);
    for (name, text) in [
        ("absolute", outside.clone()),
        ("climbing", climbing(&outside)),
    ] {
        t.link(name, &text).await?;
        for suffix in ["secret", "new", "deeper/new"] {
            let path = t.path(&format!("{name}/{suffix}"))?;
            let answers = arrivals(t.backend(), &file, &path, Links::Follow).await;
            all_fail(denied, &answers)?;
        }
        let secret = t.path(&format!("{name}/secret"))?;
        let answers = departures(t.backend(), &secret, &stolen, Links::Follow).await;
        all_fail(denied, &answers)?;
    }
    check_eq!(t.get("file").await?, b"kept")?;
    t.fails(ErrorKind::NotFound, t.backend().metadata("stolen").await)?;
    t.fixture().check_outside().await
}

/// A link that leads outside can itself be moved, copied and deleted, and a copy of it
/// does not lead outside either.
pub async fn link_out_itself_is_only_a_link(t: &Env) -> CaseResult {
    let outside = t.fixture().make_outside().await?;
    t.link("link", &outside).await?;
    t.put("tree/file", "x").await?;
    t.link("tree/out", &climbing(&outside)).await?;
    Rename.run(t, "link", "moved", false).await?;
    COPY.run(t, "moved", "copied", false).await?;
    COPY.run(t, "tree", "tree-copy", false).await?;
    check_eq!(rows(t, "tree-copy").await?[1], link("out"))?;
    for path in ["moved/secret", "copied/secret", "tree-copy/out/secret"] {
        let read = t.backend().read_bytes(path).await;
        t.fails(ErrorKind::PermissionDenied, read)?;
    }
    t.backend().delete_tree("moved").await?;
    t.backend().delete_file("copied").await?;
    t.backend().delete_tree("tree").await?;
    t.backend().delete_tree("tree-copy").await?;
    check!(t.names("").await?.is_empty())?;
    t.fixture().check_outside().await
}

/// A call that refuses links refuses those in the parents of either path.
pub async fn refused_above_either_path(t: &Env) -> CaseResult {
    t.put_all(&["real/file", "file"]).await?;
    t.link("link", "real").await?;
    let refused = ErrorKind::IsALink;
    let (file, to) = (t.path("file")?, t.path("to")?);
    for path in ["link/new", "link/deeper/new", "link/file"] {
        let path = t.path(path)?;
        let answers = arrivals(t.backend(), &file, &path, Links::Refuse).await;
        all_fail(refused, &answers)?;
    }
    let path = t.path("link/file")?;
    let answers = departures(t.backend(), &path, &to, Links::Refuse).await;
    all_fail(refused, &answers)?;
    check_eq!(t.names("").await?, ["link/", "real/", "file"])?;
    check_eq!(t.names("real").await?, ["file"])
}

/// A call that refuses links still moves, copies and deletes a link, because it does
/// not follow it.
pub async fn refusing_acts_on_the_link_itself(t: &Env) -> CaseResult {
    t.put("real/file", "kept").await?;
    t.link("link", "real").await?;
    let backend = t.backend();
    let (from, to) = (t.path("link")?, t.path("copy")?);
    let options = CopyOptions::default().links(Links::Refuse);
    backend.copy(&from, &to, options).await?;
    let options = RenameOptions::default().links(Links::Refuse);
    backend.rename(&from, &t.path("moved")?, options).await?;
    check_eq!(t.names("").await?, ["copy/", "moved/", "real/"])?;
    let options = DeleteOptions::default().links(Links::Refuse);
    backend.delete(&to, options).await?;
    let options = options.recursive(true);
    backend.delete(&t.path("moved")?, options).await?;
    check_eq!(t.names("").await?, ["real/"])?;
    check_eq!(t.names("real").await?, ["file"])
}
