//! Tests of confined commands against the kernel. They need Linux 6.12 or
//! newer, and fail without Landlock, because then nothing is known to hold.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::mpsc;

use backend_core::ErrorKind;

use super::{Confinement, Landlock, Policy, Prepared, system};

type Job = Box<dyn FnOnce() + Send>;

/// Directories, and a thread that starts commands in them like a supervisor.
struct Confined {
    _home: tempfile::TempDir,
    inside: PathBuf,
    outside: PathBuf,
    temporary: PathBuf,
    jobs: mpsc::Sender<Job>,
}

impl Confined {
    /// Returns the ID of the thread that starts commands.
    fn thread(&self) -> i32 {
        self.on_it(|| rustix::thread::gettid().as_raw_nonzero().get())
    }

    /// Runs `job` on that thread.
    fn on_it<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (answer, answered) = mpsc::channel();
        let job = move || answer.send(job()).unwrap_or_default();
        self.jobs.send(Box::new(job)).unwrap();
        answered.recv().unwrap()
    }

    fn new(options: Landlock) -> Self {
        Self::with(options, false)
    }

    fn with(options: Landlock, read_only: bool) -> Self {
        let home = tempfile::tempdir().unwrap();
        let [inside, outside, temporary] = ["inside", "outside", "temporary"].map(|name| {
            let path = home.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        });
        let policy = Confinement::Landlock(options)
            .policy(&[&inside], read_only, &temporary)
            .unwrap()
            .unwrap();
        let jobs = spawner(policy).unwrap();
        Self {
            _home: home,
            inside,
            outside,
            temporary,
            jobs,
        }
    }

    fn run(&self, program: &str, args: &[&str]) -> Output {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(&self.inside)
            .env("HOME", &self.temporary)
            .env("TMPDIR", &self.temporary)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("OUTSIDE", &self.outside);
        self.on_it(move || command.output()).unwrap()
    }
}

/// Starts a thread confined by `policy` that runs the jobs it is sent.
fn spawner(policy: Policy) -> Result<mpsc::Sender<Job>, String> {
    let (jobs, todo) = mpsc::channel::<Job>();
    let (entered, result) = mpsc::channel();
    std::thread::spawn(move || {
        let restricted = Prepared::new(policy).and_then(|all| all.restrict_and_probe());
        let confined = restricted.is_ok();
        entered.send(restricted).unwrap();
        if confined {
            todo.into_iter().for_each(|job| job());
        }
    });
    result.recv().unwrap().map(|()| jobs)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Compiles a program and puts it where confined commands find it.
fn compile(source: &str, to: &Path) {
    let file = to.with_extension("c");
    fs::write(&file, source).unwrap();
    let made = Command::new("cc").arg("-o").arg(to).arg(file).output();
    let made = made.expect("these tests need a C compiler, as Rust does to link: install `cc`");
    assert!(made.status.success(), "{}", text(&made.stderr));
}

/// The programs that try: each takes an operation and one or two paths.
fn actors(tools: &Path) -> Vec<(&'static str, Vec<String>)> {
    let show = |name: &str| tools.join(name).display().to_string();
    fs::write(tools.join("actor.py"), include_str!("testdata/actor.py")).unwrap();
    fs::write(tools.join("actor.sh"), include_str!("testdata/actor.sh")).unwrap();
    compile(include_str!("testdata/actor.c"), &tools.join("actor"));
    let python = "/usr/bin/python3";
    assert!(
        Path::new(python).exists(),
        "these tests need {python}: install it"
    );
    vec![
        ("sh", vec!["/bin/sh".into(), show("actor.sh")]),
        ("python", vec![python.into(), "-B".into(), show("actor.py")]),
        ("compiled", vec![show("actor")]),
    ]
}

/// An operation and its paths. `@` is the directory that is tried and `.` the
/// allowed directory.
const OPERATIONS: &[(&str, &str, &str)] = &[
    ("read", "@/file", ""),
    ("read", "./link", ""),
    ("read", "./../PLACE/file", ""),
    ("write", "@/file", ""),
    ("write", "./link", ""),
    ("append", "@/file", ""),
    ("create", "@/new", ""),
    ("create", "./dangling", ""),
    ("truncate", "@/file", ""),
    ("remove", "@/file", ""),
    ("mkdir", "@/new", ""),
    ("rmdir", "@/empty", ""),
    ("list", "@", ""),
    ("rename", "@/file", "@/renamed"),
    ("rename", "@/file", "./renamed"),
    ("rename", "./own", "@/renamed"),
    ("rename", "./own", "@/file"),
    ("link", "@/file", "@/hard"),
    ("link", "@/file", "./hard"),
    ("link", "./own", "@/hard"),
    ("symlink", "target", "@/soft"),
    ("exec", "@/program", ""),
];

/// Fills `place`, and points links in the allowed directory at it. The two
/// directories themselves stay: a rule is tied to the directory, not to its
/// name.
fn refill(confined: &Confined, place: &Path) {
    let inside = &confined.inside;
    for directory in [inside, &confined.outside] {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
    }
    fs::create_dir_all(place.join("empty")).unwrap();
    fs::write(place.join("file"), "content").unwrap();
    fs::copy("/bin/true", place.join("program")).unwrap();
    fs::write(inside.join("own"), "own").unwrap();
    std::os::unix::fs::symlink(place.join("file"), inside.join("link")).unwrap();
    std::os::unix::fs::symlink(place.join("new"), inside.join("dangling")).unwrap();
}

/// Returns names, modes and sizes below `place`.
fn snapshot(place: &Path) -> Vec<String> {
    let mut found: Vec<String> = fs::read_dir(place)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let mode = path.symlink_metadata().unwrap().permissions().mode();
            let content = fs::read(&path).unwrap_or_default().len();
            format!("{} {mode:o} {content}", path.display())
        })
        .collect();
    found.sort();
    found
}

#[test]
fn every_actor_and_operation_inside_works_and_outside_is_refused() {
    let tools = tempfile::tempdir().unwrap();
    let actors = actors(tools.path());
    let confined = Confined::new(Landlock::new().read(tools.path()));
    let area = confined.inside.join("area");
    for (actor, command) in &actors {
        for (place, allowed) in [(&area, true), (&confined.outside, false)] {
            for (operation, a, b) in OPERATIONS {
                refill(&confined, place);
                let before = snapshot(place);
                let name = place.file_name().unwrap().to_str().unwrap();
                let full = |path: &str| {
                    path.replace('@', place.to_str().unwrap()).replace(
                        "./../PLACE",
                        &if allowed {
                            format!("./{name}")
                        } else {
                            format!("./../{name}")
                        },
                    )
                };
                let mut args = command.clone();
                args.extend([(*operation).to_owned(), full(a), full(b)]);
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                let output = confined.run(args[0], &args[1..]);
                let case = format!("{actor}: {operation} {a} {b} in {name}: {output:?}");
                assert_eq!(output.status.success(), allowed, "{case}");
                if !allowed {
                    assert_eq!(snapshot(place), before, "{case}");
                    let code = output.status.code().unwrap();
                    // EPERM, EACCES or EXDEV. The shell has its own codes.
                    assert!(*actor == "sh" || [1, 13, 18].contains(&code), "{case}");
                }
            }
        }
    }
}

#[test]
fn a_read_only_backend_can_be_read_but_not_written() {
    let confined = Confined::with(Landlock::new(), true);
    fs::write(confined.inside.join("file"), "content").unwrap();
    let sh = |script| confined.run("/bin/sh", &["-c", script]);
    assert_eq!(text(&sh("cat file").stdout), "content");
    for script in [
        "printf x > file",
        "printf x > new",
        "rm -f file",
        "mv -f file other",
        "mkdir d",
        "ln -s a b",
        "truncate -s 0 file",
    ] {
        assert!(!sh(script).status.success(), "{script}");
    }
    assert_eq!(fs::read(confined.inside.join("file")).unwrap(), b"content");
    assert!(sh("f=$(mktemp) && printf x > $f && rm $f").status.success());
}

#[test]
fn sockets_signals_and_the_kernel_are_out_of_reach() {
    let tools = tempfile::tempdir().unwrap();
    compile(
        include_str!("testdata/holes.c"),
        &tools.path().join("holes"),
    );
    for options in [Landlock::new(), Landlock::new().network(true)] {
        let confined = Confined::new(options.read(tools.path()));
        let socket = confined.outside.join("docker.sock");
        let _listener = UnixListener::bind(&socket).unwrap();
        let file = confined.inside.join("file");
        fs::write(&file, "").unwrap();
        let output = confined.run(
            tools.path().join("holes").to_str().unwrap(),
            &[
                file.to_str().unwrap(),
                socket.to_str().unwrap(),
                &std::process::id().to_string(),
                &confined.thread().to_string(),
            ],
        );
        assert_eq!(text(&output.stdout), "done\n", "{output:?}");
    }
}

#[test]
fn the_network_is_there_only_if_asked_for() {
    let tools = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    for (options, allowed) in [
        (Landlock::new(), false),
        (Landlock::new().network(true), true),
    ] {
        let confined = Confined::new(options.read(tools.path()));
        for (actor, mut args) in actors(tools.path()) {
            args.extend(["connect".to_owned(), port.clone()]);
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let output = confined.run(args[0], &args[1..]);
            assert_eq!(output.status.success(), allowed, "{actor}: {output:?}");
        }
        let udp = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)";
        let output = confined.run("/usr/bin/python3", &["-c", udp]);
        assert_eq!(output.status.success(), allowed, "{output:?}");
    }
}

#[test]
fn secrets_of_the_host_are_unreadable() {
    let confined = Confined::new(Landlock::new());
    let id = std::process::id();
    for path in [
        format!("/proc/{id}/environ"),
        format!("/proc/{id}/cmdline"),
        format!("/proc/{}/environ", confined.thread()),
        "/etc/shadow".into(),
        "/root".into(),
        "/home".into(),
        "/".into(),
    ] {
        let output = confined.run("/bin/sh", &["-c", "cat \"$0\" || ls -A \"$0/\"", &path]);
        assert!(!output.status.success(), "{path}: {output:?}");
        assert!(output.stdout.is_empty(), "{path}: {output:?}");
    }
    // Even if all of `/proc` may be read, only world-readable files are.
    let confined = Confined::new(Landlock::new().read("/proc"));
    let id = id.to_string();
    let spawner = confined.thread().to_string();
    for id in [&id, &spawner] {
        let output = confined.run("/bin/sh", &["-c", "cat /proc/$0/environ", id]);
        assert!(!output.status.success(), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
    }
    assert!(confined.run("cat", &["/proc/self/status"]).status.success());
}

#[test]
fn an_empty_choice_is_not_everything() {
    let confined = Confined::new(Landlock::new().without_system());
    // Not even the loader of the shell can be read.
    let started = confined.on_it(|| Command::new("/bin/sh").arg("-c").arg(":").status());
    let error = started.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
}

#[test]
fn what_cannot_be_confined_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let here = home.path();
    let policy = |options: Landlock, root: &Path| {
        Confinement::Landlock(options)
            .policy(&[root], false, here)
            .map(|_| ())
    };
    let missing = here.join("missing");
    for (options, root) in [
        (Landlock::new(), Path::new("/")),
        (Landlock::new().write("/"), here),
        (Landlock::new(), missing.as_path()),
        (Landlock::new().read(&missing), here),
    ] {
        let error = policy(options, root).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    }
    assert!(
        Confinement::Off
            .policy(&[here], false, here)
            .unwrap()
            .is_none()
    );
}

#[test]
fn a_directory_that_was_swapped_is_not_entered() {
    let home = tempfile::tempdir().unwrap();
    let [own, temporary, other] = ["own", "temporary", "other"].map(|name| home.path().join(name));
    for path in [&own, &temporary, &other] {
        fs::create_dir(path).unwrap();
    }
    let policy = Confinement::Landlock(Landlock::new())
        .policy(&[&own], false, &temporary)
        .unwrap()
        .unwrap();
    let moved = home.path().join("moved");
    fs::rename(&own, &moved).unwrap();
    std::os::unix::fs::symlink("moved", &own).unwrap();
    let error = spawner(policy.clone()).unwrap_err();
    assert!(error.contains("cannot open"), "{error}");
    fs::remove_file(&own).unwrap();
    fs::rename(&other, &own).unwrap();
    let error = spawner(policy.clone()).unwrap_err();
    assert!(error.contains("not what it was"), "{error}");
    // The original directory is accepted.
    fs::rename(&own, &other).unwrap();
    fs::rename(&moved, &own).unwrap();
    spawner(policy).unwrap();
}

#[test]
fn the_self_test_leaves_nothing_behind() {
    let confined = Confined::new(Landlock::new());
    let names: Vec<_> = fs::read_dir(confined.inside.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        !names.iter().any(|name| name.contains("canary")),
        "{names:?}"
    );
    assert_eq!(fs::read_dir(&confined.temporary).unwrap().count(), 0);
}

/// A policy that allows access to the self-test's targets must not pass.
#[test]
fn the_self_test_finds_a_way_out() {
    let home = tempfile::tempdir().unwrap();
    let [own, temporary] = ["own", "temporary"].map(|name| home.path().join(name));
    fs::create_dir(&own).unwrap();
    fs::create_dir(&temporary).unwrap();
    let mut policy = Confinement::Landlock(Landlock::new())
        .policy(&[&own], false, &temporary)
        .unwrap()
        .unwrap();
    // Covers the directory beside the temporary one, under another name.
    let whole = fs::metadata(home.path()).unwrap();
    policy.write.push(super::policy::AllowedPath {
        path: own.join("..").into(),
        device: whole.dev(),
        inode: whole.ino(),
        directory: true,
    });
    let error = spawner(policy).unwrap_err();
    assert!(
        error.contains("a confined command could read a file"),
        "{error}"
    );
}

/// Runs the same tests again as an ordinary user, if this process is root.
#[test]
fn all_of_it_holds_for_an_ordinary_user() {
    if !rustix::process::getuid().is_root() {
        // This run already is the one without root's rights.
        return;
    }
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = place.path().join("tests");
    // Copied by another process: a process that another test starts at the same
    // time would inherit our handle, and a file that is open for writing cannot
    // be run.
    let copied = Command::new("cp")
        .arg(std::env::current_exe().unwrap())
        .arg(&program)
        .status()
        .unwrap();
    assert!(copied.success());
    let output = Command::new(&program)
        .args(["supervisor::confine::tests::", "--test-threads=2"])
        .env_remove("TMPDIR")
        .current_dir("/")
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{shown}");
    assert!(!shown.contains(" 0 passed"), "{shown}");
}

/// The tools that agents run most, if installed. Compilers and git also write.
#[test]
fn the_usual_tools_work() {
    let confined = Confined::new(Landlock::new());
    for script in [
        "echo a | tee f | sort | uniq -c && cp -a f g && tar cf t f g && tar tf t && rm f g t",
        "f=$(mktemp) && test -f $f && chmod 755 $f && touch $f",
        "printf 'int main(){return 0;}' > a.c && cc a.c -o a && ./a",
        "bash -c 'cat <(echo x)' > /dev/null",
        "python3 -c 'import subprocess, asyncio, ssl, tempfile; subprocess.check_call([\"true\"])
asyncio.run(asyncio.sleep(0))
tempfile.mkdtemp()'",
        "git init -q r && cd r && git config user.name n && git config user.email e && \
         touch f && git add f && git commit -qm m && git gc -q && git clone -q . ../s",
        "node -e 'require(\"child_process\").execSync(\"true\")'",
        "perl -e 'exit 0'",
    ] {
        let output = confined.run("/bin/sh", &["-c", script]);
        // 127: not installed here.
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 127)), "{script}: {output:?}");
    }
}

#[test]
fn the_documentation_names_the_whole_system_set() {
    let page = include_str!("../../../../../docs/confinement.md");
    let versioned = system::ETC_PREFIXES
        .iter()
        .map(|name| format!("/etc/{name}"));
    let sets = [system::PROGRAMS, system::FILES, system::DEVICES].join(" ");
    let sets = sets.split_ascii_whitespace().map(String::from);
    for path in sets.chain(versioned) {
        assert!(page.contains(&format!("`{path}`")), "{path}");
    }
}
