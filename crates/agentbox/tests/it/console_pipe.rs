//! The console without a terminal.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::support::console;

fn command(home: &TempDir) -> Command {
    let mut command = console(home.path());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(home: &TempDir, input: impl AsRef<[u8]>) -> (String, String, Option<i32>) {
    let mut child = command(home).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_ref())
        .unwrap();
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(stdout), text(stderr), status.code())
}

fn home() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn a_script_is_readable() {
    let (out, errors, code) = run(&home(), "write a.txt hello\nread a.txt\n");
    assert_eq!(out, "Wrote 1 line to a.txt\n     1\thello\n");
    assert_eq!((errors.as_str(), code), ("", Some(0)));
}

#[test]
fn it_goes_on_and_the_exit_code_tells() {
    let script = "# a comment\n\nread nope\nwrite a.txt <<EOF\n'one\nEOF\nread a.txt";
    let (out, errors, code) = run(&home(), script);
    assert_eq!(out, "Wrote 1 line to a.txt\n     1\t'one\n");
    assert!(
        errors.starts_with("Error: File 'nope' not found"),
        "{errors}"
    );
    assert_eq!(code, Some(1));
}

#[test]
fn what_means_nothing_fails() {
    for (script, why) in [
        ("read a --ofset 1\n", "read_file has no field 'ofset'"),
        ("write a 'open\n", "ends before its closing '"),
        ("write a <<EOF\nopen\n", "before the line EOF"),
        ("reed_file a\n", "did you mean read_file"),
        ("Read a\n", "did you mean read?"),
        ("HELP\n", "did you mean help?"),
        ("help nothing\n", "there is no tool 'nothing'"),
    ] {
        let (out, errors, code) = run(&home(), script);
        assert_eq!((out.as_str(), code), ("", Some(1)), "{script}");
        assert!(errors.contains(why), "{script}: {errors}");
    }
    let (_, errors, code) = run(&home(), b"ls\n\xff\n");
    assert_eq!(code, Some(1));
    assert!(errors.contains("UTF-8"), "{errors}");
}

#[test]
fn the_text_of_a_tool_that_does_not_exist_is_no_command() {
    let home = home();
    let script = "write a.txt one\nwirte b.txt <<EOF\nrm a.txt\nEOF\nread a.txt\n";
    let (out, errors, code) = run(&home, script);
    assert_eq!(out, "Wrote 1 line to a.txt\n     1\tone\n");
    assert!(errors.contains("there is no tool 'wirte'"), "{errors}");
    assert_eq!(code, Some(1));
}

#[test]
fn nobody_can_be_asked() {
    // The refusal determines the exit code, even if something else fails.
    let (out, errors, code) = run(&home(), "!echo hi\nread nope\n");
    assert_eq!((out.as_str(), code), ("", Some(2)));
    assert!(errors.contains("not a terminal"), "{errors}");
    assert!(errors.contains("allow it in the rules"), "{errors}");
}

#[test]
fn no_control_character_comes_through() {
    let home = home();
    let dir = home.path().join("agentbox-workspace");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("a.txt"), "\x1b[2Jred\x07\n").unwrap();
    let (out, _, code) = run(&home, "read a.txt\nedit a.txt red blue\n");
    assert!(out.contains("␛[2Jred␇"), "{out}");
    assert!(out.contains("+␛[2Jblue"), "{out}");
    assert!(!out.contains('\x1b') && !out.contains('\x07'), "{out:?}");
    assert_eq!(code, Some(0));
}

#[test]
fn quit_and_a_reader_that_leaves() {
    for leave in ["quit", "exit", "q"] {
        let (out, _, code) = run(&home(), format!("{leave}\nls\n"));
        assert_eq!((out.as_str(), code), ("", Some(0)), "{leave}");
    }
    let home = home();
    let mut child = command(&home).spawn().unwrap();
    drop(child.stdout.take());
    let mut script = child.stdin.take().unwrap();
    // The program may have ended before all of it is written.
    let _ = script.write_all("tools\n".repeat(1_000).as_bytes());
    drop(script);
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
}
