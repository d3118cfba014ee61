//! Swaps a link between an allowed and a denied file as fast as the kernel can, while
//! guarded calls go through it. The denied file is never read and never changed. A
//! naive reader that checks the path before a plain open does get the denied content,
//! which shows that the race is real.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use backend_core::ops::{CopyOptions, GrepQuery};
use backend_core::{Backend, BackendExt as _, Error, ErrorKind};
use backend_local::LocalBackend;
use futures::executor::block_on;
use permissions::Guarded;

use crate::support::scene::{path, policy};

const SECRET: &str = "the denied content\n";
const PLAIN: &str = "the allowed content\n";
/// The maximum number of attempts of the naive reader to lose the race.
const NAIVE_ATTEMPTS: usize = 2_000_000;

const OPERATIONS: usize = 24_000;
const KINDS: usize = 8;

/// Denies all access to `/deny`, under any name.
const RULES: &str = r#"{ "default": "allow",
    "read":  {"rules": [{"pattern": "/deny/**", "action": "deny"}]},
    "write": {"rules": [{"pattern": "/deny/**", "action": "deny"}]},
    "edit":  {"rules": [{"pattern": "/deny/**", "action": "deny"}]},
    "delete":{"rules": [{"pattern": "/deny/**", "action": "deny"}]} }"#;

struct Race {
    guarded: Guarded<LocalBackend>,
    done: AtomicBool,
    begun: AtomicUsize,
    succeeded: [AtomicUsize; KINDS],
    refused: AtomicUsize,
    naive: AtomicUsize,
}

/// Atomically replaces a link.
fn point(root: &Path, name: &str, target: &str) {
    let fresh = root.join(format!(".fresh-{name}"));
    symlink(target, &fresh).unwrap();
    fs::rename(&fresh, root.join(name)).unwrap();
}

/// Atomically replaces whatever exists at `name` with a file.
fn put_file(root: &Path, name: &str) {
    let fresh = root.join(format!(".fresh-{name}"));
    fs::write(&fresh, PLAIN).unwrap();
    fs::rename(&fresh, root.join(name)).unwrap();
}

impl Race {
    fn swap(&self, root: &Path) {
        let mut turn = 0_u64;
        while !self.done.load(Ordering::Relaxed) {
            let side = ["allow", "deny"][(turn % 2) as usize];
            point(root, "file", &format!("{side}/f"));
            point(root, "dir", side);
            match side {
                "allow" => put_file(root, "either"),
                _ => point(root, "either", "deny/f"),
            }
            turn += 1;
            for _ in 0..(turn * 37) % 700 {
                std::hint::spin_loop();
            }
        }
    }

    fn work(&self, root: &Path) {
        loop {
            let number = self.begun.fetch_add(1, Ordering::Relaxed);
            if number >= OPERATIONS {
                return;
            }
            let kind = number % KINDS;
            match block_on(self.one(kind, number)) {
                Ok(seen) => {
                    assert!(!seen.contains(SECRET.trim()), "{kind} saw {seen}");
                    self.succeeded[kind].fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => self.failed(kind, &error),
            }
            self.check_then_open(root);
        }
    }

    fn failed(&self, kind: usize, error: &Error) {
        let text = format!("{error:?}");
        assert!(!text.contains("/deny"), "{kind} names it: {text}");
        assert!(!text.contains(SECRET.trim()), "{kind} tells it: {text}");
        let expected = [
            ErrorKind::PermissionDenied,
            ErrorKind::Conflict,
            ErrorKind::NotFound,
            ErrorKind::IsALink,
        ];
        assert!(expected.contains(&error.kind()), "{kind}: {text}");
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    async fn one(&self, kind: usize, number: usize) -> Result<String, Error> {
        let guarded = &self.guarded;
        let name = ["/file", "/dir/f", "/either"][number / KINDS % 3];
        match kind {
            0 | 1 => guarded.read_to_string(name).await,
            2 => {
                let written = guarded.write_file(name, PLAIN).await?;
                Ok(format!("{written:?}"))
            }
            3 => {
                let edited = guarded.replace_text(name, "content", "content").await;
                match edited {
                    // The text was found. The error only says that the edit changes
                    // nothing.
                    Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(error.to_string()),
                    edited => edited.map(|edited| format!("{edited:?}")),
                }
            }
            4 => {
                let to = format!("/copies/{number}");
                let options = CopyOptions::default().overwrite(true);
                guarded.copy(&path("/dir/f"), &path(&to), options).await?;
                // Read around the guard, to see what was really copied.
                guarded.unguarded().read_to_string(&to).await
            }
            5 => {
                let found = guarded.grep(GrepQuery::new(".", path(name))).await?;
                let lines = found.files.iter().flat_map(|file| file.lines());
                Ok(lines.map(|line| line.text().into_owned()).collect())
            }
            6 => {
                let found = guarded.grep(GrepQuery::new(".", path("/dir"))).await?;
                let lines = found.files.iter().flat_map(|file| file.lines());
                Ok(lines.map(|line| line.text().into_owned()).collect())
            }
            _ => {
                let edited = guarded.replace_text(name, "allowed", "allowed!").await?;
                let back = guarded.replace_text(name, "allowed!", "allowed").await;
                Ok(format!("{edited:?} {:?}", back.is_ok()))
            }
        }
    }

    /// The obvious but racy approach: check where the link leads, then open it.
    fn check_then_open(&self, root: &Path) {
        let link = root.join("file");
        let leads_to = fs::read_link(&link).unwrap();
        if leads_to.starts_with("deny") {
            return;
        }
        if fs::read_to_string(&link).is_ok_and(|content| content == SECRET) {
            self.naive.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_swapped_link_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    for (side, content) in [("allow", PLAIN), ("deny", SECRET)] {
        fs::create_dir(root.join(side)).unwrap();
        fs::write(root.join(side).join("f"), content).unwrap();
    }
    fs::create_dir(root.join("copies")).unwrap();
    point(&root, "file", "allow/f");
    point(&root, "dir", "allow");
    put_file(&root, "either");
    let backend = LocalBackend::builder(&root).open().unwrap();
    let race = Race {
        guarded: Guarded::builder(backend).policy(policy(RULES)).build(),
        done: AtomicBool::new(false),
        begun: AtomicUsize::new(0),
        succeeded: Default::default(),
        refused: AtomicUsize::new(0),
        naive: AtomicUsize::new(0),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| race.swap(&root));
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(|| race.work(&root))).collect();
        let ended: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        // On a busy machine it may take longer until the naive reader loses.
        for _ in 0..NAIVE_ATTEMPTS {
            if race.naive.load(Ordering::Relaxed) > 0 {
                break;
            }
            race.check_then_open(&root);
        }
        race.done.store(true, Ordering::Relaxed);
        assert!(
            ended.iter().all(Result::is_ok),
            "a worker saw what it must not"
        );
    });
    let denied = fs::read_to_string(root.join("deny/f")).unwrap();
    assert_eq!(denied, SECRET, "the denied file was changed");
    let names = fs::read_dir(root.join("deny")).unwrap().count();
    assert_eq!(names, 1, "something arrived in the denied directory");
    for (kind, count) in race.succeeded.iter().enumerate() {
        assert!(count.load(Ordering::Relaxed) > 0, "{kind} never succeeded");
    }
    assert!(
        race.refused.load(Ordering::Relaxed) > 0,
        "nothing was refused"
    );
    assert!(race.naive.load(Ordering::Relaxed) > 0, "there was no race");
}
