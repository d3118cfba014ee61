//! The race: a thread that swaps, workers, and counters.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use backend_core::ops::{
    ContentHash, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, GlobQuery, GrepQuery,
    Links, LsOptions, ReadOptions, RenameOptions, ResolveOptions, StatOptions, TextOptions,
    WriteMode, WriteOptions,
};
use backend_core::text::Edit;
use backend_core::{Backend, BackendExt as _, Error, ErrorKind, VPath};
use backend_local::{LocalBackend, NameSpace, Resolution};
use futures::executor::block_on;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::canary::{Canary, ONLY, TOKEN};
use super::place::said;

/// One test at a time: each needs both cores.
static TURN: Mutex<()> = Mutex::new(());

/// The files in the root and, with other content, in the canary.
const NAMES: &[&str] = &["file", "sub/deep/x", "q/dir/file", "q/dir/sub/deep/x"];

/// The pairs that are swapped. [`WAYS`] are the two paths to a directory that
/// lead through them.
const SWAPS: &[(&str, &str)] = &[
    ("dir", ".dir-link"),
    ("p", ".p-link"),
    ("f", ".f-link"),
    ("copied/v", "copied/.v-link"),
    ("deleted/v", "deleted/.v-link"),
];
const WAYS: &[&str] = &["dir", "p/q/dir"];

struct Race {
    backend: LocalBackend,
    root: PathBuf,
    begun: AtomicUsize,
    done: AtomicBool,
    /// Per operation: how often it succeeded, was refused, or failed otherwise.
    counts: Mutex<BTreeMap<&'static str, [usize; 3]>>,
    /// Held while a tree created for that purpose is deleted.
    deleting: futures::lock::Mutex<()>,
    /// The number of times a plain read by path got the canary's content.
    naive_leaks: AtomicUsize,
}

/// Runs `operations` operations through swapped paths, on a fresh root.
pub(crate) fn run(operations: usize, names: NameSpace, resolution: Resolution) {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let place = tempfile::tempdir().unwrap();
    let canary = Canary::make(&place.path().join("outside"), NAMES);
    let root = place.path().join("root");
    lay_out(&root, &canary.path);
    let opened = LocalBackend::builder(&root)
        .names(names)
        .resolution(resolution)
        .open();
    let race = Race {
        backend: opened.unwrap(),
        root,
        begun: AtomicUsize::new(0),
        done: AtomicBool::new(false),
        counts: Mutex::default(),
        deleting: futures::lock::Mutex::default(),
        naive_leaks: AtomicUsize::new(0),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| race.swap(&canary.path));
        let workers: Vec<_> = (0..3)
            .map(|seed| {
                let race = &race;
                scope.spawn(move || race.work(seed, operations))
            })
            .collect();
        let ended: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        race.done.store(true, Ordering::Relaxed);
        assert!(
            ended.iter().all(Result::is_ok),
            "a worker saw what it must not"
        );
    });
    canary.check();
    race.check();
}

fn lay_out(root: &Path, outside: &Path) {
    for directory in ["dir", "p", "stable"] {
        for name in NAMES {
            let file = root.join(directory).join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "inside\n").unwrap();
        }
    }
    fs::write(root.join("f"), "inside\n").unwrap();
    hold_a_swap(&root.join("copied"), outside).unwrap();
    symlink(outside, root.join(".dir-link")).unwrap();
    symlink("../outside", root.join(".p-link")).unwrap();
    symlink(outside.join("file"), root.join(".f-link")).unwrap();
}

/// Creates a directory that contains one that is swapped.
fn hold_a_swap(directory: &Path, outside: &Path) -> std::io::Result<()> {
    fs::create_dir_all(directory.join("v/sub/deep"))?;
    for name in ["file", "sub/deep/x"] {
        fs::write(directory.join("v").join(name), "inside\n")?;
    }
    symlink(outside, directory.join(".v-link"))
}

impl Race {
    /// Swaps entries for links and back until the work is done.
    fn swap(&self, outside: &Path) {
        let mut random = fastrand::Rng::with_seed(7);
        while !self.done.load(Ordering::Relaxed) {
            let (one, other) = SWAPS[random.usize(..SWAPS.len())];
            let (one, other) = (self.root.join(one), self.root.join(other));
            // A write may just have put a file in the link's place.
            let _ = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
            if one.ends_with("f") && !one.is_symlink() && !other.is_symlink() {
                let _ = fs::remove_file(&other);
                let _ = symlink(outside.join("file"), &other);
            }
            for _ in 0..random.usize(..2_000) {
                std::hint::spin_loop();
            }
        }
    }

    fn work(&self, seed: u64, operations: usize) {
        let mut random = fastrand::Rng::with_seed(seed);
        while self.begun.fetch_add(1, Ordering::Relaxed) < operations {
            let way = WAYS[random.usize(..WAYS.len())];
            // Two out of three are cheap, so that there can be many.
            let kinds = [OPERATIONS, CHEAP, CHEAP][random.usize(..3)];
            let (name, answer) = block_on(self.one(random.usize(..kinds), way));
            self.note(name, answer);
            if random.u8(..) < 16 {
                let naive = fs::read_to_string(self.root.join(way).join("file"));
                let leaked = naive.is_ok_and(|content| content.contains(TOKEN));
                self.naive_leaks
                    .fetch_add(usize::from(leaked), Ordering::Relaxed);
            }
        }
    }

    /// Checks a result for anything from outside and counts it.
    fn note(&self, operation: &'static str, answer: Result<String, Error>) {
        let (kind, text) = match &answer {
            Ok(text) => (None, text.clone()),
            Err(error) => (Some(error.kind()), format!("{} {error:?}", error.chain())),
        };
        assert!(
            !text.contains(TOKEN),
            "{operation} told content from outside: {text}"
        );
        assert!(
            !text.contains(ONLY),
            "{operation} told a name from outside: {text}"
        );
        let column = match kind {
            None => 0,
            Some(ErrorKind::PermissionDenied | ErrorKind::IsALink) => 1,
            Some(ErrorKind::Internal) => panic!("{operation}: {text}"),
            Some(_) => 2,
        };
        let mut counts = self.counts.lock().unwrap();
        counts.entry(operation).or_default()[column] += 1;
    }

    fn check(&self) {
        let counts = self.counts.lock().unwrap();
        let table = format!("{:#?}", *counts);
        assert_eq!(counts.len(), OPERATIONS, "{table}");
        for (operation, [good, refused, _]) in counts.iter() {
            // An edit of the canary's text can never succeed.
            let possible = !operation.starts_with("steal");
            assert!(
                *good > 0 || !possible,
                "{operation} never succeeded: {table}"
            );
            assert!(*good == 0 || possible, "{operation} succeeded: {table}");
            // Walks meet links only beneath their start, and follow none.
            let walks = ["root", "around", "itself"];
            let can_be_refused = !walks.iter().any(|walk| operation.ends_with(walk));
            assert!(
                *refused > 0 || !can_be_refused,
                "{operation} never met a link: {table}"
            );
        }
        assert!(
            self.naive_leaks.load(Ordering::Relaxed) > 0,
            "nothing was swapped"
        );
    }
}

/// The number of operations that [`Race::one`] knows, and how many of them are
/// cheap.
const OPERATIONS: usize = 32;
const CHEAP: usize = 6;

impl Race {
    fn path(&self, way: &str, name: &str) -> VPath {
        self.backend.path(format!("{way}/{name}")).unwrap()
    }

    async fn one(&self, number: usize, way: &str) -> (&'static str, Result<String, Error>) {
        match number {
            0..10 => self.reading(number, way).await,
            10..18 => self.writing(number, way).await,
            28.. => self.walking(number).await,
            _ => self.moving(number, way).await,
        }
    }

    async fn reading(&self, number: usize, way: &str) -> (&'static str, Result<String, Error>) {
        let backend = &self.backend;
        let file = self.path(way, "file");
        let here = self.path(way, ".");
        let root = backend.working_dir();
        let refuse = ReadOptions::default().links(Links::Refuse);
        match number {
            0 => (
                "read",
                content(backend.read(&file, ReadOptions::default()).await),
            ),
            1 => ("read refusing", content(backend.read(&file, refuse).await)),
            2 => {
                let text = backend.read_text(&file, TextOptions::default()).await;
                ("read_text", said(text))
            }
            3 => (
                "stat",
                said(backend.stat(&file, StatOptions::default()).await),
            ),
            4 => ("ls", said(backend.ls(&here, LsOptions::default()).await)),
            5 => {
                let resolved = backend.resolve(&file, ResolveOptions::default()).await;
                ("resolve", said(resolved))
            }
            6 => ("glob", said(backend.glob(GlobQuery::new("**", here)).await)),
            7 => ("grep", hits(backend.grep(GrepQuery::new(".", here)).await)),
            8 => (
                "glob the root",
                said(backend.glob(GlobQuery::new("**", root)).await),
            ),
            _ => (
                "grep the root",
                hits(backend.grep(GrepQuery::new(".", root)).await),
            ),
        }
    }

    async fn writing(&self, number: usize, way: &str) -> (&'static str, Result<String, Error>) {
        let backend = &self.backend;
        let (file, new) = (self.path(way, "file"), self.path(way, "new"));
        let f = self.path(".", "f");
        let options = WriteOptions::default();
        let hash = ContentHash::of(format!("{TOKEN} in file\n").as_bytes());
        let theirs = options.mode(WriteMode::IfUnchanged(hash));
        let ours = options.mode(WriteMode::IfUnchanged(ContentHash::of(b"inside\n")));
        match number {
            10 => (
                "write",
                said(backend.write(&file, "inside\n".into(), options).await),
            ),
            11 => {
                let options = options.mode(WriteMode::CreateNew);
                (
                    "create",
                    said(backend.write(&new, "inside\n".into(), options).await),
                )
            }
            12 => (
                "write unchanged",
                said(backend.write(&file, "inside\n".into(), ours).await),
            ),
            13 => (
                "steal by hash",
                said(backend.write(&file, "inside\n".into(), theirs).await),
            ),
            14 => {
                let edits = [
                    Edit::new("inside", "swapped"),
                    Edit::new("swapped", "inside!"),
                ];
                let edited = backend.edit(&file, &edits, EditOptions::default()).await;
                let _ = backend.write(&file, "inside\n".into(), options).await;
                ("edit", said(edited))
            }
            15 => {
                let edits = [Edit::new(&TOKEN[..8], "stolen")];
                (
                    "steal by edit",
                    said(backend.edit(&file, &edits, EditOptions::default()).await),
                )
            }
            16 => (
                "read a file",
                content(backend.read(&f, ReadOptions::default()).await),
            ),
            _ => (
                "write a file",
                said(backend.write(&f, "inside\n".into(), options).await),
            ),
        }
    }

    async fn moving(&self, number: usize, way: &str) -> (&'static str, Result<String, Error>) {
        let backend = &self.backend;
        let (file, new) = (self.path(way, "file"), self.path(way, "new"));
        // No other worker uses this name.
        let own = self.path("stable", &format!("own{}", fastrand::u64(..)));
        let tree = DeleteOptions::default().recursive(true);
        let rename = RenameOptions::default().overwrite(true);
        let copy = CopyOptions::default().overwrite(true);
        match number {
            18 => {
                let made = self.path(way, "made/deep");
                let made = backend.create_dir(&made, CreateDirOptions::default()).await;
                ("create_dir", said(made))
            }
            19 => (
                "delete tree",
                said(backend.delete(&self.path(way, "made"), tree).await),
            ),
            20 => (
                "delete",
                said(backend.delete(&new, DeleteOptions::default()).await),
            ),
            21 => (
                "rename within",
                said(backend.rename(&new, &self.path(way, "moved"), rename).await),
            ),
            22 => {
                let filled = backend
                    .write(&own, "inside\n".into(), WriteOptions::default())
                    .await;
                filled.unwrap();
                let moved = backend.rename(&own, &new, rename).await;
                let _ = backend.delete(&own, DeleteOptions::default()).await;
                ("rename into", said(moved))
            }
            23 => {
                let moved = backend.rename(&file, &own, rename).await;
                let _ = backend
                    .write(&file, "inside\n".into(), WriteOptions::default())
                    .await;
                ("rename out of", self.arrived(moved, &own, "").await)
            }
            24 => {
                let copied = backend.copy(&file, &own, copy).await;
                ("copy out of", self.arrived(copied, &own, "").await)
            }
            25 => {
                let from = self.path("stable", "file");
                ("copy into", said(backend.copy(&from, &new, copy).await))
            }
            26 => {
                let (from, copy) = (self.path(way, "sub"), copy.recursive(true));
                let copied = backend.copy(&from, &own, copy).await;
                ("copy a tree", self.arrived(copied, &own, "deep/x").await)
            }
            _ => {
                let copied = backend.copy(&self.path(".", "f"), &own, copy).await;
                ("copy a file", self.arrived(copied, &own, "").await)
            }
        }
    }

    /// Walks over a tree in which a directory is swapped.
    async fn walking(&self, number: usize) -> (&'static str, Result<String, Error>) {
        let backend = &self.backend;
        let own = self.path("stable", &format!("own{}", fastrand::u64(..)));
        let copy = CopyOptions::default().recursive(true);
        let tree = DeleteOptions::default().recursive(true);
        match number {
            28 => {
                let copied = backend.copy(&self.path("copied", "."), &own, copy).await;
                ("copy a tree around", self.all_ours(copied, &own).await)
            }
            29 => {
                let copied = backend.copy(&self.path("copied", "v"), &own, copy).await;
                ("copy itself", self.all_ours(copied, &own).await)
            }
            _ => {
                // One at a time, because the tree is created anew each time.
                let _turn = self.deleting.lock().await;
                let place = self.root.join("deleted");
                let outside = self.root.parent().unwrap().join("outside");
                // Created where nothing is swapped, because this must not
                // follow a link itself.
                let making = self.root.join(".making");
                hold_a_swap(&making, &outside).unwrap();
                while fs::rename(&making, &place).is_err() {
                    let _ = fs::remove_dir_all(&place);
                }
                let (name, path) = match number {
                    30 => ("delete a tree around", self.path("deleted", ".")),
                    _ => ("delete itself", self.path("deleted", "v")),
                };
                (name, said(backend.delete(&path, tree).await))
            }
        }
    }

    /// Returns everything in a copied tree. Links are not followed.
    async fn all_ours(&self, copied: Result<(), Error>, own: &VPath) -> Result<String, Error> {
        let path = self.root.join("stable").join(own.file_name().unwrap());
        let told = match path.symlink_metadata() {
            Ok(_) => format!("{:?}", super::snapshot::snapshot(&path)),
            Err(_) => String::new(),
        };
        let tree = DeleteOptions::default().recursive(true);
        let _ = self.backend.delete(own, tree).await;
        // A copy that failed half-way must not have copied the outside either.
        assert!(
            !told.contains(TOKEN) && !told.contains(ONLY),
            "copied: {told}"
        );
        copied.map(|()| told)
    }

    /// Entries moved out of the swapped directory must be ours. A link that was
    /// moved as a link leads nowhere readable.
    async fn arrived(
        &self,
        moved: Result<(), Error>,
        own: &VPath,
        name: &str,
    ) -> Result<String, Error> {
        moved?;
        let path = self.root.join("stable").join(own.file_name().unwrap());
        let answer = if path.is_symlink() {
            content(self.backend.read(own, ReadOptions::default()).await)
        } else if name.is_empty() {
            Ok(fs::read_to_string(&path).unwrap())
        } else {
            // Another worker may have taken the tree's file.
            Ok(fs::read_to_string(path.join(name)).unwrap_or_default())
        };
        let tree = DeleteOptions::default().recursive(true);
        self.backend.delete(own, tree).await.unwrap();
        answer
    }
}

fn content(read: Result<backend_core::ops::FileBytes, Error>) -> Result<String, Error> {
    read.map(|read| String::from_utf8_lossy(&read.data).into_owned())
}

fn hits(found: Result<backend_core::ops::GrepResult, Error>) -> Result<String, Error> {
    let found = found?;
    let mut text = String::new();
    for file in &found.files {
        text += file.path.as_str();
        text.extend(file.lines().map(|line| line.text().into_owned()));
    }
    Ok(text)
}
