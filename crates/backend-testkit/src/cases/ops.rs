//! Every operation on one path, for cases that check the same rule for all of them.

use backend_core::ops::{
    CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, GlobQuery, GrepQuery, Links,
    LsOptions, ReadOptions, RenameOptions, StatOptions, TextOptions, WriteMode, WriteOptions,
};
use backend_core::text::Edit;
use backend_core::{Backend, ErrorKind, Result, VPath};

use crate::failure::{CaseResult, Failure};

/// The names of operations and their results.
pub(crate) type Answers = Vec<(&'static str, Result<()>)>;

/// Runs the operations that read the entry at `path`.
pub(crate) async fn reads(backend: &dyn Backend, path: &VPath, links: Links) -> Answers {
    let stat = StatOptions::default().links(links);
    let list = LsOptions::default().links(links);
    let read = ReadOptions::default().links(links);
    let text = TextOptions::default().links(links);
    vec![
        ("ls", backend.ls(path, list).await.map(drop)),
        ("read", backend.read(path, read).await.map(drop)),
        ("read_text", backend.read_text(path, text).await.map(drop)),
        ("stat", backend.stat(path, stat).await.map(drop)),
    ]
}

/// Runs the searches that start at `path`.
pub(crate) async fn searches(backend: &dyn Backend, path: &VPath, links: Links) -> Answers {
    let glob = GlobQuery::new("**", path.clone()).links(links);
    let grep = GrepQuery::new(".", path.clone()).links(links);
    vec![
        ("glob", backend.glob(glob).await.map(drop)),
        ("grep", backend.grep(grep).await.map(drop)),
    ]
}

/// Runs the operations that change the file at `path`.
pub(crate) async fn writes(backend: &dyn Backend, path: &VPath, links: Links) -> Answers {
    let write = WriteOptions::default().links(links);
    let create = write.mode(WriteMode::CreateNew);
    let edit = EditOptions::default().links(links);
    let edits = [Edit::new("secret", "changed")];
    vec![
        (
            "write",
            backend.write(path, "w".into(), write).await.map(drop),
        ),
        (
            "write new",
            backend.write(path, "n".into(), create).await.map(drop),
        ),
        ("edit", backend.edit(path, &edits, edit).await.map(drop)),
    ]
}

/// Creates a directory at `path`.
pub(crate) async fn makes(backend: &dyn Backend, path: &VPath, links: Links) -> Answers {
    let options = CreateDirOptions::default().links(links);
    vec![("create_dir", backend.create_dir(path, options).await)]
}

/// Moves and copies `from` to `path`.
pub(crate) async fn arrivals(
    backend: &dyn Backend,
    from: &VPath,
    path: &VPath,
    links: Links,
) -> Answers {
    let copy = CopyOptions::default().links(links).recursive(true);
    let rename = RenameOptions::default().links(links);
    vec![
        ("copy to", backend.copy(from, path, copy).await),
        ("rename to", backend.rename(from, path, rename).await),
    ]
}

/// Copies `path` to `to`, moves it there, and deletes it.
pub(crate) async fn departures(
    backend: &dyn Backend,
    path: &VPath,
    to: &VPath,
    links: Links,
) -> Answers {
    let copy = CopyOptions::default().links(links).recursive(true);
    let rename = RenameOptions::default().links(links);
    let delete = DeleteOptions::default().links(links).recursive(true);
    vec![
        ("copy from", backend.copy(path, to, copy).await),
        ("rename from", backend.rename(path, to, rename).await),
        ("delete", backend.delete(path, delete).await),
    ]
}

/// Checks that every operation failed with this kind of error.
#[track_caller]
pub(crate) fn all_fail(kind: ErrorKind, answers: &Answers) -> CaseResult {
    for (operation, answer) in answers {
        let got = match answer {
            Err(error) if error.kind() == kind => continue,
            Err(error) => format!("got {:?}: {error}", error.kind()),
            Ok(()) => "but it succeeded".to_owned(),
        };
        return Err(Failure::new(format!(
            "{operation}: expected {kind:?}, {got}"
        )));
    }
    Ok(())
}
