//! Tests of recognising and locating the agent.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use proptest::prelude::*;

use super::*;

/// Returns a program with this machine number and these program headers.
fn program(machine: u16, entries: &[u32]) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend(2u16.to_le_bytes());
    bytes.extend(machine.to_le_bytes());
    bytes.resize(32, 0);
    bytes.extend(64u64.to_le_bytes());
    bytes.resize(54, 0);
    bytes.extend(56u16.to_le_bytes());
    bytes.extend((entries.len() as u16).to_le_bytes());
    bytes.resize(64, 0);
    for entry in entries {
        let start = bytes.len();
        bytes.extend(entry.to_le_bytes());
        bytes.resize(start + 56, 0);
    }
    bytes
}

fn place(directory: &Path, bytes: &[u8]) -> PathBuf {
    let path = directory.join(PROGRAM);
    std::fs::create_dir_all(directory).unwrap();
    std::fs::write(&path, bytes).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path
}

fn examined(bytes: &[u8]) -> std::result::Result<&'static str, String> {
    elf::examine(&mut io::Cursor::new(bytes))
}

#[test]
fn a_static_program_is_taken_and_its_processor_told() {
    assert_eq!(examined(&program(62, &[1, 1, 2])), Ok("amd64"));
    assert_eq!(examined(&program(183, &[6])), Ok("arm64"));
}

#[test]
fn anything_else_is_refused_with_the_reason() {
    let mut relocatable = program(62, &[1]);
    relocatable[16] = 1;
    let mut small = program(62, &[1]);
    small[4] = 1;
    let mut elsewhere = program(62, &[1]);
    elsewhere[32..40].fill(0xff);
    let mut cut = program(62, &[1, 1]);
    cut.truncate(130);
    for (bytes, expected) in [
        (b"#!/bin/sh\n".to_vec(), "64-bit Linux program"),
        (Vec::new(), "64-bit Linux program"),
        (relocatable, "64-bit Linux program"),
        (small, "64-bit Linux program"),
        (program(4711, &[1]), "processor 4711"),
        (program(62, &[1, 3, 1]), "shared libraries"),
        (program(62, &[]), "damaged"),
        (program(62, &[1; 300]), "damaged"),
        (elsewhere, "damaged"),
        (cut, "damaged"),
    ] {
        let problem = examined(&bytes).unwrap_err();
        assert!(problem.contains(expected), "{expected}: {problem}");
    }
}

#[test]
fn the_path_must_lead_to_an_executable_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = place(directory.path(), &program(62, &[1]));
    let agent = AgentBinary::new(&path).unwrap();
    assert_eq!((agent.path(), agent.arch()), (path.as_path(), "amd64"));
    assert_eq!(agent.digest().unwrap(), ContentHash::of(&program(62, &[1])));
    let refused = |path: &Path, expected: &str| {
        let error = AgentBinary::new(path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.message().contains(expected), "{error}");
        assert!(
            error.message().contains("agentbox agent install"),
            "{error}"
        );
    };
    refused(directory.path(), "not a file");
    // Nothing ever writes to the FIFO, so opening it must not block.
    let fifo = directory.path().join("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o755);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    refused(&fifo, "not a file");
    refused(&directory.path().join("missing"), "No such file");
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    refused(&path, "not executable");
    std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(MAX_BYTES + 1).unwrap();
    refused(&path, "more than");
    assert_eq!(agent.content().unwrap_err().kind(), ErrorKind::Config);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(agent.digest().unwrap_err().kind(), ErrorKind::Config);
}

#[test]
fn the_variable_beats_the_neighbour_which_beats_the_path() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str, bytes: &[u8]| place(&directory.path().join(name), bytes);
    let good = program(62, &[1]);
    let (named, beside, installed) = (at("n", &good), at("b", &good), at("p", &good));
    let dynamic = at("d", &program(62, &[3]));
    let path = std::env::join_paths([
        Path::new("relative"),
        dynamic.parent().unwrap(),
        installed.parent().unwrap(),
    ]);
    let path = path.unwrap();
    let found = |named: Option<&Path>, beside: &Path| {
        let named = named.map(OsString::from);
        find(named, Some(beside.to_owned()), Some(&path)).map(|found| found.unwrap().path)
    };
    assert_eq!(found(Some(&named), &beside).unwrap(), named);
    assert_eq!(found(Some(Path::new("")), &beside).unwrap(), beside);
    // An unusable neighbour is skipped; an unusable named one is an error.
    assert_eq!(found(None, &dynamic).unwrap(), installed);
    assert_eq!(found(None, Path::new("/nothing")).unwrap(), installed);
    let error = found(Some(&dynamic), &beside).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.message().starts_with(VARIABLE), "{error}");
    let next = "; unset SANDBOX_AGENT, or name an agent";
    assert!(error.message().ends_with(next), "{error}");
    assert!(!error.message().contains("install"), "{error}");
    assert_eq!(find(None, None, None).unwrap(), None);
}

#[test]
fn this_test_is_no_agent() {
    let program = std::env::current_exe().unwrap();
    let error = AgentBinary::new(program).unwrap_err();
    assert!(error.message().contains("shared libraries"), "{error}");
    assert_eq!(AgentBinary::locate(), None);
}

proptest! {
    #[test]
    fn no_file_is_too_strange(
        start in prop::sample::select(vec![Vec::new(), b"\x7fELF\x02\x01".to_vec(), program(62, &[1, 3])]),
        rest in prop::collection::vec(any::<u8>(), 0..300),
        changes in prop::collection::vec((0usize..200, any::<u8>()), 0..8),
    ) {
        let mut bytes = [start, rest].concat();
        for (at, byte) in changes {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        let _ = examined(&bytes);
    }
}
