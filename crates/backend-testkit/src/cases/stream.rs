//! A command's output while it runs.

use std::time::Duration;

use backend_core::EventStream;
use backend_core::ops::{Command, CommandStatus, Event, ExecuteOutcome, Streams};
use futures::StreamExt as _;

use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::{check, check_eq};

/// Returns both outputs and the outcome of a stream that must succeed.
async fn drain(mut stream: EventStream) -> Result<(Vec<u8>, Vec<u8>, ExecuteOutcome), Failure> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while let Some(event) = stream.next().await {
        match event? {
            Event::Stdout(bytes) => stdout.extend_from_slice(&bytes),
            Event::Stderr(bytes) => stderr.extend_from_slice(&bytes),
            Event::Ended(outcome) => {
                check!(stream.next().await.is_none(), "something after the end")?;
                return Ok((stdout, stderr, outcome));
            }
            other => return Err(Failure::new(format!("unknown event {other:?}"))),
        }
    }
    Err(Failure::new("the stream ended without an outcome"))
}

/// A stream gives the same output as `execute`, and the outcome last.
pub async fn gives_what_execute_gives(t: &Env) -> CaseResult {
    for line in [
        "true",
        "echo out; echo err >&2; exit 3",
        "seq 1 20000; seq 1 20000 >&2",
        "printf '\\377\\000'; kill -TERM $$",
        "no-such-program-anywhere",
    ] {
        let executed = t.run(line).await?;
        let stream = t.sandbox()?.stream(Command::new(line)).await?;
        let (stdout, stderr, outcome) = drain(stream).await?;
        check_eq!((line, outcome.status), (line, executed.status))?;
        check!(stdout == executed.stdout.head || executed.stdout.is_truncated())?;
        check!(stderr == executed.stderr.head || executed.stderr.is_truncated())?;
        check!(outcome.stdout.head.is_empty() && outcome.stderr.head.is_empty())?;
    }
    Ok(())
}

/// Output is delivered before the command ends.
pub async fn tells_while_it_runs(t: &Env) -> CaseResult {
    t.run("mkfifo go").await?;
    let command = Command::new("echo first; cat go; echo last");
    let mut stream = t.sandbox()?.stream(command).await?;
    let first = stream.next().await;
    check!(
        matches!(&first, Some(Ok(Event::Stdout(bytes))) if &bytes[..] == b"first\n"),
        "{first:?}"
    )?;
    // The command waits for this, so the line above arrived while it ran.
    t.run("echo between > go").await?;
    let (stdout, _, outcome) = drain(stream).await?;
    check_eq!(stdout, b"between\nlast\n")?;
    check_eq!(outcome.status, CommandStatus::Exited(0))
}

/// The pieces of each stream arrive in the order in which they were printed. If the
/// streams are merged, the pieces of both do.
pub async fn pieces_keep_their_order(t: &Env) -> CaseResult {
    let line = "i=0; while [ $i -lt 300 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done";
    let stream = t.sandbox()?.stream(Command::new(line)).await?;
    let (stdout, stderr, _) = drain(stream).await?;
    let expected: String = (0..300).map(|i| format!("o{i}\n")).collect();
    check!(stdout == expected.as_bytes())?;
    check!(stderr == expected.replace('o', "e").as_bytes())?;
    let command = Command::new(line).streams(Streams::Merged);
    let (stdout, stderr, _) = drain(t.sandbox()?.stream(command).await?).await?;
    let expected: String = (0..300).map(|i| format!("o{i}\ne{i}\n")).collect();
    check!(stdout == expected.as_bytes() && stderr.is_empty())
}

/// A slow reader gets everything, and other commands do not wait for it.
pub async fn slow_reader_gets_everything(t: &Env) -> CaseResult {
    let size = 4 * 1024 * 1024;
    let line = format!("head -c {size} /dev/zero; echo end >&2");
    let mut stream = t.sandbox()?.stream(Command::new(line)).await?;
    let first = stream.next().await;
    let Some(Ok(Event::Stdout(first))) = first else {
        return Err(Failure::new(format!("no output but {first:?}")));
    };
    for _ in 0..5 {
        check_eq!(t.run("echo other").await?.stdout.text(), "other\n")?;
    }
    let (stdout, stderr, outcome) = drain(stream).await?;
    check_eq!(first.len() + stdout.len(), size)?;
    check_eq!(stderr, b"end\n")?;
    check_eq!(outcome.status, CommandStatus::Exited(0))
}

/// The limit on the output of an outcome does not apply to streamed output.
pub async fn whole_output_goes_by(t: &Env) -> CaseResult {
    let command = Command::new("seq 1 50000").output_bytes(10);
    let (stdout, _, outcome) = drain(t.sandbox()?.stream(command).await?).await?;
    let expected: String = (1..=50_000).map(|n| format!("{n}\n")).collect();
    check!(stdout == expected.as_bytes())?;
    check_eq!(outcome.status, CommandStatus::Exited(0))
}

/// A streamed command is ended if it exceeds its time or output limit.
pub async fn limits_end_it(t: &Env) -> CaseResult {
    let command = Command::new("echo before; sleep 1000").timeout(Duration::from_secs(2));
    let (stdout, _, outcome) = drain(t.sandbox()?.stream(command).await?).await?;
    check_eq!(stdout, b"before\n")?;
    check_eq!(outcome.status, CommandStatus::TimedOut)?;
    let command = Command::new("yes").hard_output_bytes(200_000);
    let (stdout, _, outcome) = drain(t.sandbox()?.stream(command).await?).await?;
    check_eq!(outcome.status, CommandStatus::OutputLimited)?;
    check!(stdout.len() >= 100_000, "only {} bytes", stdout.len())
}

/// Commands that wait for each other all run concurrently.
pub async fn many_wait_for_one_another(t: &Env) -> CaseResult {
    const MANY: usize = 48;
    let gates: Vec<_> = (0..MANY).map(|n| format!("gate{n}")).collect();
    t.run(&format!("mkfifo {}", gates.join(" "))).await?;
    let mut streams = Vec::new();
    for gate in &gates {
        let command = Command::new(format!("echo up; cat {gate}"));
        streams.push(t.sandbox()?.stream(command).await?);
    }
    for stream in &mut streams {
        check!(matches!(stream.next().await, Some(Ok(Event::Stdout(_)))))?;
    }
    // All of them are running, and each waits for its gate.
    let line = format!(
        "for gate in {}; do echo $gate > $gate; done",
        gates.join(" ")
    );
    check!(t.run(&line).await?.status.success())?;
    for (gate, stream) in gates.iter().zip(streams) {
        let (stdout, _, _) = drain(stream).await?;
        check_eq!(stdout, format!("{gate}\n").as_bytes())?;
    }
    Ok(())
}
