//! The conformance suite through the program itself, started for each case.

#[path = "../../../backend-local/tests/it/support/fixture.rs"]
mod fixture;

use std::sync::Arc;

use fixture::DiskFixture;

use crate::support::machine::HostMachine;

/// Returns a directory behind an agent whose working directory lies beneath its
/// root.
fn served() -> DiskFixture {
    DiskFixture::new(false, |root| {
        let machine = || HostMachine::new(root, "/workspace");
        std::fs::create_dir(root.join("workspace")).unwrap();
        (
            Arc::new(machine().sandbox()),
            Arc::new(machine().read_only()),
        )
    })
}

backend_testkit::conformance! {
    mod process;
    fixture = async || served();
    skipped = 0;
}
