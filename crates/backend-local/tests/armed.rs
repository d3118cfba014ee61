//! A program that is its own supervisor, because it says so first thing.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use backend_core::Sandbox;
use backend_core::ops::{Command, StopMode};
use backend_local::{Commands, LocalBackend};

#[path = "support_commands/support.rs"]
mod support;
use support::*;

fn main() {
    backend_local::supervisor::run_if_asked();
    let place = with(Commands::new());
    futures::executor::block_on(async {
        its_own_supervisor(&place.backend).await;
        leaves_nothing(&place).await;
    });
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
