//! Tests of limits against the kernel. A test that changes its process runs in
//! another one: this test program, started again for one test with a role.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Output, Stdio};

use backend_core::ErrorKind;

use super::*;

/// The variable with the role, if this is the second process.
const ROLE: &str = "AGENTBOX_TEST_ROLE";

#[allow(
    clippy::disallowed_methods,
    reason = "how a test tells its second process apart"
)]
fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Returns a command that runs `test` of this program in the role `role`.
fn again(test: &str, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", &format!("supervisor::limits::tests::{test}")])
        .args(["--nocapture", "--test-threads=1"])
        .env(ROLE, role);
    command
}

/// Runs a shell script with these limits, as a supervisor would.
fn limited(limits: &Limits, script: &str) -> Output {
    let prepared = limits.launch().unwrap().unwrap().prepare(0).unwrap();
    let argv = ["/bin/sh", "-c", script].map(OsString::from).into();
    let wrapped = wrap(Some(&prepared), false, argv, &mut Environment::new());
    assert_eq!(wrapped[..2], ["/proc/self/exe", LAUNCH]);
    let rest: Vec<_> = wrapped[2..]
        .iter()
        .map(|arg| arg.to_str().unwrap())
        .collect();
    again("launcher", &rest.join("\x1f")).output().unwrap()
}

/// The second process of [`limited`]: becomes the command.
#[test]
fn launcher() {
    if let Some(role) = role() {
        // As in a supervisor. Commands must not inherit it.
        nix::sys::signal::SigSet::all().thread_block().unwrap();
        run_launcher(role.split('\x1f').map(OsString::from));
    }
}

#[test]
fn no_limits_need_nothing_and_zero_is_no_limit() {
    assert!(Limits::default().launch().unwrap().is_none());
    let zero = Limits {
        memory_bytes: Some(0),
        ..Limits::default()
    };
    let error = zero.launch().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("memory"), "{error}");
}

#[test]
fn a_command_without_limits_of_its_process_is_not_wrapped() {
    let prepared = Prepared {
        specification: String::new(),
        _group: None,
    };
    let argv: Vec<OsString> = vec!["sh".into()];
    let mut environment = Environment::new();
    for limits in [Some(&prepared), None] {
        assert_eq!(wrap(limits, false, argv.clone(), &mut environment), argv);
    }
    assert!(environment.is_empty());
    let wrapped = wrap(Some(&prepared), true, argv, &mut environment);
    assert_eq!(wrapped, ["/proc/self/exe", LAUNCH, TERMINAL, "sh"]);
    assert_eq!(environment.len(), 1);
}

#[test]
fn a_specification_reads_back() {
    let limits: Vec<_> = Kind::ALL.into_iter().zip([1, 2, u64::MAX, 4]).collect();
    let specification = specify(&limits);
    let terminal = format!("{TERMINAL},{specification}");
    assert_eq!(parse(TERMINAL), Some((true, Vec::new())));
    assert_eq!(parse(&terminal), Some((true, limits.clone())));
    assert_eq!(parse(&specification), Some((false, limits)));
    for nonsense in [
        "",
        "cpu",
        "cpu=",
        "cpu=-1",
        "cpu=1,",
        "gpu=1",
        "cpu=1;file=2",
        "terminal,",
        "terminals",
        "cpu=1,terminal",
    ] {
        assert_eq!(parse(nonsense), None, "{nonsense:?}");
    }
}

#[test]
fn the_launcher_says_what_is_wrong() {
    for (args, expected) in [
        (vec![], "no limits"),
        (vec!["cpu=1"], "no program"),
        (vec!["cpu", "sh"], "invalid limits"),
        (vec!["cpu=1000000", "/missing/program"], "/missing/program"),
    ] {
        // A limit that high changes nothing for this process.
        let error = become_command(args.into_iter().map(OsString::from));
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn limits_reach_the_command() {
    let limits = Limits {
        cpu_seconds: Some(50),
        file_bytes: Some(1 << 20),
        memory_bytes: Some(1 << 30),
        processes: None,
    };
    let script = "ulimit -t; ulimit -f; ulimit -v; ulimit -Ht; yes | head -n 1";
    let output = limited(&limits, script);
    let shown = String::from_utf8_lossy(&output.stdout);
    // Seconds, blocks of 512 bytes, KiB. `yes` ends by a signal that Rust
    // programs ignore, which must not have been inherited.
    assert!(shown.ends_with("50\n2048\n1048576\n51\ny\n"), "{shown}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_command_that_computes_too_long_is_ended_by_a_signal() {
    let limits = Limits {
        cpu_seconds: Some(1),
        ..Limits::default()
    };
    let output = limited(&limits, "while :; do :; done");
    assert_eq!(output.status.signal(), Some(nix::libc::SIGXCPU));
    let output = limited(&limits, "trap '' XCPU; while :; do :; done");
    assert_eq!(output.status.signal(), Some(nix::libc::SIGKILL));
}

#[test]
fn a_file_grows_no_further_than_allowed() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    let limits = Limits {
        file_bytes: Some(1000),
        ..Limits::default()
    };
    let script = format!("exec dd if=/dev/zero of={} bs=4096 count=2", file.display());
    let output = limited(&limits, &script);
    let signal = output.status.signal();
    assert_eq!(signal, Some(nix::libc::SIGXFSZ), "{output:?}");
    assert_eq!(file.metadata().unwrap().len(), 1000);
}

/// Starts up to 200 children. Each waits for the end of its standard input,
/// which comes when this process ends.
const BOMB: &str = "i=0; while [ $i -lt 200 ]; do (read x <&9) & i=$((i+1)); echo $i; done";

/// Returns the number of children that [`BOMB`] could start under `command`.
fn explode(mut command: Command) -> usize {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut child = command
        .stdin(reader)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The bomb's children hold the pipe until their input ends.
    child.wait().unwrap();
    drop(writer);
    let mut shown = String::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_string(&mut shown).unwrap();
    let is_number = |line: &&str| line.parse::<u8>().is_ok();
    shown.lines().filter(is_number).count()
}

fn bomb() -> Vec<OsString> {
    ["/bin/sh", "-c", &format!("exec 9<&0; {BOMB}")]
        .map(OsString::from)
        .into()
}

#[test]
fn a_fork_bomb_stays_in_its_group() {
    if role().is_none() {
        let mut command = again("a_fork_bomb_stays_in_its_group", "group");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let limits = Limits {
        processes: Some(30),
        ..Limits::default()
    };
    let launch = limits
        .launch()
        .expect("needs a control group with `pids`, or another user than root");
    let launch = launch.unwrap();
    if launch.tasks.is_none() {
        // An ordinary user without a control group: see the other test.
        return;
    }
    let before = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let prepared = launch.prepare(0).unwrap();
    let argv = wrap(Some(&prepared), false, bomb(), &mut Environment::new());
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]);
    let started = explode(command);
    assert!(
        (20..=30 + OWN_TASKS as usize).contains(&started),
        "{started}"
    );
    let group = prepared._group.as_ref().unwrap().directory().to_owned();
    assert!(group.exists());
    // The children may end a moment after they are told to.
    let members = || std::fs::read_to_string(group.join("cgroup.procs")).unwrap();
    while members().lines().count() > 1 {
        std::thread::yield_now();
    }
    drop(prepared);
    assert!(!group.exists());
    let after = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    assert_eq!(after, before);
}

/// A user ID without any other process.
const UNUSED_UID: u32 = 61_234;

#[test]
fn a_fork_bomb_of_an_ordinary_user_is_bounded_without_a_group() {
    let mut command = again("launcher", "");
    let mut args = vec![String::from("processes=30")];
    args.extend(bomb().into_iter().map(|arg| arg.into_string().unwrap()));
    command.env(ROLE, args.join("\x1f"));
    let place = tempfile::tempdir().unwrap();
    if rustix::process::getuid().is_root() {
        let program = place.path().join("tests");
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let same = command;
        command = Command::new(program);
        command.args(same.get_args()).env(ROLE, args.join("\x1f"));
        command.uid(UNUSED_UID).gid(UNUSED_UID).current_dir("/");
    }
    let started = explode(command);
    assert!(started <= 30, "{started}");
}
