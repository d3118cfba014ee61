//! Shared by the tests of views: a backend with secrets, and runs as another user.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use backend_core::Sandbox as _;
use backend_core::ops::{Command, ExecuteOutcome, View};
use backend_core::search::Exclude;
use backend_local::{Commands, Confinement, Landlock, LocalBackend, Supervisor};
use tempfile::TempDir;

/// The variable with the supervisor's path in a run as another user, who may
/// not access the one that Cargo built.
const SUPERVISOR: &str = "AGENTBOX_TEST_SUPERVISOR";

/// The content of every denied file. Nothing that a command prints may contain it.
pub(crate) const SECRET: &str = "hunter-2-5c1f";

#[allow(
    clippy::disallowed_methods,
    reason = "how a test tells its second process where to look"
)]
pub(crate) fn supervisor() -> PathBuf {
    let built = || env!("CARGO_BIN_EXE_agentbox-supervisor").into();
    std::env::var_os(SUPERVISOR).map_or_else(built, PathBuf::from)
}

/// Runs the tests of `module` again as an ordinary user, if this process is root.
pub(crate) fn again_as_an_ordinary_user(module: &str) {
    if !rustix::process::getuid().is_root() {
        // This run already is the one without root's rights.
        return;
    }
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = |from: PathBuf, name: &str| -> OsString {
        let to = home.path().join(name);
        fs::copy(from, &to).unwrap();
        to.into()
    };
    let tests = copy(std::env::current_exe().unwrap(), "tests");
    let output = std::process::Command::new(tests)
        .args([module, "--test-threads=2"])
        .env(SUPERVISOR, copy(supervisor(), "supervisor"))
        .env_remove("TMPDIR")
        .current_dir("/")
        // No other processes count against this user's limit.
        .uid(61_235)
        .gid(61_235)
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}");
    assert!(!shown.contains(" 0 passed"), "{shown}");
}

/// A directory with files that are denied and others, a backend on it, and a directory
/// with programs that commands may run.
pub(crate) struct Place {
    pub(crate) backend: LocalBackend,
    pub(crate) inside: PathBuf,
    pub(crate) tools: PathBuf,
    home: TempDir,
}

impl Place {
    pub(crate) fn new(views: bool) -> Self {
        Self::with(Landlock::new().views(views))
    }

    pub(crate) fn with(options: Landlock) -> Self {
        let home = tempfile::tempdir().unwrap();
        let [inside, tools] = ["inside", "tools"].map(|name| {
            let path = home.path().canonicalize().unwrap().join(name);
            fs::create_dir(&path).unwrap();
            path
        });
        lay_out(&inside);
        let confinement = Confinement::Landlock(options.read(&tools).read("/proc"));
        let backend = LocalBackend::builder(&inside)
            .enable_execute(true)
            .commands(
                Commands::new()
                    .supervisor(Supervisor::Program(supervisor()))
                    .confinement(confinement),
            )
            .open()
            .unwrap();
        Self {
            backend,
            inside,
            tools,
            home,
        }
    }

    /// Returns the path of a file outside, of which commands know nothing.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) async fn run(&self, line: &str) -> ExecuteOutcome {
        let command = Command::new(line).view(rules());
        self.backend.execute(command).await.unwrap()
    }

    /// Returns everything that a command in the view prints.
    pub(crate) async fn says(&self, line: &str) -> String {
        let outcome = self.run(line).await;
        outcome.stdout.text() + &outcome.stderr.text()
    }
}

/// Rules of every kind: a name, a directory, a pattern, and a literal path.
pub(crate) fn rules() -> View {
    let read = [".env", "secrets/**", "*.pem", "/conf/only.txt"];
    let write = ["fixed", "/conf/fixed.txt"];
    View::new(Exclude::hide(read).unwrap(), Exclude::hide(write).unwrap())
}

/// Denied files, each for another rule.
pub(crate) const DENIED: &[&str] = &[
    ".env",
    "sub/dir/.env",
    "secrets/key",
    "secrets/more/key",
    "a/b/x.pem",
    "conf/only.txt",
];

/// Creates the files, and links to them.
pub(crate) fn lay_out(inside: &Path) {
    for name in DENIED {
        put(&inside.join(name), SECRET);
    }
    for name in [
        "open.txt",
        "fixed/file",
        "conf/fixed.txt",
        "a/b/open.txt",
        ".git/config",
    ] {
        put(&inside.join(name), "open");
    }
    put(&inside.join(".git/hooks/pre-commit"), "#!/bin/sh\n");
    symlink(".env", inside.join("soft")).unwrap();
    symlink("secrets", inside.join("softdir")).unwrap();
    symlink(inside.join("a/b/x.pem"), inside.join("absolute")).unwrap();
    symlink("sub/dir/../../soft", inside.join("chain")).unwrap();
}

pub(crate) fn put(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}
