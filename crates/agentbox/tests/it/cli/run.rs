//! `run`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Command;

use crate::support::TestDir;

#[test]
fn streams_and_codes_are_passed_through() {
    let dir = TestDir::new();
    let script = "echo out; echo err >&2; exit 7";
    let ended = dir
        .run(&["run", "--backend", "local:.", "--", "sh", "-c", script])
        .code(7);
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("out\n", "err\n"));
    let run = |script: &str| dir.run(&["--backend", "local:.", "run", "--", "sh", "-c", script]);
    run("kill -9 $$").code(137);
    run("exit 255").code(255);
    dir.run(&["--backend", "local:.", "run", "--", "no-such-program"])
        .code(127);
}

#[test]
fn arguments_are_not_read_by_a_shell() {
    let dir = TestDir::new();
    let arguments = ["$HOME", "a  b", "*", "it's", ";ls", "", "-n"];
    let all = [
        &["run", "--backend", "local:.", "--", "printf", "<%s>"],
        &arguments[..],
    ]
    .concat();
    let ended = dir.run(&all).code(0);
    assert_eq!(ended.out, "<$HOME><a  b><*><it's><;ls><><-n>");
}

#[test]
fn output_is_live() {
    let dir = TestDir::new();
    let made = Command::new("mkfifo").arg(dir.path("fifo")).status();
    assert!(made.unwrap().success());
    let script = "echo first; read -r word < fifo; echo \"then $word\"";
    let mut child = dir.start(&["--backend", "local:.", "run", "--", "sh", "-c", script]);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "first\n");
    // The command can continue only now, so the line above was read before its end.
    let mut fifo = std::fs::File::options()
        .write(true)
        .open(dir.path("fifo"))
        .unwrap();
    fifo.write_all(b"this\n").unwrap();
    drop(fifo);
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "then this\n");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_timeout_is_124() {
    let dir = TestDir::new();
    let run = &[
        "--backend",
        "local:.",
        "run",
        "--timeout",
        "0.2",
        "--",
        "sleep",
        "1000",
    ];
    let ended = dir.run(run).code(124);
    assert!(ended.err.contains("time ran out"), "{}", ended.err);
    let run = &["--backend", "local:.", "run", "--", "sleep", "1000"];
    dir.run_with(run, &[("AGENTBOX_RUN_TIMEOUT", "0.2")])
        .code(124);
    let run = &[
        "--backend",
        "local:.",
        "run",
        "--timeout",
        "0",
        "--",
        "true",
    ];
    dir.run(run).code(64).complains("not a valid time");
}

#[test]
fn what_cannot_run_is_125() {
    let dir = TestDir::new();
    let run = ["run", "--", "true"];
    dir.run(&[&["--backend", "state"], &run[..]].concat())
        .code(125)
        .complains("local:DIR");
    let rules = ["--backend", "local:.", "--permissions", "readonly"];
    dir.run(&[&rules[..], &run].concat())
        .code(125)
        .complains("Permission denied for execute on 'true'");
    let rules = ["--backend", "local:.", "--permissions", "default"];
    dir.run(&[&rules[..], &run].concat())
        .code(125)
        .complains("Permission denied: ");
    dir.run(&[&["--backend", "local:none"], &run[..]].concat())
        .code(125)
        .complains("mkdir");
}

#[test]
fn more_than_a_reply_would_hold_goes_through() {
    let dir = TestDir::new();
    let many = "head -c 20000000 /dev/zero";
    let child = dir.start(&["--backend", "local:.", "run", "--", "sh", "-c", many]);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout.len(), 20_000_000);
}

#[test]
fn a_reader_that_goes_ends_the_command() {
    let dir = TestDir::new();
    let mut child = dir.start(&["--backend", "local:.", "run", "--", "yes"]);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    drop(out);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn commands_below_the_required_level_are_refused() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("project")).unwrap();
    let backend = ["--backend", "local:project"];
    let run = |flags: &[&str], variables: &[(&str, &str)]| {
        let arguments = [&["run"], &backend[..], flags, &["--", "touch", "ran"]].concat();
        dir.run_with(&arguments, variables)
    };
    let variable = [("AGENTBOX_REQUIRE_ENFORCEMENT", "view")];
    for refused in [
        run(&["--require-enforcement", "view"], &[]),
        run(&["--require-enforcement", "landlock"], &[]),
        run(&[], &variable),
    ] {
        let refused = refused.code(125);
        assert!(refused.err.contains("'words'"), "{}", refused.err);
        assert!(!dir.path("project/ran").exists());
    }
    // A flag outranks the variable.
    run(&["--require-enforcement", "words"], &variable).code(0);
    assert!(dir.path("project/ran").exists());
    run(&["--require-enforcement", "kernel"], &[]).code(64);
    run(&[], &[("AGENTBOX_REQUIRE_ENFORCEMENT", "kernel")]).code(64);

    let config = ["mcp-config", "claude-code", "--require-enforcement", "view"];
    let shown = dir.run(&[&config[..], &backend].concat()).code(0);
    assert!(
        shown.out.contains("\"--require-enforcement\",\n"),
        "{}",
        shown.out
    );
}
