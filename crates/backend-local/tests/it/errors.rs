//! The content of errors, and what they must not reveal.

use std::fs;
use std::os::unix::fs::symlink;

use backend_core::ops::*;
use backend_core::{Backend, BackendExt as _, Error, ErrorKind, Result, VPath};
use backend_local::{LocalBackend, Resolution};

use crate::support::disk::directory;

/// Returns the errors of operations on `path`.
async fn errors_at(backend: &LocalBackend, path: &str) -> Vec<Error> {
    let at = VPath::parse(path).unwrap();
    let create = WriteOptions::default().mode(WriteMode::CreateNew);
    let unchanged = WriteMode::IfUnchanged(ContentHash::of(b"?"));
    let unchanged = WriteOptions::default().mode(unchanged);
    let refuse = ReadOptions::default().links(Links::Refuse);
    let small = ReadOptions::default().max_bytes(1);
    let text = TextOptions::default();
    let done = [
        backend.read_bytes(path).await.map(drop),
        backend.read(&at, refuse).await.map(drop),
        backend.read(&at, small).await.map(drop),
        backend.read_text(&at, text).await.map(drop),
        backend.list_dir(path).await.map(drop),
        backend.write(&at, "x".into(), create).await.map(drop),
        backend.write(&at, "x".into(), unchanged).await.map(drop),
        backend.replace_text(path, "a", "b").await.map(drop),
        backend.copy_to(path, path).await,
        backend.move_to(path, "/").await,
        backend.delete_file(&format!("{path}/x")).await,
        backend
            .resolve(&at, ResolveOptions::default())
            .await
            .map(drop),
    ];
    done.into_iter().filter_map(Result::err).collect()
}

#[tokio::test]
async fn no_error_shows_the_path_of_the_host() {
    for resolution in [Resolution::Auto, Resolution::Components] {
        let (_keep, root) = directory();
        let secret = root.file_name().unwrap().to_str().unwrap();
        fs::write(root.join("inside"), b"not\0text\xff").unwrap();
        fs::create_dir(root.join("dir")).unwrap();
        symlink("/", root.join("out")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink(root.join("inside/x"), root.join("beneath")).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("fifo"), mode).unwrap();
        let backend = LocalBackend::builder(&root).resolution(resolution);
        let backend = backend.open().unwrap();
        let mut errors = vec![
            LocalBackend::builder(root.join("none")).open().unwrap_err(),
            LocalBackend::builder(root.join("inside"))
                .open()
                .unwrap_err(),
        ];
        assert_eq!(errors[0].kind(), ErrorKind::NotFound);
        assert_eq!(errors[1].kind(), ErrorKind::NotADirectory);
        for path in [
            "inside", "out", "loop", "beneath", "missing", "dir", "fifo", "inside/x", "/",
        ] {
            errors.extend(errors_at(&backend, path).await);
        }
        for error in &errors {
            for shown in [
                error.to_string(),
                error.chain().to_string(),
                format!("{error:?}"),
            ] {
                assert!(!shown.contains(secret), "{shown}");
            }
        }
        assert!(!format!("{backend:?}").contains(secret), "{backend:?}");
        use ErrorKind::*;
        for kind in [
            NotFound,
            AlreadyExists,
            IsADirectory,
            NotADirectory,
            IsALink,
            InvalidPath,
            InvalidInput,
            PermissionDenied,
            TooLarge,
            NotText,
            Conflict,
        ] {
            let provoked = errors.iter().any(|error| error.kind() == kind);
            assert!(provoked, "no {kind:?}");
        }
    }
}
