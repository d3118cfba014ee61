//! The conformance suite on a machine without an agent: once with the tools of
//! busybox, once with those of the host.

use std::sync::Arc;

use backend_testkit::{DirectoryFixture, Need};
use sandbox_shell::PortableSandbox;

use crate::support::host_machine::{HostMachine, busybox_path, host_path};

/// A directory of this host with the tools in `path`. A machine has no outside, and it
/// decides itself whether it can be written to.
fn portable(path: String) -> DirectoryFixture {
    let fixture = DirectoryFixture::new(|root| {
        let machine = HostMachine::new(root, path);
        (Arc::new(PortableSandbox::new(Arc::new(machine))), None)
    });
    let fixture = fixture.host_names();
    fixture.without(&[Need::Outside, Need::ReadOnly])
}

backend_testkit::conformance! {
    mod busybox;
    fixture = async || portable(busybox_path());
    skipped = 15;

    mod host_tools;
    fixture = async || portable(host_path());
    skipped = 15;
}
