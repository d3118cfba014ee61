//! Hostile machines: names that try to be code, malformed answers, shells that
//! vanish, and callers that leave.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use backend_core::ops::{
    Command, CommandStatus, Content, CopyOptions, GlobQuery, GrepQuery, ReadOptions, Streams,
};
use backend_core::{Backend as _, BackendExt as _, ErrorKind, Sandbox as _, VPath};
use backend_testkit::fails;
use futures::StreamExt as _;
use sandbox_shell::PortableSandbox;

use crate::support::host_machine::{HostMachine, busybox_path, host_path};
use crate::support::liar::{Liar, Lie};

fn sandbox(path: String) -> (PortableSandbox<HostMachine>, tempfile::TempDir) {
    let directory = tempfile::Builder::new()
        .prefix("portable")
        .tempdir()
        .unwrap();
    let place = directory.path().canonicalize().unwrap();
    let machine = HostMachine::new(&place, path);
    (PortableSandbox::new(Arc::new(machine)), directory)
}

/// Returns the names in a directory, temporary files included.
fn names(directory: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

const NAMES: &[&str] = &[
    "new\nline",
    "\n",
    "ends with newline\n",
    "it's",
    "'; touch pwned; '",
    "\"double\"",
    "-rf",
    "--help",
    "$(touch pwned)",
    "`touch pwned`",
    "$HOME",
    "back\\slash\\n",
    " leading and trailing ",
    "*",
    "?[a-z]",
    "a;b|c&d>e<f",
    "!#%^~",
    "$nl",
    "\u{1e}secret ok",
    "\t\r\u{1b}[0m",
    "...",
    "é 日本 🦀",
];

async fn every_operation(sandbox: &PortableSandbox<HostMachine>, name: &str) {
    let inside = format!("dir {name}/{name}");
    let moved = format!("dir {name}/moved {name}");
    let copied = format!("copied {name}/x/{name}");
    let is = |text: &str| format!("{text} of {name:?}");
    let written = sandbox.write_file(&inside, "needle\nold\n").await;
    assert!(written.unwrap().created, "{}", is("write"));
    sandbox.replace_text(&inside, "old", "new").await.unwrap();
    assert_eq!(
        sandbox.read_to_string(&inside).await.unwrap(),
        "needle\nnew\n"
    );
    let entry = sandbox.metadata(&inside).await.unwrap();
    assert_eq!(
        (entry.name(), entry.size),
        (name, Some(11)),
        "{}",
        is("stat")
    );
    let listed = sandbox.list_dir(&format!("dir {name}")).await.unwrap();
    assert_eq!(listed.entries[0].name(), name, "{}", is("ls"));
    let path = sandbox.path(&inside).unwrap();
    let resolved = sandbox.resolve(&path, Default::default()).await.unwrap();
    assert_eq!(resolved, path, "{}", is("resolve"));
    let start = sandbox.path(format!("dir {name}")).unwrap();
    let found = sandbox
        .glob(GlobQuery::new("**", start.clone()).hidden(true))
        .await
        .unwrap();
    assert_eq!(found.files[0].path, path, "{}", is("glob"));
    let query = GrepQuery::new("needle", start.clone()).hidden(true);
    assert_eq!(
        sandbox.grep(query).await.unwrap().matches,
        1,
        "{}",
        is("grep")
    );
    let query = GrepQuery::new("needle", path.clone());
    assert_eq!(
        sandbox.grep(query).await.unwrap().matches,
        1,
        "{}",
        is("grep")
    );
    sandbox.copy_to(&inside, &copied).await.unwrap();
    let link = Path::new(start.as_str()).join("link");
    std::os::unix::fs::symlink(name, &link).unwrap();
    let through = format!("dir {name}/link");
    assert_eq!(
        sandbox.read_to_string(&through).await.unwrap(),
        "needle\nnew\n"
    );
    sandbox.write_file(&through, "through").await.unwrap();
    sandbox.move_to(&inside, &moved).await.unwrap();
    assert_eq!(sandbox.read_to_string(&moved).await.unwrap(), "through");
    let tree = sandbox.path(format!("tree {name}")).unwrap();
    let options = CopyOptions::default().recursive(true);
    sandbox.copy(&start, &tree, options).await.unwrap();
    let command = Command::new("pwd; printf %s \"$V\"")
        .directory(tree)
        .env("V", name);
    let outcome = sandbox.execute(command).await.unwrap();
    assert!(outcome.stdout.text().ends_with(name), "{}", is("execute"));
    sandbox.delete_file(&moved).await.unwrap();
    for tree in ["dir ", "copied ", "tree "] {
        sandbox.delete_tree(&format!("{tree}{name}")).await.unwrap();
    }
}

async fn names_are_only_names(path: String) {
    let (sandbox, directory) = sandbox(path);
    for name in NAMES {
        every_operation(&sandbox, name).await;
        assert_eq!(names(directory.path()), BTreeSet::new(), "after {name:?}");
    }
    assert!(!Path::new("/pwned").exists());
}

#[tokio::test]
async fn names_are_only_names_to_busybox() {
    names_are_only_names(busybox_path()).await;
}

#[tokio::test]
async fn names_are_only_names_to_the_host() {
    names_are_only_names(host_path()).await;
}

/// File operations share one shell. Each command is one more program.
#[tokio::test]
async fn few_programs_are_started() {
    let (sandbox, _directory) = sandbox(host_path());
    for number in 0..20 {
        let name = format!("file {number}");
        sandbox.write_file(&name, "text").await.unwrap();
        sandbox.read_to_string(&name).await.unwrap();
        sandbox.replace_text(&name, "t", "T").await.unwrap_err();
        sandbox.list_dir(".").await.unwrap();
        sandbox.find_files("**").await.unwrap();
        sandbox.search_text("text").await.unwrap();
    }
    let spawned = || sandbox.machine().spawned.load(Ordering::SeqCst);
    assert_eq!(spawned(), 1);
    for _ in 0..3 {
        sandbox.execute(Command::new("true")).await.unwrap();
    }
    assert_eq!(spawned(), 4);
}

/// A shell whose stream has carried enough is replaced, and none before.
#[tokio::test]
async fn a_worn_stream_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let machine = HostMachine::new(directory.path(), host_path()).stream_bytes(64 * 1024);
    let sandbox = PortableSandbox::new(Arc::new(machine));
    let spawned = || sandbox.machine().spawned.load(Ordering::SeqCst);
    let text = "line\n".repeat(20_000);
    sandbox.write_file("large", text.as_str()).await.unwrap();
    for _ in 0..5 {
        sandbox.metadata("large").await.unwrap();
    }
    assert_eq!(spawned(), 1);
    assert_eq!(sandbox.read_to_string("large").await.unwrap(), text);
    sandbox.metadata("large").await.unwrap();
    assert!(spawned() > 1);
}

/// Whether this program was started with interrupts ignored, as a shell does
/// for background jobs. Its children inherit that.
fn is_deaf_to_interrupts() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = u64::from_str_radix(ignored.unwrap().trim(), 16).unwrap();
    ignored & 0b10 != 0
}

/// Exit codes are told from signals, even if a shell converts one to the other.
#[tokio::test]
async fn codes_are_no_signals() {
    let interrupted = if is_deaf_to_interrupts() {
        CommandStatus::Exited(0)
    } else {
        CommandStatus::Signalled(2)
    };
    for path in [host_path(), busybox_path()] {
        let (sandbox, _directory) = sandbox(path);
        for (line, status) in [
            ("exit 143", CommandStatus::Exited(143)),
            ("exit 137", CommandStatus::Exited(137)),
            ("exit 255", CommandStatus::Exited(255)),
            ("sh -c 'kill -9 $$'; exit $?", CommandStatus::Exited(137)),
            ("kill -9 $$", CommandStatus::Signalled(9)),
            ("kill -SEGV $$", CommandStatus::Signalled(11)),
            ("kill -PIPE $$", CommandStatus::Signalled(13)),
            ("kill -INT $$; sleep 1", interrupted),
        ] {
            let outcome = sandbox.execute(Command::new(line)).await.unwrap();
            assert_eq!(outcome.status, status, "{line}");
            let printed = outcome.stderr.text();
            assert!(
                printed.is_empty() || line.contains("sh -c"),
                "{line}: {printed}"
            );
        }
    }
}

/// A command that kills its own script still has an outcome.
#[tokio::test]
async fn a_keeper_that_is_killed_is_noticed() {
    let (sandbox, _directory) = sandbox(host_path());
    let line =
        "p=$PPID; read -r s </proc/$p/stat; s=${s##*) }; set -- $s; kill -9 $2 $p; echo done";
    let command = Command::new(line).timeout(Duration::from_secs(30));
    let outcome = sandbox.execute(command).await.unwrap();
    assert!(
        matches!(outcome.status, CommandStatus::Signalled(_)),
        "{:?}",
        outcome.status
    );
}

/// Malformed answers are errors, soon and in bounded memory.
#[tokio::test]
async fn lies_are_noticed() {
    for lie in [
        Lie::Garbage,
        Lie::Flood,
        Lie::Complains,
        Lie::Parts,
        Lie::Nothing,
        Lie::DiesInTheMiddle,
        Lie::Wrong("who-knows"),
        Lie::Wrong(""),
        Lie::Answer(b"rubbish"),
        Lie::Answer(b"d/x//no record\n"),
        Lie::Answer(b"-//81a4 1 2 3 4 ./x\n//81a4 1 2 3 4 ./y\n"),
        Lie::Answer(b"-1 0:0 x\n"),
        Lie::Answer(b"99999999999999999999 1\n"),
    ] {
        let sandbox = PortableSandbox::new(Arc::new(Liar::new(lie)));
        let file = VPath::parse("/file").unwrap();
        let unavailable = |kind| assert_eq!(kind, ErrorKind::Unavailable, "{lie:?}");
        unavailable(sandbox.metadata("/file").await.unwrap_err().kind());
        unavailable(sandbox.list_dir("/file").await.unwrap_err().kind());
        unavailable(sandbox.read_bytes("/file").await.unwrap_err().kind());
        unavailable(sandbox.write_file("/file", "x").await.unwrap_err().kind());
        let deleted = sandbox.copy_to("/file", "/to").await;
        if !matches!(lie, Lie::Answer(_)) {
            unavailable(deleted.unwrap_err().kind());
            let found = sandbox.glob(GlobQuery::new("*", VPath::root())).await;
            unavailable(found.unwrap_err().kind());
        }
        let found = sandbox.grep(GrepQuery::new("x", file)).await;
        assert!(found.is_err(), "{lie:?}");
        let ran = sandbox.execute(Command::new("true")).await;
        assert!(ran.is_err(), "{lie:?}");
    }
}

/// Invented names stay in their directory.
#[tokio::test]
async fn made_up_names_go_nowhere() {
    let lie = Lie::Answer(b"d//81a4 1 2 3 4.0 ./..\n//81a4 1 2 3 4 ./a/../../b\n//81a4 1 2 3 4 ./ok\n//81a4 1 2 3 4 ./\n");
    let sandbox = PortableSandbox::new(Arc::new(Liar::new(lie)));
    let listing = sandbox.list_dir("/dir").await.unwrap();
    let names: Vec<_> = listing
        .entries
        .iter()
        .map(|entry| entry.path.as_str())
        .collect();
    assert_eq!(names, ["/dir/ok"]);
}

/// A read does not wait for more bytes than it asked for.
#[tokio::test]
async fn a_read_gets_no_more_than_it_asked_for() {
    let sandbox = PortableSandbox::new(Arc::new(Liar::new(Lie::Answer(
        b"5 1:1 t\nmore than five bytes",
    ))));
    let read = sandbox.read_bytes("/file").await.unwrap();
    assert_eq!(&read[..], b"more ");
    let path = VPath::parse("/file").unwrap();
    let short = ReadOptions::default().max_bytes(3);
    fails(ErrorKind::TooLarge, sandbox.read(&path, short).await);
}

/// The error for a machine without a shell says what to use instead.
#[tokio::test]
async fn no_shell_is_unsupported() {
    let sandbox = PortableSandbox::new(Arc::new(Liar::new(Lie::NoShell)));
    let error = fails(ErrorKind::Unsupported, sandbox.metadata("/").await);
    assert!(error.message().contains("agent"), "{error}");
}

/// A shell that was killed is replaced.
#[tokio::test]
async fn a_lost_shell_is_replaced() {
    // Only the shells of this sandbox have it in their environment.
    let mark = tempfile::tempdir().unwrap();
    let mark = mark.path().to_str().unwrap();
    let (sandbox, _directory) = sandbox(format!("{}:{mark}", host_path()));
    sandbox.write_file("file", "x").await.unwrap();
    let line = "for f in /proc/[0-9]*/cmdline; do p=${f#/proc/}; p=${p%/*}; \
        grep -q 'far end of a chann[e]l' $f && grep -q \"$MARK\" /proc/$p/environ && kill -9 $p; \
        done 2>/dev/null; :";
    let lines = Command::new(line).env("MARK", mark);
    sandbox.execute(lines).await.unwrap();
    let mut attempts = 0;
    while sandbox.read_to_string("file").await.is_err() {
        attempts += 1;
        assert!(attempts < 10, "it is not replaced");
    }
}

/// A dropped write leaves nothing behind.
#[tokio::test]
async fn dropped_writes_leave_nothing() {
    let (sandbox, directory) = sandbox(busybox_path());
    sandbox.write_file("file", "old").await.unwrap();
    for pieces in 0..6 {
        let half = futures::stream::iter((0..pieces).map(|_| Ok(vec![b'x'; 200_000].into())));
        let content = Content::Stream(half.chain(futures::stream::pending()).boxed());
        let path = sandbox.path("file").unwrap();
        let write = sandbox.write(&path, content, Default::default());
        let waited = tokio::time::timeout(Duration::from_millis(20 * pieces), write).await;
        assert!(waited.is_err());
    }
    // A started request ends soon, but not before the call returns.
    let only = BTreeSet::from(["file".to_owned()]);
    for _ in 0..200 {
        if names(directory.path()) == only {
            break;
        }
        sandbox.metadata("file").await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(names(directory.path()), only);
    assert_eq!(sandbox.read_to_string("file").await.unwrap(), "old");
}

/// Large files are transferred whole, and a change in the middle keeps the
/// rest.
#[tokio::test]
async fn large_files_are_whole() {
    let (sandbox, directory) = sandbox(busybox_path());
    let mut text: String = (0..150_000).map(|n| format!("line {n}\n")).collect();
    sandbox.write_file("large", text.as_str()).await.unwrap();
    sandbox
        .replace_text("large", "line 149999\n", "the end\n")
        .await
        .unwrap();
    text = text.replace("line 149999\n", "the end\n");
    assert_eq!(sandbox.read_to_string("large").await.unwrap(), text);
    let found = sandbox.search_text("^the end$").await.unwrap();
    let lines: Vec<_> = found.files[0].lines().map(|line| line.number).collect();
    assert_eq!(lines, [150_000]);
    let path = sandbox.path("large").unwrap();
    for (start, end) in [
        (0, 1),
        (65_535, 65_537),
        (131_072, 131_073),
        (999_999, 1_100_001),
    ] {
        let options = ReadOptions::default().range(start..end);
        let read = sandbox.read(&path, options).await.unwrap();
        let expected = &text.as_bytes()[start as usize..end as usize];
        assert_eq!(&read.data[..], expected);
    }
    assert_eq!(names(directory.path()).len(), 1);
}

/// A reader that stops reading stops its command, and nothing else.
#[tokio::test]
async fn a_slow_reader_slows_its_command() {
    let (sandbox, _directory) = sandbox(host_path());
    let command = Command::new("yes; :").streams(Streams::Merged);
    let mut stream = sandbox.stream(command).await.unwrap();
    stream.next().await.unwrap().unwrap();
    for _ in 0..5 {
        let outcome = sandbox.execute(Command::new("echo other")).await.unwrap();
        assert_eq!(outcome.stdout.text(), "other\n");
    }
    drop(stream);
}
