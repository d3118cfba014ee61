//! `state:FILE`.

use crate::support::{TestDir, names};

#[test]
fn a_state_survives() {
    let dir = TestDir::new();
    let call = |tool: &str, arguments: &str| {
        dir.run(&["--backend", "state:files.json", "call", tool, arguments])
    };
    call("write_file", r#"{"path":"a","content":"one"}"#).code(0);
    call(
        "edit_file",
        r#"{"path":"a","old_string":"one","new_string":"two"}"#,
    )
    .code(0);
    call("move_file", r#"{"source":"a","destination":"b/c"}"#).code(0);
    let read = call("read_file", r#"{"path":"/b/c"}"#).code(0);
    assert!(read.out.contains("two"), "{}", read.out);
    assert!(dir.read("files.json").contains("agentbox-state"));
    assert_eq!(
        names(&dir.path("")),
        ["files.json", "home"],
        "nothing else stays"
    );
    // Without a file nothing is kept.
    let state = &[
        "--backend",
        "state",
        "call",
        "read_file",
        r#"{"path":"/b/c"}"#,
    ];
    dir.run(state).code(1);
}

#[test]
fn what_is_no_state_is_not_touched() {
    let dir = TestDir::new();
    dir.file("notes.txt", "notes");
    let arguments = &["--backend", "state:notes.txt", "call", "ls"];
    dir.run(arguments).code(64).complains("notes.txt");
    assert_eq!(dir.read("notes.txt"), "notes");
    let nowhere = &["--backend", "state:no/where.json", "call", "ls"];
    dir.run(nowhere).code(3).complains("give another");
}

#[test]
fn a_link_to_a_state_stays_a_link() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("real")).unwrap();
    std::os::unix::fs::symlink("real/files.json", dir.path("link.json")).unwrap();
    dir.file("real/files.json", "");
    let write = r#"{"path":"a","content":"one"}"#;
    dir.run(&["--backend", "state:link.json", "call", "write_file", write])
        .code(0);
    assert!(dir.path("link.json").is_symlink());
    assert!(dir.read("real/files.json").contains("one"));
}

#[test]
fn two_programs_do_not_share_a_state() {
    let dir = TestDir::new();
    let arguments = &["--backend", "state:files.json", "call", "ls"];
    // Simulates another process that uses the file.
    let file = dir.file("files.json", "");
    let held = std::fs::File::open(file).unwrap();
    held.lock().unwrap();
    let busy = dir.run(arguments).code(3);
    busy.complains("in use by another agentbox");
    // A process that another test is starting has a copy of the handle for a moment, and
    // closing this one alone would leave the lock with it.
    held.unlock().unwrap();
    dir.run(arguments).code(0);
}
