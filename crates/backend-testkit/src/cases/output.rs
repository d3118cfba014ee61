//! A command's output: every byte of it, or both ends and the number of missing bytes.

use std::time::Duration;

use backend_core::limits::OUTPUT_BYTES;
use backend_core::ops::{Command, CommandStatus, Streams};

use crate::env::Env;
use crate::failure::CaseResult;
use crate::{check, check_eq};

/// The two streams are returned separately.
pub async fn streams_are_apart(t: &Env) -> CaseResult {
    let outcome = t.run("echo out; echo err >&2; echo out again").await?;
    check_eq!(outcome.stdout.text(), "out\nout again\n")?;
    check_eq!(outcome.stderr.text(), "err\n")?;
    check!(!outcome.stdout.is_truncated() && !outcome.stderr.is_truncated())
}

/// Merged streams keep the exact order in which they were printed.
pub async fn merged_streams_keep_their_order(t: &Env) -> CaseResult {
    let line = "i=0; while [ $i -lt 500 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done";
    let command = Command::new(line).streams(Streams::Merged);
    let outcome = t.sandbox()?.execute(command).await?;
    let expected: String = (0..500).map(|i| format!("o{i}\ne{i}\n")).collect();
    check!(
        outcome.stdout.text() == expected,
        "{}",
        outcome.stdout.text()
    )?;
    check!(outcome.stderr.head.is_empty())
}

/// Bytes that are not text are returned unchanged.
pub async fn bytes_are_kept(t: &Env) -> CaseResult {
    let outcome = t
        .run(r"printf '\377\000\376\r\n'; printf '\303' >&2")
        .await?;
    check_eq!(&outcome.stdout.head[..], b"\xff\0\xfe\r\n")?;
    check_eq!(&outcome.stderr.head[..], b"\xc3")
}

/// Empty output is empty, and no final newline is added.
pub async fn nothing_is_added(t: &Env) -> CaseResult {
    let outcome = t.run("true").await?;
    check!(outcome.stdout.head.is_empty() && outcome.stderr.head.is_empty())?;
    check!(outcome.stdout.tail.is_empty() && !outcome.stdout.is_truncated())?;
    let outcome = t.run("printf 'no newline'").await?;
    check_eq!(&outcome.stdout.head[..], b"no newline")
}

/// Output over the limit keeps its beginning and its end, and counts the rest. The
/// command keeps running.
pub async fn long_output_keeps_both_ends(t: &Env) -> CaseResult {
    let all: String = (1..=50_000).map(|n| format!("{n}\n")).collect();
    let line = "seq 1 50000; seq 1 50000 >&2; echo ran on > made";
    let command = Command::new(line).output_bytes(1_001);
    let outcome = t.sandbox()?.execute(command).await?;
    check_eq!(outcome.status, CommandStatus::Exited(0))?;
    for output in [&outcome.stdout, &outcome.stderr] {
        check_eq!(&output.head[..], &all.as_bytes()[..501])?;
        check_eq!(&output.tail[..], &all.as_bytes()[all.len() - 500..])?;
        check_eq!(output.dropped, all.len() as u64 - 1_001)?;
        check!(output.text().contains("bytes left out"))?;
    }
    check_eq!(t.get("made").await?, b"ran on\n")
}

/// Output of exactly the limit is complete. One byte more is not.
pub async fn exactly_the_limit_is_whole(t: &Env) -> CaseResult {
    for (limit, dropped) in [(10, 0), (9, 1), (1, 9), (0, 10)] {
        let command = Command::new("printf 0123456789").output_bytes(limit);
        let output = t.sandbox()?.execute(command).await?.stdout;
        check_eq!((limit, output.dropped), (limit, dropped))?;
        check_eq!(output.head.len() + output.tail.len(), limit)?;
    }
    Ok(())
}

/// The default limit applies to each stream.
pub async fn default_limit(t: &Env) -> CaseResult {
    let outcome = t
        .run("yes | head -c 300000; yes | head -c 99999 >&2")
        .await?;
    let kept = outcome.stdout.head.len() + outcome.stdout.tail.len();
    check_eq!((kept, outcome.stdout.dropped), (OUTPUT_BYTES, 200_000))?;
    check_eq!(
        (outcome.stderr.head.len(), outcome.stderr.dropped),
        (99_999, 0)
    )
}

/// Megabytes of output are returned completely if the limit allows it.
pub async fn large_output_is_whole(t: &Env) -> CaseResult {
    let size = 8 * 1024 * 1024;
    let line = format!("head -c {size} /dev/zero; head -c {size} /dev/zero | tr '\\0' x >&2");
    let command = Command::new(line).output_bytes(size);
    let outcome = t.sandbox()?.execute(command).await?;
    check_eq!(
        (outcome.stdout.head.len(), outcome.stdout.dropped),
        (size, 0)
    )?;
    check_eq!(
        (outcome.stderr.head.len(), outcome.stderr.dropped),
        (size, 0)
    )?;
    check!(outcome.stdout.head.iter().all(|byte| *byte == 0))?;
    check!(outcome.stderr.head.iter().all(|byte| *byte == b'x'))
}

/// A command with endless output is ended, and its output so far is returned.
pub async fn endless_output_is_ended(t: &Env) -> CaseResult {
    for line in ["yes", "yes >&2", "yes | cat & yes; wait"] {
        let command = Command::new(line)
            .hard_output_bytes(500_000)
            .output_bytes(1_000)
            .timeout(Duration::from_secs(50));
        let outcome = t.sandbox()?.execute(command).await?;
        check_eq!((line, outcome.status), (line, CommandStatus::OutputLimited))?;
        let output = match line {
            "yes >&2" => outcome.stderr,
            _ => outcome.stdout,
        };
        check_eq!(output.head.len() + output.tail.len(), 1_000)?;
        check!(output.is_truncated())?;
    }
    Ok(())
}

/// Output of exactly the hard limit does not end a command.
pub async fn exactly_the_hard_limit_is_fine(t: &Env) -> CaseResult {
    let line = "head -c 60000 /dev/zero; head -c 40000 /dev/zero >&2";
    let command = Command::new(line).hard_output_bytes(100_000);
    let outcome = t.sandbox()?.execute(command).await?;
    check_eq!(outcome.status, CommandStatus::Exited(0))?;
    check_eq!(outcome.stdout.head.len(), 60_000)
}
