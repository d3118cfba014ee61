//! A root, a canary outside it, and every way to open the root.

use std::fs;
use std::path::{Path, PathBuf};

use backend_core::ops::{
    CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, GlobQuery, GrepQuery, LsOptions,
    ReadOptions, RenameOptions, ResolveOptions, StatOptions, TextOptions, WriteMode, WriteOptions,
};
use backend_core::text::Edit;
use backend_core::{Backend as _, BackendExt as _, Error, ErrorKind, VPath};
use backend_local::{LocalBackend, LocalBuilder, NameSpace, Resolution};

use super::canary::{Canary, ONLY, TOKEN};

/// A root directory, and a canary outside it.
pub(crate) struct Place {
    pub(crate) root: PathBuf,
    pub(crate) canary: Canary,
    pub(crate) directory: tempfile::TempDir,
}

impl Place {
    /// Creates an empty root `root` and a canary `outside` with a file `secret`
    /// and a directory `sub`.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        let root = place.join("root");
        fs::create_dir(&root).unwrap();
        let canary = Canary::make(&place.join("outside"), &["secret", "sub/deep"]);
        Self {
            root,
            canary,
            directory,
        }
    }

    /// Returns the four kinds of backends on the root, with names.
    pub(crate) fn backends(&self) -> Vec<(String, LocalBackend)> {
        let host = NameSpace::Host {
            allowed: Vec::new(),
        };
        let mut all = Vec::new();
        for names in [NameSpace::Virtual, host] {
            for resolution in [Resolution::Auto, Resolution::Components] {
                let name = format!("{names:?} {resolution:?}");
                let builder = self.builder().names(names.clone());
                all.push((name, builder.resolution(resolution).open().unwrap()));
            }
        }
        all
    }

    pub(crate) fn builder(&self) -> LocalBuilder {
        LocalBackend::builder(&self.root)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// The results of operations, as text or error.
pub(crate) type Answers = Vec<(&'static str, Result<String, Error>)>;

pub(crate) fn said<T: std::fmt::Debug>(answer: Result<T, Error>) -> Result<String, Error> {
    answer.map(|answer| format!("{answer:?}"))
}

/// Runs every operation that follows `path`.
pub(crate) async fn following(backend: &LocalBackend, path: &VPath) -> Answers {
    let write = WriteOptions::default();
    let create = write.mode(WriteMode::CreateNew);
    let edits = [Edit::new("canary", "stolen")];
    let text = backend.read_text(path, TextOptions::default()).await;
    let edited = backend.edit(path, &edits, EditOptions::default()).await;
    vec![
        (
            "resolve",
            said(backend.resolve(path, ResolveOptions::default()).await),
        ),
        (
            "stat",
            said(backend.stat(path, StatOptions::default()).await),
        ),
        ("ls", said(backend.ls(path, LsOptions::default()).await)),
        (
            "read",
            said(backend.read(path, ReadOptions::default()).await),
        ),
        ("read_text", said(text)),
        (
            "glob",
            said(backend.glob(GlobQuery::new("**", path.clone())).await),
        ),
        (
            "grep",
            said(backend.grep(GrepQuery::new(".", path.clone())).await),
        ),
        ("write", said(backend.write(path, "w".into(), write).await)),
        (
            "create",
            said(backend.write(path, "n".into(), create).await),
        ),
        ("edit", said(edited)),
    ]
}

/// Runs every operation that acts on `path` itself. `file` is one to move
/// there.
pub(crate) async fn acting(backend: &LocalBackend, path: &VPath, file: &VPath) -> Answers {
    let copy = CopyOptions::default().recursive(true).overwrite(true);
    let rename = RenameOptions::default().overwrite(true);
    let tree = DeleteOptions::default().recursive(true);
    let stolen = backend.path("stolen").unwrap();
    let made = backend.create_dir(path, CreateDirOptions::default()).await;
    vec![
        ("create_dir", said(made)),
        ("copy to", said(backend.copy(file, path, copy).await)),
        ("rename to", said(backend.rename(file, path, rename).await)),
        ("copy from", said(backend.copy(path, &stolen, copy).await)),
        (
            "rename from",
            said(backend.rename(path, &stolen, rename).await),
        ),
        (
            "delete",
            said(backend.delete(path, DeleteOptions::default()).await),
        ),
        ("delete tree", said(backend.delete(path, tree).await)),
    ]
}

/// Panics unless every result is an error of one of these kinds and reveals
/// nothing of the outside.
pub(crate) fn all_fail(what: &str, kinds: &[ErrorKind], answers: &Answers) {
    for (operation, answer) in answers {
        let error = match answer {
            Ok(told) => panic!("{what}: {operation} succeeded: {told}"),
            Err(error) => error,
        };
        let kind = error.kind();
        assert!(
            kinds.contains(&kind),
            "{what}: {operation}: {kind:?}: {error}"
        );
        let told = format!("{} {error:?}", error.chain());
        assert!(
            !told.contains(TOKEN) && !told.contains(ONLY),
            "{what}: {told}"
        );
    }
}

/// Returns the text of a path that is UTF-8.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
