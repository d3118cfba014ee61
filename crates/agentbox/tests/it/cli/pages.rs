//! The transcripts in `docs/` that need only this machine.

use std::io::{BufRead as _, BufReader};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::TestDir;
use crate::support::pages::transcripts;

#[test]
fn the_transcript_of_watching_is_accurate() {
    let [shown, typed] = &transcripts("watching.md")[..] else {
        panic!("two transcripts");
    };
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("project")).unwrap();
    dir.file("template.rs", "fn main() {}\n");
    let (command, shown) = shown.split_first().unwrap();
    let command = command.strip_prefix("$ agentbox ").unwrap();
    let arguments: Vec<&str> = command
        .split(' ')
        .map(|word| word.trim_matches('\''))
        .collect();
    let mut child = dir.start(&arguments);
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();
    let (note, shown) = shown.split_first().unwrap();
    assert_eq!(&notes.next().unwrap().unwrap(), note);
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut shown = shown.iter();
    for line in typed {
        let line = line.strip_prefix("$ ").unwrap();
        let mut shell = Command::new("sh");
        let ran = shell.args(["-c", line]).current_dir(dir.path(".")).status();
        assert!(ran.unwrap().success(), "{line}");
        if line.contains(".log") {
            continue;
        }
        let expected = shown.next().unwrap();
        // The page says that a new file may be told as changed as well.
        let told = printed.by_ref().map(Result::unwrap);
        let told = told.skip_while(|line| line.starts_with("changed /src/main.rs"));
        assert_eq!(told.take(1).next().as_ref(), Some(expected));
    }
    assert_eq!(shown.next(), None);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
