//! Confined commands through the contract: they can access the same files as
//! the backend's file operations, and no more. Needs Linux 6.12 or newer and
//! fails elsewhere.

use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use backend_core::ops::{
    Command, CommandStatus, CreateDirOptions, DeleteOptions, ExecuteOutcome, LsOptions,
    ReadOptions, RenameOptions, WriteOptions,
};
use backend_core::{Backend, ErrorKind, Sandbox};
use backend_local::{Commands, Confinement, Landlock, Limits, LocalBackend, NameSpace, Supervisor};
use backend_testkit::{fails, path};
use tempfile::TempDir;

/// The variable with the supervisor's path in a run as another user, who may
/// not access the one that Cargo built.
const SUPERVISOR: &str = "AGENTBOX_TEST_SUPERVISOR";

#[allow(
    clippy::disallowed_methods,
    reason = "how a test tells its second process where to look"
)]
fn supervisor() -> PathBuf {
    let built = || env!("CARGO_BIN_EXE_agentbox-supervisor").into();
    std::env::var_os(SUPERVISOR).map_or_else(built, PathBuf::from)
}

/// A backend on `inside` with host names, a directory `outside`, and one with
/// programs that commands may run.
struct Place {
    backend: LocalBackend,
    inside: PathBuf,
    outside: PathBuf,
    tools: PathBuf,
    _home: TempDir,
}

impl Place {
    fn new(read_only: bool, options: Landlock, limits: Limits) -> Self {
        let home = tempfile::tempdir().unwrap();
        let [inside, outside, tools] = ["inside", "outside", "tools"].map(|name| {
            let path = home.path().canonicalize().unwrap().join(name);
            fs::create_dir(&path).unwrap();
            path
        });
        let confinement = Confinement::Landlock(options.read(&tools));
        let backend = LocalBackend::builder(&inside)
            .names(NameSpace::Host {
                allowed: Vec::new(),
            })
            .read_only(read_only)
            .enable_execute(true)
            .commands(
                Commands::new()
                    .supervisor(Supervisor::Program(supervisor()))
                    .confinement(confinement)
                    .limits(limits),
            )
            .open()
            .unwrap();
        Self {
            backend,
            inside,
            outside,
            tools,
            _home: home,
        }
    }

    fn confined() -> Self {
        Self::new(false, Landlock::new(), Limits::default())
    }

    async fn run(&self, line: &str) -> ExecuteOutcome {
        self.backend.execute(Command::new(line)).await.unwrap()
    }

    /// Restores all files. The directories themselves stay.
    fn refill(&self, place: &Path) {
        for directory in [&self.inside, &self.outside] {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            }
        }
        fs::create_dir_all(place.join("empty")).unwrap();
        fs::write(place.join("file"), "content").unwrap();
        fs::write(self.inside.join("own"), "own").unwrap();
        symlink(place.join("file"), self.inside.join("link")).unwrap();
    }

    /// Returns the command lines of the programs that try.
    fn actors(&self) -> [(&'static str, String); 3] {
        let put = |name: &str, text: &str| {
            let path = self.tools.join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let testdata = [
            include_str!("../../src/supervisor/confine/testdata/actor.sh"),
            include_str!("../../src/supervisor/confine/testdata/actor.py"),
            include_str!("../../src/supervisor/confine/testdata/actor.c"),
        ];
        let sh = put("actor.sh", testdata[0]);
        let python = put("actor.py", testdata[1]);
        let source = put("actor.c", testdata[2]);
        let program = self.tools.join("actor");
        let made = std::process::Command::new("cc")
            .arg("-o")
            .arg(&program)
            .arg(source)
            .status()
            .expect("these tests need a C compiler, as Rust does to link: install `cc`");
        assert!(made.success());
        [
            ("sh", format!("sh {sh}")),
            ("python", format!("/usr/bin/python3 -B {python}")),
            ("compiled", program.display().to_string()),
        ]
    }
}

/// Whether the backend's own operation succeeds.
async fn by_the_backend(backend: &LocalBackend, operation: &str, a: &str, b: &str) -> bool {
    let a = &path(a);
    match operation {
        "read" => backend.read(a, ReadOptions::default()).await.is_ok(),
        "create" => {
            let written = backend.write(a, "x".into(), WriteOptions::default());
            written.await.is_ok()
        }
        "remove" => backend.delete(a, DeleteOptions::default()).await.is_ok(),
        "mkdir" => {
            let made = backend.create_dir(a, CreateDirOptions::default());
            made.await.is_ok()
        }
        "list" => backend.ls(a, LsOptions::default()).await.is_ok(),
        "rename" => {
            let b = path(b);
            let moved = backend.rename(a, &b, RenameOptions::default());
            moved.await.is_ok()
        }
        _ => unreachable!("{operation}"),
    }
}

/// `@` is the directory that is tried and `.` the backend's directory.
const OPERATIONS: &[(&str, &str, &str)] = &[
    ("read", "@/file", ""),
    ("read", "./link", ""),
    ("create", "@/file", ""),
    ("create", "@/new", ""),
    ("create", "./link", ""),
    ("remove", "@/file", ""),
    ("mkdir", "@/new", ""),
    ("list", "@/empty", ""),
    ("rename", "@/file", "@/renamed"),
    ("rename", "@/file", "./renamed"),
    ("rename", "./own", "@/renamed"),
];

async fn verdicts_agree(read_only: bool) {
    let place = Place::new(read_only, Landlock::new(), Limits::default());
    let actors = place.actors();
    let area = place.inside.join("area");
    for (at, inside) in [(&area, true), (&place.outside, false)] {
        for (operation, a, b) in OPERATIONS {
            let full = |path: &str| {
                let path = path.replace('@', at.to_str().unwrap());
                match path.strip_prefix("./") {
                    Some(rest) => place.inside.join(rest).display().to_string(),
                    None => path,
                }
            };
            let (a, b) = (full(a), full(b));
            let reads = matches!(*operation, "read" | "list");
            let expected = inside && (reads || !read_only);
            let case = format!("{operation} {a} {b}");
            place.refill(at);
            let got = by_the_backend(&place.backend, operation, &a, &b).await;
            assert_eq!(got, expected, "backend: {case}");
            for (actor, program) in &actors {
                place.refill(at);
                let outcome = place.run(&format!("{program} {operation} {a} {b}")).await;
                assert_eq!(
                    outcome.status.success(),
                    expected,
                    "{actor}: {case}: {outcome:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn commands_and_file_operations_agree() {
    verdicts_agree(false).await;
}

#[tokio::test]
async fn commands_and_file_operations_agree_on_a_read_only_backend() {
    verdicts_agree(true).await;
}

#[tokio::test]
async fn sockets_signals_and_secrets_of_the_host_are_out_of_reach() {
    let place = Place::confined();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let socket = place.outside.join("docker.sock");
    let _unix = UnixListener::bind(&socket).unwrap();
    let host = std::process::id();
    for (actor, program) in place.actors() {
        let outcome = place.run(&format!("{program} connect {port}")).await;
        assert!(!outcome.status.success(), "{actor}: {outcome:?}");
    }
    let socket = socket.display();
    for line in [
        format!("/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{socket}\")'"),
        format!("kill -0 {host}"),
        // The supervisor, and every thread of it that can be guessed.
        "kill -0 $PPID".into(),
        "i=$PPID; while [ $i -lt $((PPID+8)) ]; do kill -0 $i && [ $i != $$ ] && exit 0; i=$((i+1)); done; exit 1".into(),
        format!("cat /proc/{host}/environ"),
        format!("cat /proc/{host}/cmdline"),
        "cat /proc/$PPID/environ".into(),
        "cat /etc/shadow".into(),
        "ls /".into(),
    ] {
        let outcome = place.run(&line).await;
        assert!(!outcome.status.success(), "{line}: {outcome:?}");
        assert!(outcome.stdout.text().is_empty(), "{line}: {outcome:?}");
    }
}

#[tokio::test]
async fn temporary_files_have_a_place() {
    let place = Place::confined();
    let outcome = place
        .run("f=$(mktemp) && echo x > $f && cat $f && rm $f")
        .await;
    assert_eq!(outcome.stdout.text(), "x\n", "{outcome:?}");
}

#[tokio::test]
async fn what_confines_nothing_is_refused() {
    let commands = Commands::new()
        .supervisor(Supervisor::Program(supervisor()))
        .confinement(Confinement::Landlock(Landlock::new()));
    let opened = LocalBackend::builder("/")
        .enable_execute(true)
        .commands(commands)
        .open();
    fails(ErrorKind::Config, opened);
}

#[tokio::test]
async fn limits_hold_for_confined_commands() {
    let limits = Limits::default().cpu_seconds(1).file_bytes(1000);
    let place = Place::new(false, Landlock::new(), limits);
    let outcome = place.run("while :; do :; done").await;
    assert_eq!(outcome.status, CommandStatus::Signalled(24), "{outcome:?}");
    let outcome = place.run("exec dd if=/dev/zero of=f bs=4096 count=2").await;
    assert_eq!(outcome.status, CommandStatus::Signalled(25), "{outcome:?}");
    assert_eq!(place.inside.join("f").metadata().unwrap().len(), 1000);
    let outcome = place.run("yes | head -n 1").await;
    assert_eq!(outcome.stdout.text(), "y\n", "{outcome:?}");
    assert!(outcome.stderr.text().is_empty(), "{outcome:?}");
}

/// At most two hundred children are started, and the backend ends them.
#[tokio::test]
async fn a_fork_bomb_is_bounded_and_ended() {
    let place = Place::new(false, Landlock::new(), Limits::default().processes(60));
    let bomb = "i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); echo $i; done";
    let outcome = place.run(bomb).await;
    assert!(outcome.stdout.text().lines().count() < 80, "{outcome:?}");
    assert!(!outcome.status.success(), "{outcome:?}");
    // The next command can start processes again.
    assert!(place.run("sh -c true").await.status.success());
}

/// Runs the same tests again as an ordinary user, if this process is root.
#[test]
fn all_of_it_holds_for_an_ordinary_user() {
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
        .args(["confinement::", "--test-threads=2"])
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
