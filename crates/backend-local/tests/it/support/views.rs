//! Shared by the tests of views: a backend with secrets, and runs as another user.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use backend_core::ops::{Command, ExecuteOutcome, ShellId, ShellState, TerminalSize, View};
use backend_core::search::Exclude;
use backend_core::{Backend as _, Enforcement, Sandbox as _};
use backend_local::{Commands, Confinement, Landlock, LocalBackend, Supervisor};
use bytes::Bytes;
use tempfile::TempDir;

use crate::support::commands::PATIENCE;

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

/// The variable that tells a test that it runs again, in another surrounding.
const AGAIN: &str = "AGENTBOX_TEST_AGAIN";

/// Whether this is a run of one test [again](run_again).
#[allow(
    clippy::disallowed_methods,
    reason = "how a test tells its second process what it is"
)]
pub(crate) fn is_again() -> bool {
    std::env::var_os(AGAIN).is_some()
}

/// Runs one test again, by a program that is given this one and its arguments.
pub(crate) fn run_again(mut by: std::process::Command, test: &str) {
    let output = by
        .args([test, "--exact", "--test-threads=1", "--nocapture"])
        .env(AGAIN, "1")
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains(" 1 passed"), "{shown}");
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
    options: Landlock,
    home: TempDir,
}

fn open(inside: &Path, options: Landlock) -> LocalBackend {
    let commands = Commands::new()
        .supervisor(Supervisor::Program(supervisor()))
        .confinement(Confinement::Landlock(options));
    LocalBackend::builder(inside)
        .enable_execute(true)
        .commands(commands)
        .open()
        .unwrap()
}

impl Place {
    pub(crate) fn new(views: bool) -> Self {
        Self::with(Landlock::new().views(views))
    }

    /// Returns a place with views, or `None` if the system refuses mounts. Where it
    /// does not, a backend without views fails the test.
    pub(crate) fn viewed() -> Option<Self> {
        Self::viewed_with(Landlock::new())
    }

    pub(crate) fn viewed_with(options: Landlock) -> Option<Self> {
        if let Some(cause) = backend_testkit::processes::mounts_refused() {
            println!("skipped: the system lets no view be mounted: {cause}");
            return None;
        }
        let place = Self::with(options.views(true));
        let info = place.backend.info();
        assert_eq!(info.enforcement, Enforcement::View, "{info:?}");
        Some(place)
    }

    pub(crate) fn with(options: Landlock) -> Self {
        let home = tempfile::tempdir().unwrap();
        let [inside, tools] = ["inside", "tools"].map(|name| {
            let path = home.path().canonicalize().unwrap().join(name);
            fs::create_dir(&path).unwrap();
            path
        });
        lay_out(&inside);
        let options = options.read(&tools).read("/proc");
        Self {
            backend: open(&inside, options.clone()),
            options,
            inside,
            tools,
            home,
        }
    }

    /// Returns the path of a file outside, of which commands know nothing.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Opens the directory again, as a program does that starts: no view is kept.
    pub(crate) fn reopen(&mut self) {
        self.backend = open(&self.inside, self.options.clone());
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

/// A shell that runs the lines that it is sent.
pub(crate) struct Shell<'a>(&'a Place, ShellId);

impl<'a> Shell<'a> {
    pub(crate) async fn start(place: &'a Place, terminal: Option<TerminalSize>) -> Self {
        Self::start_with(place, rules(), terminal).await
    }

    pub(crate) async fn start_with(
        place: &'a Place,
        view: View,
        terminal: Option<TerminalSize>,
    ) -> Self {
        let line = "while read line; do eval \"$line\" 2>&1; echo end$((1)); done";
        let command = Command::new(line).view(view).terminal(terminal);
        Self(place, place.backend.shell_start(command).await.unwrap().id)
    }

    /// Runs a line, and returns what it prints.
    pub(crate) async fn says(&self, line: &str) -> String {
        self.tell(line).await;
        self.said().await
    }

    /// Waits until the line that it was told has ended, or it itself has, and returns what
    /// it has printed since.
    pub(crate) async fn said(&self) -> String {
        let mut said = String::new();
        while !said.contains("end1") {
            let output = self.0.backend.shell_read(&self.1, PATIENCE).await.unwrap();
            said += &String::from_utf8_lossy(&output.stdout);
            if output.state != ShellState::Running {
                break;
            }
        }
        said
    }

    pub(crate) async fn tell(&self, line: &str) {
        let input = Bytes::from(format!("{line}\n"));
        let written = self.0.backend.shell_write(&self.1, Some(input)).await;
        written.unwrap();
    }

    /// Waits until it has ended, and returns what it has printed since.
    pub(crate) async fn ended(&self) -> String {
        let mut said = String::new();
        loop {
            let output = self.0.backend.shell_read(&self.1, PATIENCE).await.unwrap();
            said += &String::from_utf8_lossy(&output.stdout);
            if output.state != ShellState::Running {
                return said;
            }
        }
    }
}

pub(crate) fn hide(patterns: &[&str]) -> Exclude {
    Exclude::hide(patterns.iter().copied()).unwrap()
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
