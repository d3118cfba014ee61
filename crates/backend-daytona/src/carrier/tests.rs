//! The lines that carry input and output of a program without an agent.

use std::io::Write as _;
use std::process::{Command, Stdio};
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
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", SCRIPT, "sh", "/nothing/here", "/"]);
    let ended = shell.env("PATH", empty.path()).output().unwrap();
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(printed, "!missing base64\n");
}

/// Returns a carrier without a service, and the sender of what it prints.
fn carrier() -> (mpsc::Sender<Result<Piece>>, Carrier) {
    let account = Account::builder().api_key("k").build().unwrap();
    let toolbox = Toolbox::new(account, "http://127.0.0.1:1".to_owned());
    let (sender, pieces) = mpsc::channel(PIECES);
    let carrier = Carrier {
        lines: Lines {
            address: Address::new(toolbox, "session".to_owned()),
            number: 0,
            sent: Arc::new(Notify::new()),
        },
        pieces,
        passed: 0,
        sessions: Arc::default(),
        is_forgotten: true,
    };
    (sender, carrier)
}

#[tokio::test]
async fn a_missing_tool_is_told_to_callers() {
    let (sender, carrier) = carrier();
    let missing = Piece::Missing("base64".to_owned());
    sender.send(Ok(missing)).await.unwrap();
    let (process, driver) = drive::process(carrier, false, Weak::new(), 1);
    let Process {
        mut output, exit, ..
    } = process;
    let (printed, exit, ()) = tokio::join!(output.next(), exit, driver);
    let error = printed.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("no 'base64'"), "{error}");
    assert_eq!(exit.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn programs_that_have_ended_are_forgotten() {
    let carriers = Carriers::new(VPath::root());
    for _ in 0..3 {
        let (sender, one) = carrier();
        let (process, driver) = drive::process(one, false, Arc::downgrade(&carriers.0), 1);
        sender.send(Ok(Piece::End(0))).await.unwrap();
        driver.await;
        drop(process);
    }
    assert!(lock(&carriers.0.ending).is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_next_program_waits_for_a_carrier_that_is_about_to_be_idle() {
    let carriers = Carriers::new(VPath::root());
    let home = &carriers.0;
    let (sender, one) = carrier();
    let (process, driver) = drive::process(one, false, Arc::downgrade(home), 1);
    tokio::spawn(driver);
    assert!(home.take_soon(1).await.is_none(), "a call waits for it");
    // The call has its answer before the carrier says that the program has ended.
    drop(process);
    let later = tokio::spawn(async move {
        tokio::time::sleep(ENDING_WAIT / 2).await;
        sender.send(Ok(Piece::End(0))).await.unwrap();
        sender
    });
    let taken = home.take_soon(1).await;
    let _sender = later.await.unwrap();
    let (process, driver) = drive::process(taken.unwrap(), false, Arc::downgrade(home), 1);
    tokio::spawn(driver);
    drop(process);
    let begun = tokio::time::Instant::now();
    assert!(home.take_soon(1).await.is_none(), "it does not end");
    assert_eq!(begun.elapsed(), ENDING_WAIT);
}

/// Runs a carrier, whose directory is `$D`. Returns its output and its error output.
fn printed(lines: &str) -> [String; 2] {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("own");
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", SCRIPT, "sh"]).arg(&directory).arg("/");
    shell.env("D", &directory);
    shell.stdin(Stdio::piped());
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    let mut input = shell.stdin.take().unwrap();
    input.write_all(lines.as_bytes()).unwrap();
    drop(input);
    let ended = shell.wait_with_output().unwrap();
    [ended.stdout, ended.stderr].map(|text| String::from_utf8(text).unwrap())
}

/// Runs programs without input. Returns the output of their carrier.
fn carried(programs: &[&str]) -> String {
    let mut lines = String::new();
    for (number, program) in programs.iter().enumerate() {
        let text = STANDARD.encode(program);
        let number = 2 * number + 1;
        lines.push_str(&format!("{number} p {text}\n{} r n\n", number + 1));
    }
    lines.push_str("1000 q\n");
    let [output, _] = printed(&lines);
    output
}

#[test]
fn the_end_of_a_program_needs_no_file() {
    let removes = "rm -rf \"$D\"; exit 4";
    let printed = carried(&["exit 3", removes, "exit 5"]);
    assert_eq!(printed, "!end 3\n!end 4\n!end 5\n");
}

#[test]
fn a_carrier_that_prints_nothing_any_more_runs_no_other_program() {
    let printed = carried(&[": >\"$D/detached\"; exit 3", "echo lost"]);
    assert_eq!(printed, "!end 3\n");
}

#[test]
fn input_that_is_missing_or_mixed_is_noticed() {
    let program = format!("1 p {}\n2 r i\n", STANDARD.encode("exec cat"));
    let with = |input: &str| {
        let [output, errors] = printed(&format!("{program}{input}1000 q\n"));
        let pieces = output.lines().filter(|line| !line.starts_with('!'));
        let pieces = pieces.map(|line| STANDARD.decode(line).unwrap());
        let output = String::from_utf8(pieces.collect::<Vec<_>>().concat()).unwrap();
        (output, errors)
    };
    let (one, two) = (STANDARD.encode("one "), STANDARD.encode("two "));
    let again = format!("3 i {one}\n4 i {two}\n3 i {one}\n5 e\n");
    let mixed = format!("3 i {one}\n4 i dH4 i {two}\nd28g\n4 4 i {two}\n4 i {two}\n5 e\n");
    for input in [again, mixed] {
        let (output, errors) = with(&input);
        assert_eq!((&*output, &*errors), ("one two ", "!end 0\n"), "{input}");
    }
    for lost in ["4 i dH4 i dHdv\n5 i eA==\n", "5 i eA==\n", "4 f none\n"] {
        let (_, errors) = with(&format!("3 i {one}\n{lost}6 e\n"));
        assert!(errors.contains("!lost input\n"), "{lost}: {errors}");
    }
}
