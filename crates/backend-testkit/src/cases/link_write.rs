//! Writing, editing and creating directories through symbolic links.

use backend_core::ops::{
    ContentHash, CreateDirOptions, FileKind, Links, ReadOptions, WriteMode, WriteOptions,
};
use backend_core::{BackendExt as _, ErrorKind};

use super::create_dir::create_dir;
use super::link_read::climbing;
use super::ops::{all_fail, makes, writes};
use crate::env::Env;
use crate::failure::CaseResult;
use crate::{check, check_eq};

async fn is_link(t: &Env, path: &str) -> Result<bool, crate::Failure> {
    Ok(t.backend().metadata(path).await?.link)
}

/// A write replaces the target of a link, and the link stays.
pub async fn write_replaces_the_target(t: &Env) -> CaseResult {
    t.put("real/file", "old").await?;
    t.link("link", "real/file").await?;
    t.link("chain", "link").await?;
    for (path, content) in [("link", "new"), ("chain", "newer")] {
        let outcome = t.backend().write_file(path, content).await?;
        check_eq!(outcome.created, false)?;
        check_eq!(t.get("real/file").await?, content.as_bytes())?;
        check!(is_link(t, path).await?, "{path} is no longer a link")?;
    }
    check_eq!(t.names("").await?, ["real/", "chain", "link"])?;
    check_eq!(t.names("real").await?, ["file"])
}

/// A write below a link to a directory creates the file in that directory.
pub async fn write_goes_into_a_linked_directory(t: &Env) -> CaseResult {
    t.put("real/file", "old").await?;
    t.link("link", "real").await?;
    t.put("link/file", "new").await?;
    t.put("link/deeper/new", "x").await?;
    check_eq!(t.get("real/file").await?, b"new")?;
    check_eq!(t.get("real/deeper/new").await?, b"x")?;
    check!(is_link(t, "link").await?)
}

/// A write through a dangling link creates its target, including parents.
pub async fn write_through_a_dangling_link_creates_its_target(t: &Env) -> CaseResult {
    create_dir(t, "real").await?;
    t.link("link", "real/new").await?;
    t.link("far", "missing/parents/new").await?;
    for (path, target) in [("link", "real/new"), ("far", "missing/parents/new")] {
        let outcome = t.backend().write_file(path, "x").await?;
        check_eq!(outcome.created, true)?;
        check_eq!(t.get(target).await?, b"x")?;
        check!(is_link(t, path).await?)?;
    }
    Ok(())
}

/// The write mode applies to the target of the link.
pub async fn write_mode_is_about_the_target(t: &Env) -> CaseResult {
    t.put("file", "old").await?;
    t.link("link", "file").await?;
    t.link("dangling", "new").await?;
    let write = async |path: &str, mode: WriteMode| {
        let options = WriteOptions::default().mode(mode);
        let path = t.backend().path(path)?;
        t.backend().write(&path, "written".into(), options).await
    };
    let created = write("link", WriteMode::CreateNew).await;
    t.fails(ErrorKind::AlreadyExists, created)?;
    let stale = WriteMode::IfUnchanged(ContentHash::of(b"other"));
    t.fails(ErrorKind::Conflict, write("link", stale).await)?;
    t.fails(ErrorKind::Conflict, write("dangling", stale).await)?;
    check_eq!(t.get("file").await?, b"old")?;
    write("link", WriteMode::IfUnchanged(ContentHash::of(b"old"))).await?;
    check_eq!(t.get("file").await?, b"written")?;
    write("dangling", WriteMode::CreateNew).await?;
    check_eq!(t.get("new").await?, b"written")?;
    check!(is_link(t, "link").await? && is_link(t, "dangling").await?)
}

/// A write to a link to a directory fails like a write to a directory.
pub async fn write_to_a_directory_link(t: &Env) -> CaseResult {
    t.put("real/file", "kept").await?;
    t.link("link", "real").await?;
    let written = t.backend().write_file("link", "x").await;
    t.fails(ErrorKind::IsADirectory, written)?;
    check_eq!(t.get("link/file").await?, b"kept")
}

/// A write whose parent is a link to a file fails like a write below a file.
pub async fn write_beneath_a_file_link(t: &Env) -> CaseResult {
    t.put("file", "kept").await?;
    t.link("link", "file").await?;
    let written = t.backend().write_file("link/beneath", "x").await;
    t.fails(ErrorKind::NotADirectory, written)?;
    check_eq!(t.get("file").await?, b"kept")
}

/// An edit changes the target of a link, and the link stays.
pub async fn edit_changes_the_target(t: &Env) -> CaseResult {
    t.put("real/file", "old text").await?;
    t.link("link", "real/file").await?;
    t.link("directory", "real").await?;
    t.backend().replace_text("link", "old", "new").await?;
    check_eq!(t.get("real/file").await?, b"new text")?;
    t.backend()
        .replace_text("directory/file", "new", "newer")
        .await?;
    check_eq!(t.get("real/file").await?, b"newer text")?;
    check!(is_link(t, "link").await? && is_link(t, "directory").await?)?;
    check_eq!(t.names("real").await?, ["file"])
}

/// Edits through two names of one file lose nothing.
pub async fn edits_through_two_names_lose_nothing(t: &Env) -> CaseResult {
    t.put("real/file", "a0 b0").await?;
    t.link("link", "real/file").await?;
    let (mut a, mut b) = (0, 0);
    for _ in 0..20 {
        let (old_a, new_a) = (format!("a{a}"), format!("a{}", a + 1));
        let (old_b, new_b) = (format!("b{b}"), format!("b{}", b + 1));
        let (one, two) = futures::join!(
            t.backend().replace_text("real/file", &old_a, &new_a),
            t.backend().replace_text("link", &old_b, &new_b),
        );
        for (edited, count) in [(one, &mut a), (two, &mut b)] {
            match edited {
                Ok(_) => *count += 1,
                Err(error) => t.fails(ErrorKind::Conflict, Err::<(), _>(error))?,
            }
        }
    }
    check_eq!(t.get("real/file").await?, format!("a{a} b{b}").as_bytes())?;
    check!(a + b >= 20, "only {a} and {b} of 20 edits each")
}

/// A directory can be created below a link to a directory. A link to a directory counts
/// as an existing directory.
pub async fn directories_are_made_through_links(t: &Env) -> CaseResult {
    t.put_all(&["real/inner/file", "file"]).await?;
    t.link("link", "real").await?;
    t.link("to-file", "file").await?;
    for path in ["link", "link/inner", "link/new/deeper"] {
        create_dir(t, path).await?;
    }
    check_eq!(t.names("real").await?, ["inner/", "new/"])?;
    check_eq!(t.names("real/new").await?, ["deeper/"])?;
    check!(is_link(t, "link").await?)?;
    t.fails(ErrorKind::AlreadyExists, create_dir(t, "to-file").await)?;
    let beneath = create_dir(t, "to-file/beneath").await;
    t.fails(ErrorKind::NotADirectory, beneath)
}

/// Nothing is written through a link that leads outside, whether its target exists or
/// not.
pub async fn link_out_is_denied(t: &Env) -> CaseResult {
    let outside = t.fixture().make_outside().await?;
    let denied = ErrorKind::PermissionDenied;
    for (name, text) in [
        ("absolute", outside.clone()),
        ("climbing", climbing(&outside)),
    ] {
        t.link(name, &text).await?;
        t.link(&format!("{name}-file"), &format!("{text}/secret"))
            .await?;
        t.link(&format!("{name}-new"), &format!("{text}/new"))
            .await?;
        t.link(&format!("{name}-chain"), &format!("{name}-new"))
            .await?;
        for suffix in ["-file", "-new", "-chain", "/secret", "/new", "/deeper/new"] {
            let path = t.path(&format!("{name}{suffix}"))?;
            all_fail(denied, &writes(t.backend(), &path, Links::Follow).await)?;
        }
        for suffix in ["/new", "/deeper/new"] {
            let path = t.path(&format!("{name}{suffix}"))?;
            all_fail(denied, &makes(t.backend(), &path, Links::Follow).await)?;
        }
    }
    t.fixture().check_outside().await
}

/// A call that refuses links changes nothing through one.
pub async fn refused_by_every_write(t: &Env) -> CaseResult {
    t.put("real/file", "secret").await?;
    t.link("directory", "real").await?;
    t.link("file", "real/file").await?;
    t.link("dangling", "real/new").await?;
    let backend = t.backend();
    for path in ["file", "dangling", "directory/file", "directory/new"] {
        let path = t.path(path)?;
        all_fail(
            ErrorKind::IsALink,
            &writes(backend, &path, Links::Refuse).await,
        )?;
    }
    for path in ["directory", "directory/new", "directory/new/deeper"] {
        let path = t.path(path)?;
        all_fail(
            ErrorKind::IsALink,
            &makes(backend, &path, Links::Refuse).await,
        )?;
    }
    check_eq!(t.get("real/file").await?, b"secret")?;
    check_eq!(t.names("real").await?, ["file"])?;
    let options = WriteOptions::default().links(Links::Refuse);
    let plain = t.path("real/file")?;
    backend.write(&plain, "new".into(), options).await?;
    let options = CreateDirOptions::default().links(Links::Refuse);
    backend
        .create_dir(&t.path("real/deeper/new")?, options)
        .await?;
    let options = ReadOptions::default().links(Links::Refuse);
    check_eq!(&backend.read(&plain, options).await?.data[..], b"new")
}

/// A failed write through a link leaves the link and its target unchanged.
pub async fn failed_write_changes_nothing(t: &Env) -> CaseResult {
    t.put("real/file", "kept").await?;
    t.link("link", "real/file").await?;
    let pieces = futures::stream::iter([
        Ok(bytes::Bytes::from_static(b"half")),
        Err(backend_core::Error::unavailable("the line is cut")),
    ]);
    let content = backend_core::ops::Content::Stream(Box::pin(pieces));
    let written = t.backend().write_file("link", content).await;
    t.fails(ErrorKind::Unavailable, written)?;
    check_eq!(t.get("real/file").await?, b"kept")?;
    let entry = t.backend().metadata("link").await?;
    check_eq!((entry.kind, entry.link), (FileKind::File, true))?;
    check_eq!(t.names("real").await?, ["file"])?;
    check_eq!(t.names("").await?, ["real/", "link"])
}
