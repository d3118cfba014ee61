//! The conformance suite through a pipe: a directory and a store in memory,
//! served.

use std::sync::Arc;

use backend_local::{Commands, LocalBackend, Supervisor};
use backend_state::StateBackend;
use backend_testkit::{ClockFixture, DirectoryFixture, SandboxFixture};
use sandbox_wire::{AgentOptions, AgentSandbox};

use crate::support::pipe::{PipeMachine, piped};

/// A store in memory behind a pipe.
fn piped_state() -> ClockFixture {
    ClockFixture::new(|clock| Arc::new(piped(StateBackend::builder().clock(clock).build())))
}

/// A directory behind a pipe.
fn piped_local() -> DirectoryFixture {
    DirectoryFixture::new(|root| {
        let builder = LocalBackend::builder(root);
        let read_only = builder.clone().read_only(true).open().unwrap();
        let commands = Commands::default().supervisor(Supervisor::None);
        let backend = builder.enable_execute(true).commands(commands).open();
        let backend = piped(backend.unwrap());
        (Arc::new(backend), Some(Arc::new(piped(read_only))))
    })
}

/// The column that all sandboxes with the agent have in common; each also checks its own.
#[test]
fn the_page_of_capabilities_is_current() {
    let sandbox = || {
        let machine = PipeMachine::new(Arc::new(StateBackend::new()));
        AgentSandbox::new(Arc::new(machine), AgentOptions::default())
    };
    let fixture = SandboxFixture::new(sandbox(), sandbox());
    for column in ["docker", "k8s", "daytona"] {
        backend_testkit::test_column(column, &fixture);
    }
}

backend_testkit::conformance! {
    mod local;
    fixture = async || piped_local();
    skipped = 32;

    mod state;
    fixture = async || piped_state();
    skipped = 210;
}
