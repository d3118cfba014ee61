//! The conformance suite on a machine without an agent: once with the tools of
//! busybox, once with those of the host on a machine that counts as distant.

use std::path::Path;
use std::sync::Arc;

use backend_testkit::{DirectoryFixture, Need, SandboxFixture};
use sandbox_shell::PortableSandbox;

use crate::support::host_machine::{HostMachine, busybox_path, host_path};

/// A directory of this host as a machine. A machine has no outside, and it decides itself
/// whether it can be written to.
fn portable(machine: impl FnOnce(&Path) -> HostMachine) -> DirectoryFixture {
    let fixture = DirectoryFixture::new(|root| {
        let machine = machine(root);
        (Arc::new(PortableSandbox::new(Arc::new(machine))), None)
    });
    let fixture = fixture.host_names();
    fixture.without(&[Need::Outside, Need::ReadOnly])
}

/// The column that all sandboxes without an agent have in common; each also checks its own.
#[test]
fn the_page_of_capabilities_is_current() {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = || {
        let machine = HostMachine::new(directory.path(), host_path());
        PortableSandbox::new(Arc::new(machine))
    };
    let fixture = SandboxFixture::new(sandbox(), sandbox());
    for name in ["docker", "k8s", "daytona"] {
        backend_testkit::test_column(&format!("{name}, portable"), &fixture);
    }
}

backend_testkit::conformance! {
    mod busybox;
    fixture = async || portable(|root| HostMachine::new(root, busybox_path()));
    skipped = 84;

    mod host_tools;
    fixture = async || portable(|root| HostMachine::new(root, host_path()).distant());
    skipped = 84;
}
