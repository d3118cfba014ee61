//! Both ways of resolving a path agree with each other and with the kernel, on
//! trees full of links.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use backend_core::ops::*;
use backend_core::{Backend, ErrorKind, VPath};
use backend_local::{LocalBackend, Resolution};
use futures::executor::block_on;
use proptest::prelude::*;

/// An entry in the tree, at a path of short names.
#[derive(Debug, Clone)]
enum Made {
    File(String),
    Directory(String),
    /// With the text of its target. `@` stands for the root's path.
    Link(String, String),
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec("[abc]", 1..4).prop_map(|names| names.join("/"))
}

fn target() -> impl Strategy<Value = String> {
    let part = prop_oneof![6 => "[abc]", 3 => Just("..".to_owned()), 1 => Just(".".to_owned())];
    let parts = prop::collection::vec(part, 1..6).prop_map(|parts| parts.join("/"));
    let start = prop_oneof![8 => Just(""), 3 => Just("@/"), 1 => Just("/")];
    let end = prop_oneof![5 => Just(""), 1 => Just("/")];
    (start, parts, end).prop_map(|(start, parts, end)| format!("{start}{parts}{end}"))
}

fn made() -> impl Strategy<Value = Made> {
    prop_oneof![
        path().prop_map(Made::File),
        path().prop_map(Made::Directory),
        (path(), target()).prop_map(|(path, target)| Made::Link(path, target)),
        (path(), target()).prop_map(|(path, target)| Made::Link(path, target)),
    ]
}

/// Creates the entry if its names are still free, never through a link.
fn make(root: &Path, made: &Made) {
    let (Made::File(path) | Made::Directory(path) | Made::Link(path, _)) = made;
    let mut here = root.to_owned();
    let names: Vec<_> = path.split('/').collect();
    let (name, above) = names.split_last().unwrap();
    for name in above {
        here.push(name);
        if here.symlink_metadata().is_err() {
            fs::create_dir(&here).unwrap();
        }
        if !here.symlink_metadata().unwrap().is_dir() {
            return;
        }
    }
    here.push(name);
    if here.symlink_metadata().is_ok() {
        return;
    }
    match made {
        Made::File(path) => fs::write(&here, path).unwrap(),
        Made::Directory(_) => fs::create_dir(&here).unwrap(),
        Made::Link(_, target) => {
            let target = target.replace('@', root.to_str().unwrap());
            symlink(target, &here).unwrap();
        }
    }
}

/// Returns the results of all read-only operations on a path.
fn answers(backend: &LocalBackend, path: &VPath) -> Vec<Result<String, ErrorKind>> {
    let shown = |entry: Entry| format!("{:?} {} {:?}", entry.kind, entry.link, entry.size);
    let mut answers = Vec::new();
    for links in [Links::Follow, Links::Refuse] {
        let options = ReadOptions::default().links(links);
        let read = block_on(backend.read(path, options));
        answers.push(
            read.map(|read| format!("{:?}", read.data))
                .map_err(|e| e.kind()),
        );
        let options = StatOptions::default().links(links);
        let found = block_on(backend.stat(path, options));
        answers.push(found.map(shown).map_err(|e| e.kind()));
        let options = LsOptions::default().links(links);
        let listed = block_on(backend.ls(path, options));
        let listed = listed.map(|listing| listing.entries.into_iter().map(shown).collect());
        answers.push(
            listed
                .map(|shown: Vec<_>| shown.join(", "))
                .map_err(|e| e.kind()),
        );
    }
    let resolved = block_on(backend.resolve(path, ResolveOptions::default()));
    answers.push(resolved.map(|path| path.to_string()).map_err(|e| e.kind()));
    answers
}

/// Compares a backend with the kernel's unconfined results.
fn check_against_the_kernel(backend: &LocalBackend, root: &Path, path: &VPath) {
    let host = root.join(path.as_str().trim_start_matches('/'));
    let read = block_on(backend.read(path, ReadOptions::default()));
    match (&read, fs::read(&host)) {
        (Ok(read), Ok(content)) => assert_eq!(read.data, content, "{path}"),
        (Ok(_), Err(error)) => panic!("{path} was read though the kernel says {error}"),
        // Only paths outside are refused.
        (Err(error), Ok(_)) => assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{path}"),
        (Err(_), Err(_)) => {}
    }
    let Ok(real) = host.canonicalize() else {
        return;
    };
    match block_on(backend.resolve(path, ResolveOptions::default())) {
        Ok(resolved) => {
            let resolved = root.join(resolved.as_str().trim_start_matches('/'));
            // Joining an empty path adds a slash, which has no meaning here.
            assert_eq!(resolved.components().as_path(), real, "{path}");
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{path}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn two_ways_one_answer(
        tree in prop::collection::vec(made(), 1..24),
        paths in prop::collection::vec(path(), 1..16),
        written in path(),
    ) {
        let directory = tempfile::Builder::new().prefix("resolution").tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        tree.iter().for_each(|made| make(&root, made));
        let kernel = LocalBackend::builder(&root).open().unwrap();
        let components = LocalBackend::builder(&root).resolution(Resolution::Components);
        let components = components.open().unwrap();
        for path in &paths {
            let path = VPath::parse(path).unwrap();
            prop_assert_eq!(answers(&kernel, &path), answers(&components, &path), "{}", path);
            check_against_the_kernel(&kernel, &root, &path);
        }
        // A write goes to the file that the path resolves to.
        let path = VPath::parse(&written).unwrap();
        let leads = block_on(components.resolve(&path, ResolveOptions::default()));
        let done = block_on(kernel.write(&path, "written".into(), WriteOptions::default()));
        if done.is_ok() {
            let leads = leads.unwrap();
            let content = fs::read(root.join(leads.as_str().trim_start_matches('/'))).unwrap();
            prop_assert_eq!(content, b"written");
        }
    }
}
