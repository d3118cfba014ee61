//! The conformance suite on the local backend: in both name spaces, with the
//! kernel's path resolution and with our own.

use std::sync::Arc;

use backend_core::VPath;
use backend_local::{
    Commands, Confinement, Landlock, LocalBackend, LocalBuilder, NameSpace, Resolution, Supervisor,
};
use backend_testkit::{CASES, DirectoryFixture, Fixture as _, Need, Outcome, block_on, run_case};

fn host_names() -> NameSpace {
    NameSpace::Host {
        allowed: Vec::new(),
    }
}

/// A directory whose commands have a supervisor.
fn supervised(names: NameSpace, resolution: Resolution) -> DirectoryFixture {
    let program = env!("CARGO_BIN_EXE_agentbox-supervisor");
    let supervisor = Supervisor::Program(program.into());
    let commands = Commands::default().supervisor(supervisor);
    with(names, |builder| {
        builder.resolution(resolution).commands(commands)
    })
}

/// A directory that is opened with further options.
fn with(names: NameSpace, options: impl FnOnce(LocalBuilder) -> LocalBuilder) -> DirectoryFixture {
    let is_virtual = names == NameSpace::Virtual;
    let fixture = DirectoryFixture::new(|root| {
        let builder = options(LocalBackend::builder(root).names(names));
        let read_only = builder.clone().read_only(true).open().unwrap();
        let backend = builder.enable_execute(true).open().unwrap();
        (Arc::new(backend), Some(Arc::new(read_only)))
    });
    if is_virtual {
        fixture
    } else {
        fixture.host_names()
    }
}

backend_testkit::conformance! {
    mod virtual_names;
    fixture = async || supervised(NameSpace::Virtual, Resolution::Auto);
    skipped = 7;

    mod host_names_too;
    fixture = async || supervised(host_names(), Resolution::Auto);
    skipped = 7;

    mod virtual_names_by_components;
    fixture = async || supervised(NameSpace::Virtual, Resolution::Components);
    skipped = 7;

    mod host_names_by_components;
    fixture = async || supervised(host_names(), Resolution::Components);
    skipped = 7;
}

#[test]
fn the_page_of_capabilities_is_current() {
    let fixture = supervised(NameSpace::Virtual, Resolution::Auto);
    backend_testkit::test_column("local", &fixture);
}

// Also with a working directory beneath the root. Commands and files are tested
// separately, so one suite covers both.
backend_testkit::conformance! {
    mod without_a_supervisor;
    fixture = async || with(NameSpace::Virtual, |builder| {
        let commands = Commands::default().supervisor(Supervisor::None);
        let workspace = VPath::parse("/workspace").unwrap();
        builder.working_dir(workspace).create_root(true).commands(commands)
    });
    skipped = 32;
}

// Also with small changes on the caller's thread, for which commands make no difference.
backend_testkit::conformance! {
    mod changes_inline;
    fixture = async || with(NameSpace::Virtual, |builder| {
        let commands = Commands::default().supervisor(Supervisor::None);
        builder.write_inline(true).commands(commands)
    });
    skipped = 32;
}

/// The cases of paths that are kept from commands, where the kernel keeps them.
#[test]
fn what_is_kept_from_commands_is_kept_by_the_kernel() {
    for names in [NameSpace::Virtual, host_names()] {
        let confined = || {
            let program = env!("CARGO_BIN_EXE_agentbox-supervisor");
            let commands = Commands::default()
                .supervisor(Supervisor::Program(program.into()))
                .confinement(Confinement::Landlock(Landlock::new().views(true)));
            with(names.clone(), |builder| builder.commands(commands))
        };
        if let Some(cause) = backend_testkit::processes::mounts_refused() {
            println!("skipped: the system lets no view be mounted: {cause}");
            return;
        }
        assert!(confined().provides(Need::Views));
        let cases: Vec<_> = CASES.iter().filter(|case| case.group == "view").collect();
        assert_eq!(cases.len(), 9);
        for case in cases {
            let outcome = block_on(run_case(case, confined()));
            assert_eq!(outcome, Outcome::Passed, "{} {names:?}", case.id());
        }
    }
}
