//! The conformance suite on a machine without an agent: once with the tools of
//! busybox, once with those of the host.

use crate::support::portable_fixture::PortableFixture;
use crate::support::portable_machine::{busybox_path, host_path};

backend_testkit::conformance! {
    mod busybox;
    fixture = async || PortableFixture::new(busybox_path());
    skipped = 15;
}

backend_testkit::conformance! {
    mod host_tools;
    fixture = async || PortableFixture::new(host_path());
    skipped = 15;
}
