//! The mapping of paths to files: both name spaces, links, and their limits.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use backend_core::ops::*;
use backend_core::{Backend, BackendExt as _, Edit, Error, ErrorKind, Result, VPath};
use backend_local::{LocalBackend, NameSpace, Resolution};
use backend_testkit::fails;

use crate::support::disk::{BOTH, directory, open_by as in_virtual};
use crate::support::place::text;

fn in_host(root: &Path, allowed: &[PathBuf], resolution: Resolution) -> LocalBackend {
    let names = NameSpace::Host {
        allowed: allowed.to_vec(),
    };
    let builder = LocalBackend::builder(root).names(names);
    builder.resolution(resolution).open().unwrap()
}

/// Whether the parent's listing shows a broken link.
async fn is_listed_as_a_link(backend: &LocalBackend, path: &str) -> bool {
    let path = backend.path(path).unwrap();
    let above = path.parent().unwrap();
    let listing = backend.ls(&above, LsOptions::default()).await.unwrap();
    let mut entries = listing.entries.iter();
    entries.any(|entry| entry.path == path && entry.link && entry.kind == FileKind::Link)
}

async fn resolve(backend: &LocalBackend, path: &str) -> Result<String> {
    let path = VPath::parse(path)?;
    let resolved = backend.resolve(&path, ResolveOptions::default()).await?;
    Ok(resolved.to_string())
}

#[tokio::test]
async fn a_sibling_with_the_same_beginning_is_outside() {
    let (_keep, top) = directory();
    for name in ["ok", "ok-evil", "ok..", "OK"] {
        fs::create_dir(top.join(name)).unwrap();
        fs::write(top.join(name).join("x"), name).unwrap();
    }
    for resolution in BOTH {
        let backend = in_host(&top.join("ok"), &[], resolution);
        assert_eq!(backend.working_dir().as_str(), text(&top.join("ok")));
        assert_eq!(backend.read_to_string("x").await.unwrap(), "ok");
        for outside in ["ok-evil/x", "ok../x", "OK/x", "ok-evil", ""] {
            let path = format!("{}/{outside}", text(&top));
            let denied = ErrorKind::PermissionDenied;
            fails(denied, backend.read_bytes(&path).await);
            fails(denied, backend.list_dir(&path).await);
            fails(denied, backend.write_file(&path, "y").await);
            let deleted = backend.delete_tree(&path).await.unwrap_err();
            assert_eq!(deleted.kind() == denied, !outside.is_empty());
            let query = GrepQuery::new("o", VPath::parse(&path).unwrap());
            fails(denied, backend.grep(query).await);
        }
        fails(ErrorKind::PermissionDenied, backend.list_dir("/").await);
    }
}

#[tokio::test]
async fn allowed_directories_and_their_spellings() {
    let (_keep, top) = directory();
    for name in ["root/sub", "real", "third"] {
        fs::create_dir_all(top.join(name)).unwrap();
    }
    symlink("real", top.join("alias")).unwrap();
    fs::write(top.join("real/file"), "allowed").unwrap();
    for resolution in BOTH {
        let allowed = [top.join("alias"), top.join("root/sub")];
        let backend = in_host(&top.join("root"), &allowed, resolution);
        for spelling in ["alias/file", "real/file"] {
            let path = format!("{}/{spelling}", text(&top));
            assert_eq!(backend.read_to_string(&path).await.unwrap(), "allowed");
            let resolved = resolve(&backend, &path).await.unwrap();
            assert_eq!(resolved, text(&top.join("real/file")));
            let listed = backend.list_dir(&format!("{}/alias", text(&top))).await;
            let listed = listed.unwrap().entries.remove(0).path;
            assert_eq!(listed.as_str(), text(&top.join("alias/file")));
        }
        let nested = format!("{}/root/sub/f", text(&top));
        backend.write_file(&nested, "x").await.unwrap();
        assert_eq!(backend.read_to_string("sub/f").await.unwrap(), "x");
        let third = format!("{}/third/f", text(&top));
        let denied = backend.write_file(&third, "x").await;
        fails(ErrorKind::PermissionDenied, denied);
        // A directory that the backend is made of cannot be deleted.
        let path = VPath::parse(text(&top.join("real"))).unwrap();
        let options = DeleteOptions::default().recursive(true);
        let deleted = backend.delete(&path, options).await;
        fails(ErrorKind::InvalidInput, deleted);
        let from = format!("{}/root/sub/f", text(&top));
        let to = format!("{}/real/moved", text(&top));
        backend.move_to(&from, &to).await.unwrap();
        assert_eq!(backend.read_to_string(&to).await.unwrap(), "x");
        backend.delete_file(&to).await.unwrap();
    }
}

/// A guard checks the targets of links, so it must see that there is one.
#[tokio::test]
async fn another_spelling_of_a_directory_is_a_link() {
    let (_keep, top) = directory();
    for name in ["root", "real"] {
        fs::create_dir_all(top.join(name)).unwrap();
    }
    fs::write(top.join("real/file"), "x").unwrap();
    symlink("real", top.join("alias")).unwrap();
    for resolution in BOTH {
        let backend = in_host(&top.join("root"), &[top.join("alias")], resolution);
        let path = |name: &str| VPath::parse(text(&top.join(name))).unwrap();
        let (alias, real) = (path("alias/file"), path("real/file"));
        let resolved = backend.resolve(&alias, ResolveOptions::default()).await;
        assert_eq!(resolved.unwrap(), real);
        let options = || ReadOptions::default().links(Links::Refuse);
        fails(ErrorKind::IsALink, backend.read(&alias, options()).await);
        let options_of = StatOptions::default().links(Links::Refuse);
        fails(ErrorKind::IsALink, backend.stat(&alias, options_of).await);
        backend.read(&real, options()).await.unwrap();
    }
}

#[tokio::test]
async fn the_working_directory_may_lie_in_an_allowed_one() {
    for resolution in BOTH {
        let (_keep, top) = directory();
        fs::create_dir_all(top.join("outer/above/inner")).unwrap();
        fs::write(top.join("outer/file"), "outer").unwrap();
        symlink("../../file", top.join("outer/above/inner/up")).unwrap();
        symlink(".", top.join("outer/again")).unwrap();
        let allowed = [top.join("outer")];
        let backend = in_host(&top.join("outer/above/inner"), &allowed, resolution);
        assert_eq!(backend.read_to_string("up").await.unwrap(), "outer");
        assert_eq!(backend.read_to_string("../../file").await.unwrap(), "outer");
        // It cannot be deleted under another name either.
        for above in "outer/above/inner outer/again/above/inner outer/again/above".split(' ') {
            let path = format!("{}/{above}", text(&top));
            let deleted = backend.delete_tree(&path).await;
            fails(ErrorKind::InvalidInput, deleted);
            let moved = backend
                .move_to(&path, &format!("{}/outer/x", text(&top)))
                .await;
            fails(ErrorKind::InvalidInput, moved);
        }
        assert_eq!(backend.list_dir(".").await.unwrap().total, 1);
        let other = format!("{}/outer/again/other/dir", text(&top));
        backend
            .write_file(&format!("{other}/f"), "x")
            .await
            .unwrap();
        backend.delete_tree(&other).await.unwrap();
    }
}

#[tokio::test]
async fn links_between_allowed_directories() {
    let (_keep, top) = directory();
    for name in ["a", "b", "c"] {
        fs::create_dir(top.join(name)).unwrap();
        fs::write(top.join(name).join("file"), name).unwrap();
    }
    symlink(top.join("b/file"), top.join("a/to-b")).unwrap();
    symlink(top.join("b"), top.join("a/dir-b")).unwrap();
    symlink(top.join("c/file"), top.join("a/to-c")).unwrap();
    symlink("../b/file", top.join("a/relative")).unwrap();
    for resolution in BOTH {
        let backend = in_host(&top.join("a"), &[top.join("b")], resolution);
        assert_eq!(backend.read_to_string("to-b").await.unwrap(), "b");
        assert_eq!(backend.read_to_string("dir-b/file").await.unwrap(), "b");
        let resolved = resolve(&backend, text(&top.join("a/dir-b/new"))).await;
        assert_eq!(resolved.unwrap(), text(&top.join("b/new")));
        for outside in ["to-c", "relative"] {
            let read = backend.read_bytes(outside).await;
            fails(ErrorKind::PermissionDenied, read);
        }
    }
}

#[tokio::test]
async fn links_that_stay_inside_are_followed() {
    for resolution in BOTH {
        let (_keep, root) = directory();
        fs::create_dir_all(root.join("real/deep")).unwrap();
        fs::write(root.join("real/file"), "here").unwrap();
        let absolute = root.join("real/file");
        let roundabout = PathBuf::from(format!("{}/real/deep/../file", text(&root)));
        for (link, target) in [
            ("relative", Path::new("real/file")),
            ("absolute", &absolute),
            ("roundabout", &roundabout),
            ("real/deep/up", Path::new("../../real/./file")),
            ("chain", Path::new("absolute")),
            ("whole", &root),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        let backend = in_virtual(&root, resolution);
        for path in "relative absolute roundabout real/deep/up chain whole/chain".split(' ') {
            assert_eq!(
                backend.read_to_string(path).await.unwrap(),
                "here",
                "{path}"
            );
            assert_eq!(resolve(&backend, path).await.unwrap(), "/real/file");
            let entry = backend.metadata(path).await.unwrap();
            assert_eq!((entry.kind, entry.link), (FileKind::File, true));
            let path = VPath::parse(path).unwrap();
            let refuse = ReadOptions::default().links(Links::Refuse);
            fails(ErrorKind::IsALink, backend.read(&path, refuse).await);
        }
        // A write replaces the link's target, and the link stays.
        backend.write_file("chain", "new").await.unwrap();
        backend
            .replace_text("absolute", "new", "newer")
            .await
            .unwrap();
        assert_eq!(fs::read(root.join("real/file")).unwrap(), b"newer");
        assert!(root.join("chain").is_symlink() && root.join("absolute").is_symlink());
        // These act on the link itself.
        backend.copy_to("absolute", "copied").await.unwrap();
        backend.move_to("relative", "moved").await.unwrap();
        backend.delete_file("chain").await.unwrap();
        assert_eq!(fs::read_link(root.join("copied")).unwrap(), absolute);
        assert!(root.join("moved").is_symlink() && !root.join("chain").is_symlink());
        assert_eq!(fs::read(root.join("real/file")).unwrap(), b"newer");
    }
}

#[tokio::test]
async fn a_dangling_link_is_written_through() {
    for resolution in BOTH {
        let (_keep, root) = directory();
        symlink("made/here", root.join("link")).unwrap();
        symlink(root.join("other"), root.join("directory")).unwrap();
        symlink("gone/../file", root.join("broken")).unwrap();
        let backend = in_virtual(&root, resolution);
        assert_eq!(resolve(&backend, "link").await.unwrap(), "/made/here");
        fails(ErrorKind::NotFound, backend.read_bytes("link").await);
        fails(ErrorKind::NotFound, backend.metadata("link").await);
        assert!(is_listed_as_a_link(&backend, "link").await);
        backend.write_file("link", "x").await.unwrap();
        assert_eq!(fs::read(root.join("made/here")).unwrap(), b"x");
        backend.write_file("directory/file", "y").await.unwrap();
        assert_eq!(fs::read(root.join("other/file")).unwrap(), b"y");
        let written = backend.write_file("broken", "z").await;
        fails(ErrorKind::NotFound, written);
        assert!(!root.join("file").exists());
    }
}

/// Returns the errors of all operations that would have to follow `path`.
async fn follow(backend: &LocalBackend, path: &str) -> Vec<Error> {
    let at = VPath::parse(path).unwrap();
    let beneath = at.child("new").unwrap();
    let edits = [Edit::new("secret", "public")];
    let found = [
        backend.read_bytes(path).await.map(drop),
        backend
            .read_text(&at, TextOptions::default())
            .await
            .map(drop),
        backend.list_dir(path).await.map(drop),
        backend.write_file(path, "x").await.map(drop),
        backend
            .edit(&at, &edits, EditOptions::default())
            .await
            .map(drop),
        backend.write_file(beneath.as_str(), "x").await.map(drop),
        backend
            .create_dir(&beneath, CreateDirOptions::default())
            .await,
        backend.delete(&beneath, DeleteOptions::default()).await,
        backend.copy_to(beneath.as_str(), "/copy").await,
        backend.copy_to("/inside", beneath.as_str()).await,
        backend.move_to("/inside", beneath.as_str()).await,
        backend
            .glob(GlobQuery::new("*", at.clone()))
            .await
            .map(drop),
        backend
            .grep(GrepQuery::new("s", at.clone()))
            .await
            .map(drop),
        backend
            .resolve(&at, ResolveOptions::default())
            .await
            .map(drop),
    ];
    found.into_iter().map(Result::unwrap_err).collect()
}

#[tokio::test]
async fn links_that_lead_outside_are_not_followed() {
    let (_keep, top) = directory();
    for resolution in BOTH {
        let root = top.join(format!("root-{resolution:?}"));
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::create_dir_all(top.join("outside")).unwrap();
        fs::write(top.join("outside/file"), "secret").unwrap();
        fs::write(root.join("inside"), "x").unwrap();
        let evil = PathBuf::from(format!("{}-evil", text(&root)));
        let climb = PathBuf::from(format!("{}/../outside", text(&root)));
        for (link, target) in [
            ("absolute", top.join("outside")),
            ("file", top.join("outside/file")),
            ("relative", PathBuf::from("../outside")),
            ("sub/up", PathBuf::from("../../outside/file")),
            ("evil", evil),
            ("climb", climb),
            ("slash", PathBuf::from("/")),
            ("proc", PathBuf::from("/proc/self/cwd")),
            ("parent", PathBuf::from("..")),
            ("chain", PathBuf::from("absolute")),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        let backend = in_virtual(&root, resolution);
        for link in [
            "absolute", "file", "relative", "sub/up", "evil", "climb", "slash", "proc", "parent",
            "chain",
        ] {
            for error in follow(&backend, link).await {
                assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{link}: {error}");
            }
            fails(ErrorKind::PermissionDenied, backend.metadata(link).await);
            assert!(is_listed_as_a_link(&backend, link).await, "{link}");
        }
        let listing = backend.list_dir("/").await.unwrap();
        let links = listing
            .entries
            .iter()
            .filter(|entry| entry.kind == FileKind::Link);
        assert_eq!(links.count(), 9);
        let found = backend.search_text("secret").await.unwrap();
        assert!(found.files.is_empty());
        backend.delete_tree("absolute").await.unwrap();
        assert_eq!(fs::read(top.join("outside/file")).unwrap(), b"secret");
        assert_eq!(fs::read_dir(top.join("outside")).unwrap().count(), 1);
    }
}

#[tokio::test]
async fn circles_and_depths_end() {
    for resolution in BOTH {
        let (_keep, root) = directory();
        symlink("b", root.join("a")).unwrap();
        symlink("a", root.join("b")).unwrap();
        symlink("self/self", root.join("self")).unwrap();
        for n in 0..60 {
            symlink(format!("chain{}", n + 1), root.join(format!("chain{n}"))).unwrap();
        }
        let backend = in_virtual(&root, resolution);
        for path in ["a", "b/x", "self", "chain0"] {
            fails(ErrorKind::InvalidPath, backend.read_bytes(path).await);
            fails(ErrorKind::InvalidPath, resolve(&backend, path).await);
            fails(ErrorKind::InvalidPath, backend.write_file(path, "x").await);
        }
        assert_eq!(backend.list_dir("/").await.unwrap().total, 63);
    }
}

#[tokio::test]
async fn the_root_of_the_file_system_is_a_root() {
    let (_keep, top) = directory();
    fs::create_dir(top.join("d")).unwrap();
    fs::write(top.join("d/file"), "x").unwrap();
    symlink(top.join("d/file"), top.join("absolute")).unwrap();
    let above = "../".repeat(40);
    symlink(format!("{above}{}/d/file", text(&top)), top.join("climbs")).unwrap();
    for resolution in BOTH {
        for backend in [
            in_virtual(Path::new("/"), resolution),
            in_host(Path::new("/"), &[], resolution),
        ] {
            assert_eq!(backend.working_dir(), VPath::root());
            for link in ["absolute", "climbs", "d/file"] {
                let path = format!("{}/{link}", text(&top));
                assert_eq!(backend.read_to_string(&path).await.unwrap(), "x", "{path}");
                let resolved = resolve(&backend, &path).await.unwrap();
                assert_eq!(resolved, text(&top.join("d/file")));
            }
        }
    }
}

#[tokio::test]
async fn a_root_that_was_removed_is_not_an_empty_one() {
    for resolution in BOTH {
        let (_keep, top) = directory();
        let root = top.join("root");
        fs::create_dir(&root).unwrap();
        let backends = [
            in_virtual(&root, resolution),
            in_host(&root, &[], resolution),
        ];
        backends[0].write_file("a", "x").await.unwrap();
        fs::remove_dir_all(&root).unwrap();
        // One that is made anew is another.
        fs::create_dir(&root).unwrap();
        for backend in &backends {
            let gone = ErrorKind::Unavailable;
            let here = backend.working_dir();
            fails(gone, backend.ls(&here, LsOptions::default()).await);
            for path in ["a", "new", "new/b"] {
                fails(gone, backend.write_file(path, "y").await);
                fails(gone, backend.create_dir_all(path).await);
                fails(gone, backend.read_bytes(path).await);
            }
            let pieces = [Ok(bytes::Bytes::from_static(b"y"))];
            let content = Content::Stream(Box::pin(futures::stream::iter(pieces)));
            let path = here.child("b").unwrap();
            fails(
                gone,
                backend.write(&path, content, WriteOptions::default()).await,
            );
            fails(gone, backend.glob(GlobQuery::new("*", here.clone())).await);
            fails(gone, backend.grep(GrepQuery::new("x", here)).await);
        }
    }
}

#[tokio::test]
async fn a_path_outside_is_answered_with_the_directories() {
    let (_keep, top) = directory();
    let [one, two] = ["one", "two"].map(|name| top.join(name));
    for directory in [&one, &two] {
        fs::create_dir(directory).unwrap();
    }
    for resolution in BOTH {
        let backend = in_host(&one, std::slice::from_ref(&two), resolution);
        let error = backend.list_dir("/").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        let readable = format!("; readable: {}, {}", text(&one), text(&two));
        assert!(error.message().ends_with(&readable), "{error}");
    }
}

#[tokio::test]
async fn a_root_that_is_not_utf8_has_no_path_to_show() {
    let (_keep, top) = directory();
    let root = top.join(std::ffi::OsStr::from_bytes(b"\xff"));
    let builder = LocalBackend::builder(&root).create_root(true);
    let backend = builder.clone().open().unwrap();
    backend.write_file("a/b", "x").await.unwrap();
    symlink(root.join("a/b"), root.join("link")).unwrap();
    assert_eq!(backend.read_to_string("link").await.unwrap(), "x");
    let names = NameSpace::Host {
        allowed: Vec::new(),
    };
    fails(ErrorKind::Config, builder.names(names).open());
}

#[tokio::test]
async fn a_link_to_a_name_that_is_not_utf8_is_followed_and_not_shown() {
    for resolution in BOTH {
        let (_keep, root) = directory();
        let raw = std::ffi::OsStr::from_bytes(b"\xff");
        fs::write(root.join(raw), "x").unwrap();
        symlink(raw, root.join("link")).unwrap();
        let backend = in_virtual(&root, resolution);
        assert_eq!(backend.read_to_string("link").await.unwrap(), "x");
        fails(ErrorKind::InvalidPath, resolve(&backend, "link").await);
    }
}
