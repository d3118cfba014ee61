//! The tests of a program that is its own supervisor, for every kind of `main`.

use std::path::Path;

use backend_core::Sandbox as _;
use backend_core::ops::{Command, ExecuteOutcome, StopMode};
use backend_local::{Commands, Confinement, Landlock, Limits, LocalBackend};
use backend_testkit::processes::{none, survivors, token};

/// Tests everything that a supervisor does. `run_if_asked` was called.
pub(crate) async fn works() {
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path(), Commands::new());
    its_own_supervisor(&backend).await;
    leaves_nothing(&backend).await;
    limits_hold().await;
}

fn open(directory: &Path, commands: Commands) -> LocalBackend {
    let builder = LocalBackend::builder(directory).enable_execute(true);
    builder.commands(commands).open().unwrap()
}

async fn run(backend: &LocalBackend, command: Command) -> ExecuteOutcome {
    backend.execute(command).await.unwrap()
}

async fn its_own_supervisor(backend: &LocalBackend) {
    let line = "readlink /proc/$PPID/exe; cat /proc/$PPID/cmdline";
    let outcome = run(backend, Command::new(line)).await;
    let text = outcome.stdout.text();
    let (program, arguments) = text.split_once('\n').unwrap();
    assert_eq!(program, std::env::current_exe().unwrap().to_str().unwrap());
    assert!(
        arguments.starts_with("agentbox-supervisor\0"),
        "{arguments}"
    );
}

async fn leaves_nothing(backend: &LocalBackend) {
    let token = token();
    let line = format!("(env -i setsid sleep {token} &)");
    let outcome = run(backend, Command::new(line)).await;
    assert!(outcome.status.success());
    assert_eq!(survivors(&token).len(), 1);
    backend.stop(StopMode::Keep).await.unwrap();
    none(&token);
}

/// The program starts again before such a command, in its environment and
/// confined like it.
async fn limits_hold() {
    let limits = Limits::default()
        .cpu_seconds(7)
        .memory_bytes(512 * 1024 * 1024);
    let confined = Confinement::Landlock(Landlock::default());
    let commands = Commands::new().limits(limits).confinement(confined);
    let directory = tempfile::tempdir().unwrap();
    let backend = open(directory.path(), commands);
    let shown =
        "ulimit -t; ulimit -v; echo ${TOKIO_WORKER_THREADS-unset}; env | grep -c ^AGENTBOX_TOKIO";
    let outcome = run(&backend, Command::new(shown)).await;
    assert_eq!(
        outcome.stdout.text(),
        "7\n524288\nunset\n0\n",
        "{outcome:?}"
    );
    let asked = Command::new(shown).env("TOKIO_WORKER_THREADS", "none");
    let outcome = run(&backend, asked).await;
    assert_eq!(outcome.stdout.text(), "7\n524288\nnone\n0\n", "{outcome:?}");
}
