//! The lines that carry input and output of a program without an agent.

use std::sync::Weak;

use backend_core::ErrorKind;
use futures::StreamExt as _;

use super::*;
use crate::account::Account;

fn text(lines: &[String]) -> String {
    let (last, pieces) = lines.split_last().unwrap();
    assert!(last.starts_with("r "), "{last}");
    let encoded: String = pieces
        .iter()
        .map(|line| line.strip_prefix("p ").unwrap())
        .collect();
    String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
}

#[test]
fn a_program_gets_its_directory_and_its_variables() {
    let program = Spawn::new(["sh", "-c", "echo \"it's\""]);
    let lines = start_lines(&program).unwrap();
    assert_eq!(text(&lines), r#"exec 'sh' '-c' 'echo "it'\''s"'"#);
    assert_eq!(lines.last().unwrap(), "r n");
    let program = program
        .directory(VPath::root())
        .env("LC_ALL", "C")
        .stdin(true);
    let lines = start_lines(&program).unwrap();
    assert!(text(&lines).starts_with("cd '/' && exec env 'LC_ALL=C' 'sh'"));
    assert_eq!(lines.last().unwrap(), "r i");
}

#[test]
fn lines_are_shorter_than_64_kib() {
    let long = "ä".repeat(200_000);
    let lines = start_lines(&Spawn::new(["echo", &long])).unwrap();
    assert!(lines.iter().all(|line| line.len() < 60_000));
    assert_eq!(text(&lines), format!("exec 'echo' '{long}'"));
    assert!(
        encoded('i', &[7; 100_000])
            .iter()
            .all(|line| line.len() < 60_000)
    );
}

#[test]
fn no_argument_holds_a_nul() {
    for program in [Spawn::new(["a", "b\0"]), Spawn::new(["a"]).env("A", "\0")] {
        let error = start_lines(&program).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}

#[test]
fn a_missing_tool_is_named() {
    let empty = tempfile::tempdir().unwrap();
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", SCRIPT, "sh", "/nothing/here", "/"]);
    let ended = shell.env("PATH", empty.path()).output().unwrap();
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(printed, "!missing base64\n");
}

#[tokio::test]
async fn a_missing_tool_is_told_to_callers() {
    let account = Account::builder().api_key("k").build().unwrap();
    let address = Address {
        toolbox: Toolbox::new(account, "http://127.0.0.1:1".to_owned()),
        session: "session".to_owned(),
        command: "command".to_owned(),
    };
    let (sender, pieces) = mpsc::channel(PIECES);
    let missing = Piece::Missing("base64".to_owned());
    sender.send(Ok(missing)).await.unwrap();
    let sent = Arc::new(Notify::new());
    let carrier = Carrier {
        lines: Lines {
            address,
            number: 0,
            sent,
        },
        pieces,
        passed: 0,
        is_forgotten: true,
    };
    let (process, driver) = drive::process(carrier, false, Weak::new(), 1);
    let Process {
        mut output, exit, ..
    } = process;
    let (printed, exit, ()) = tokio::join!(output.next(), exit, driver);
    let error = printed.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("no `base64`"), "{error}");
    assert_eq!(exit.unwrap_err().kind(), ErrorKind::Unavailable);
}
