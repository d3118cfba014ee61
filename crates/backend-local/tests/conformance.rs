//! The whole suite on the local backend: in both name spaces, with the kernel's
//! confinement and with our own.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use backend_local::{Commands, NameSpace, Resolution, Supervisor};

#[path = "support/fixture.rs"]
mod fixture;

use fixture::LocalFixture;

fn host_names() -> NameSpace {
    NameSpace::Host {
        allowed: Vec::new(),
    }
}

backend_testkit::conformance! {
    mod virtual_names;
    fixture = async || LocalFixture::new(NameSpace::Virtual, Resolution::Auto);
    skipped = 0;
}

backend_testkit::conformance! {
    mod host_names_too;
    fixture = async || LocalFixture::new(host_names(), Resolution::Auto);
    skipped = 0;
}

backend_testkit::conformance! {
    mod virtual_names_by_components;
    fixture = async || LocalFixture::new(NameSpace::Virtual, Resolution::Components);
    skipped = 0;
}

backend_testkit::conformance! {
    mod host_names_by_components;
    fixture = async || LocalFixture::new(host_names(), Resolution::Components);
    skipped = 0;
}

backend_testkit::conformance! {
    mod without_a_supervisor;
    fixture = async || LocalFixture::with(NameSpace::Virtual, Resolution::Auto, |builder| {
        let commands = Commands::default().supervisor(Supervisor::None);
        builder.enable_execute(true).commands(commands)
    });
    skipped = 0;
}
