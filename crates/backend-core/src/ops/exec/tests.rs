//! Tests of commands and their output.

use super::*;
use crate::error::ErrorKind;
use proptest::prelude::*;

#[test]
fn nonsense_is_refused_before_it_runs() {
    let long = Command::new("x".repeat(COMMAND_BYTES + 1));
    for command in [
        Command::new("a\0b"),
        long,
        Command::new("true").timeout(Duration::ZERO),
        Command::new("true").env("", "x"),
        Command::new("true").env("A=B", "x"),
        Command::new("true").env("A", "x\0"),
        Command::new("true").terminal(TerminalSize::new(0, 80)),
        Command::new("true").terminal(TerminalSize::new(24, 0)),
    ] {
        let error = command.check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    let full = Command::new("true")
        .directory(VPath::root())
        .env("A", "b=c")
        .timeout(None)
        .streams(Streams::Merged)
        .output_bytes(1)
        .hard_output_bytes(2)
        .keep_leftovers(true);
    assert!(full.check_without_terminal().is_ok());
    let full = full.terminal(TerminalSize::default());
    assert!(full.check().is_ok());
    let error = full.check_without_terminal().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn statuses_read_well() {
    for (status, text) in [
        (CommandStatus::Exited(3), "exit code 3"),
        (CommandStatus::Signalled(9), "ended by signal 9"),
        (CommandStatus::TimedOut, "timed out"),
        (CommandStatus::OutputLimited, "ended for printing too much"),
    ] {
        assert_eq!(status.to_string(), text);
        assert!(!status.success());
        assert_eq!(ExecuteOutcome::new(status).leftovers, 0);
    }
    assert!(CommandStatus::Exited(0).success());
    let id = ShellId::new("bg_1");
    assert_eq!(id.to_string(), id.as_str());
    let info = ShellInfo::new(id, "sleep 1", Some(7));
    assert_eq!(ShellOutput::new(info.state).dropped, 0);
}

#[test]
fn left_out_output_says_so() {
    let mut buffer = OutputBuffer::new(4);
    buffer.push(b"abcdef");
    assert_eq!(buffer.total(), 6);
    assert_eq!(buffer.finish().text(), "ab\n[... 2 bytes left out ...]\nef");
    assert_eq!(Output::whole("x").text(), "x");
}

proptest! {
    #[test]
    fn keeps_both_ends_of_any_output(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..20), limit in 0usize..40) {
        let mut buffer = OutputBuffer::new(limit);
        pieces.iter().for_each(|piece| buffer.push(piece));
        let all = pieces.concat();
        let output = buffer.finish();
        if all.len() <= limit {
            prop_assert_eq!(&output, &Output::whole(all));
        } else {
            prop_assert_eq!(&output.head[..], &all[..limit.div_ceil(2)]);
            prop_assert_eq!(&output.tail[..], &all[all.len() - limit / 2..]);
            prop_assert_eq!(output.dropped, (all.len() - limit) as u64);
        }
    }
}
