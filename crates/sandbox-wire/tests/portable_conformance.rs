//! The whole suite on a machine without an agent: once with the tools of busybox,
//! once with those of the host.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot set up has failed"
)]

#[path = "portable_support/fixture.rs"]
mod fixture;
#[path = "portable_support/machine.rs"]
mod machine;
#[path = "portable_support/pipes.rs"]
mod pipes;

use fixture::PortableFixture;
use machine::{busybox_path, host_path};

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
