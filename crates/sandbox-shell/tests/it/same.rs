//! The portable mode gives the same results as the local backend: on trees too
//! large to be listed at once, and for a user who may not read everything.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backend_core::ops::{GlobOrder, GlobQuery, GrepQuery};
use backend_core::{Backend, BackendExt as _, ErrorKind, VPath};
use backend_local::{LocalBackend, NameSpace};
use sandbox_shell::PortableSandbox;

use crate::support::host_machine::{HostMachine, busybox_path, host_path};

struct Place {
    directory: PathBuf,
    _kept: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let kept = tempfile::Builder::new()
            .prefix("portable")
            .tempdir()
            .unwrap();
        Self {
            directory: kept.path().canonicalize().unwrap(),
            _kept: kept,
        }
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.directory.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn portable(&self, path: String) -> PortableSandbox<HostMachine> {
        PortableSandbox::new(Arc::new(HostMachine::new(&self.directory, path)))
    }

    /// The tools of the host and of busybox, and a machine that counts as distant.
    fn machines(&self) -> [PortableSandbox<HostMachine>; 3] {
        let distant = HostMachine::new(&self.directory, host_path()).distant();
        [
            self.portable(host_path()),
            self.portable(busybox_path()),
            PortableSandbox::new(Arc::new(distant)),
        ]
    }

    fn local(&self) -> LocalBackend {
        let names = NameSpace::Host {
            allowed: Vec::new(),
        };
        LocalBackend::builder(&self.directory)
            .names(names)
            .open()
            .unwrap()
    }

    fn path(&self) -> VPath {
        VPath::parse(self.directory.to_str().unwrap()).unwrap()
    }
}

async fn same(local: &dyn Backend, portable: &dyn Backend, start: &VPath) {
    for pattern in "** *.txt d1*/** **/.hidden/** a/b/* node_modules/** **/build/**".split(' ') {
        for (hidden, ignored, generated, limit) in [
            (false, false, false, 10_000),
            (true, false, false, 7),
            (true, false, false, 10_000),
            (true, false, true, 10_000),
            (false, true, false, 100_000),
        ] {
            for order in [GlobOrder::Path, GlobOrder::NewestFirst]
                .into_iter()
                .take(if pattern == "**" { 2 } else { 1 })
            {
                let query = GlobQuery::new(pattern, start.clone())
                    .hidden(hidden)
                    .ignored(ignored)
                    .generated(generated)
                    .limit(limit)
                    .order(order);
                let one = local.glob(query.clone()).await.unwrap();
                let two = portable.glob(query).await.unwrap();
                assert_eq!(
                    one.files, two.files,
                    "{pattern} {hidden} {ignored} {generated} {limit}"
                );
                assert_eq!(one.truncated, two.truncated);
                if !one.truncated {
                    assert_eq!(
                        one.skipped, two.skipped,
                        "{pattern} {hidden} {ignored} {generated}"
                    );
                }
            }
        }
    }
    for (pattern, most) in [("needle", 10_000), ("needle", 5), ("^only [0-9]+$", 10_000)] {
        let mut query = GrepQuery::new(pattern, start.clone()).ignored(true);
        query.max_matches = most;
        let one = local.grep(query.clone()).await.unwrap();
        let two = portable.grep(query).await.unwrap();
        assert_eq!(one.files, two.files, "{pattern} {most}");
        assert_eq!((one.matches, one.truncated), (two.matches, two.truncated));
        if !one.truncated {
            assert_eq!(one.skipped, two.skipped, "{pattern}");
        }
    }
}

/// A tree whose directories are too many and too full to be listed together.
#[tokio::test]
async fn large_trees_are_searched_alike() {
    let place = Place::new();
    for number in 0..70 {
        place.put(&format!("d{number}/only.txt"), &format!("only {number}\n"));
        place.put(&format!("d{number}/x/y/z.txt"), "needle\n");
    }
    for number in 0..600 {
        place.put(
            &format!("d17/full/file number {number} with a long name.txt"),
            "",
        );
        place.put(&format!("d17/full/more/{number}"), "");
    }
    place.put("d17/full/zz/needle", "needle needle\n");
    place.put("a/b/c/d/e", "needle\n");
    place.put("node_modules/m/index.txt", "needle\n");
    place.put("a/.hidden/x.txt", "needle\n");
    place.put(".gitignore", "d3*\n");
    place.put("d4/.gitignore", "*.txt\n!only.txt\n");
    place.put("d5/.ignore", "y/\n");
    place.put(
        "large.txt",
        &format!("{}needle\n", "nothing here\n".repeat(200_000)),
    );
    place.put("binary", "needle\0needle\n");
    let local = place.local();
    for portable in place.machines() {
        same(&local, &portable, &place.path()).await;
    }
}

/// Without an ignore file generated directories are left out, and they are not
/// empty if they are requested.
#[tokio::test]
async fn generated_directories_are_searched_alike() {
    let place = Place::new();
    let paths = "a/b/c node_modules/m/index.txt node_modules/m/dist/index.txt a/build/x/y.txt \
        a/build/venv/z a/target .venv/lib/x.txt own/.gitignore own/build/x.txt";
    for path in paths.split(' ') {
        let text = if path.ends_with(".gitignore") {
            "*.log\n"
        } else {
            "needle\n"
        };
        place.put(path, text);
    }
    let local = place.local();
    for portable in place.machines() {
        same(&local, &portable, &place.path()).await;
        let query = GlobQuery::new("**", place.path()).hidden(true);
        let found = portable.glob(query).await.unwrap();
        assert_eq!((found.files.len(), found.skipped.generated), (4, 3));
    }
}

/// Operations without permission are denied and counted, and do not fail a
/// search.
#[tokio::test]
async fn what_is_not_permitted_is_denied() {
    let place = Place::new();
    place.put("open/file", "needle\n");
    place.put("closed/file", "needle\n");
    place.put("unlisted/file", "needle\n");
    place.put("secret", "needle\n");
    let set = |path: &str, bits| {
        std::fs::set_permissions(place.directory.join(path), Permissions::from_mode(bits)).unwrap();
    };
    set("", 0o755);
    set("closed", 0o700);
    set("unlisted", 0o711);
    set("secret", 0o600);
    // Only root can become another user.
    if std::fs::metadata("/proc/self")
        .map(|own| std::os::unix::fs::MetadataExt::uid(&own))
        .ok()
        != Some(0)
    {
        return;
    }
    for path in [host_path(), busybox_path()] {
        if !usable(&path) {
            continue;
        }
        let machine = HostMachine::new(&place.directory, path).user(65_534);
        let sandbox = PortableSandbox::new(Arc::new(machine));
        let denied = |error: backend_core::Error| {
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
        };
        denied(sandbox.read_bytes("secret").await.unwrap_err());
        denied(sandbox.read_bytes("closed/file").await.unwrap_err());
        denied(sandbox.metadata("closed/missing/deeper").await.unwrap_err());
        denied(sandbox.list_dir("unlisted").await.unwrap_err());
        denied(sandbox.write_file("new", "x").await.unwrap_err());
        denied(sandbox.write_file("open/file", "x").await.unwrap_err());
        denied(sandbox.delete_file("open/file").await.unwrap_err());
        denied(sandbox.move_to("secret", "moved").await.unwrap_err());
        denied(sandbox.delete_tree("open").await.unwrap_err());
        assert_eq!(
            sandbox.read_to_string("unlisted/file").await.unwrap(),
            "needle\n"
        );
        let found = sandbox.search_text("needle").await.unwrap();
        assert_eq!((found.matches, found.skipped.unreadable), (1, 3));
        let found = sandbox.find_files("**").await.unwrap();
        assert_eq!((found.files.len(), found.skipped.unreadable), (2, 2));
    }
}

/// Whether other users may use the tools in a directory.
fn usable(path: &str) -> bool {
    let first = Path::new(path.split(':').next().unwrap_or(path));
    first.ancestors().all(|above| {
        let bits = std::fs::metadata(above).map(|found| found.permissions().mode());
        bits.is_ok_and(|bits| bits & 0o005 == 0o005)
    })
}
