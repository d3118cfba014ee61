//! The conformance suite through the program itself, started for each case.

use std::sync::Arc;

use backend_testkit::DirectoryFixture;

use crate::support::listening::ListeningMachine;
use crate::support::machine::HostMachine;

/// Returns a directory behind an agent whose working directory lies beneath its
/// root.
fn served() -> DirectoryFixture {
    DirectoryFixture::new(|root| {
        let machine = || HostMachine::new(root, "/workspace");
        std::fs::create_dir(root.join("workspace")).unwrap();
        (
            Arc::new(machine().sandbox()),
            Some(Arc::new(machine().read_only())),
        )
    })
}

/// Returns the same behind an agent that listens.
fn listened() -> DirectoryFixture {
    DirectoryFixture::new(|root| {
        let machine = || ListeningMachine::new(root, "/workspace");
        std::fs::create_dir(root.join("workspace")).unwrap();
        (
            Arc::new(machine().sandbox()),
            Some(Arc::new(machine().read_only())),
        )
    })
}

backend_testkit::conformance! {
    mod listening;
    fixture = async || listened();
    skipped = 7;

    mod process;
    fixture = async || served();
    skipped = 7;
}
