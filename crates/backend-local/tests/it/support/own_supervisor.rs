//! The tests of a program that is its own supervisor, for every kind of `main`.

use backend_core::Sandbox;
use backend_core::ops::{Command, StopMode};
use backend_local::{Commands, Confinement, Landlock, Limits, LocalBackend};

use super::commands::*;

/// Tests everything that a supervisor does. `run_if_asked` was called.
pub(crate) async fn works() {
    let place = with(Commands::new());
    its_own_supervisor(&place.backend).await;
    leaves_nothing(&place).await;
    limits_hold().await;
}

async fn its_own_supervisor(backend: &LocalBackend) {
    let line = "readlink /proc/$PPID/exe; cat /proc/$PPID/cmdline";
    let outcome = backend.execute(Command::new(line)).await.unwrap();
    let text = outcome.stdout.text();
    let (program, arguments) = text.split_once('\n').unwrap();
    assert_eq!(program, std::env::current_exe().unwrap().to_str().unwrap());
    assert!(
        arguments.starts_with("agentbox-supervisor\0"),
        "{arguments}"
    );
}

async fn leaves_nothing(place: &Place) {
    let token = token();
    let line = format!("(env -i setsid sleep {token} &)");
    assert!(place.run(line).await.status.success());
    assert_eq!(survivors(&token).len(), 1);
    place.backend.stop(StopMode::Keep).await.unwrap();
    none(&token);
}

/// The program starts again before such a command, in its environment and
/// confined like it.
async fn limits_hold() {
    let limits = Limits::default()
        .cpu_seconds(7)
        .memory_bytes(512 * 1024 * 1024);
    let confined = Confinement::Landlock(Landlock::default());
    let place = with(Commands::new().limits(limits).confinement(confined));
    let shown =
        "ulimit -t; ulimit -v; echo ${TOKIO_WORKER_THREADS-unset}; env | grep -c ^AGENTBOX_TOKIO";
    let outcome = place.run(shown).await;
    assert_eq!(
        outcome.stdout.text(),
        "7\n524288\nunset\n0\n",
        "{outcome:?}"
    );
    let asked = Command::new(shown).env("TOKIO_WORKER_THREADS", "none");
    let outcome = place.run(asked).await;
    assert_eq!(outcome.stdout.text(), "7\n524288\nnone\n0\n", "{outcome:?}");
}
