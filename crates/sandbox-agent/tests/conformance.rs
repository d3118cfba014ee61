//! The whole suite through the program itself, started for each case.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot set up has failed"
)]
#![cfg(target_os = "linux")]

#[path = "../../backend-local/tests/support/fixture.rs"]
mod fixture;
#[path = "support/machine.rs"]
mod machine;

use std::sync::Arc;

use fixture::DiskFixture;
use machine::HostMachine;

/// A directory behind an agent whose working directory lies beneath its root.
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
