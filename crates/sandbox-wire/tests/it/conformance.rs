//! The conformance suite through a pipe: a directory and a store in memory,
//! served.

use std::sync::Arc;

use backend_local::{Commands, LocalBackend, Supervisor};
use backend_state::StateBackend;
use backend_testkit::{ClockFixture, DirectoryFixture};

use crate::support::pipe::piped;

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

backend_testkit::conformance! {
    mod local;
    fixture = async || piped_local();
    skipped = 32;

    mod state;
    fixture = async || piped_state();
    skipped = 210;
}
