//! `agentbox run -- CMD`: runs a command in the sandbox, with live output.

use std::io::ErrorKind;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use backend_core::Backend;
use backend_core::ops::{Command, CommandStatus, Event};
use futures::StreamExt as _;
use permissions::Guarded;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::app::App;
use crate::approval;
use crate::exit::{self, Failure, environment, usage};
use crate::output;
use crate::signals::Interrupts;

/// The signal that the exit code reports when the reader of the output is gone.
const SIGPIPE: i32 = 13;

/// Options of `run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Seconds that the command may run; then it ends with code 124.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// The program and its arguments; for pipes and the like, sh -c 'LINE'. Its
    /// standard input is empty.
    #[arg(required = true, last = true, value_name = "CMD")]
    command: Vec<String>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode, Failure> {
    let interrupts = Interrupts::watch()?;
    let timeout = timeout(args.timeout.or(app.config.run.timeout))?;
    let own = |failure: Failure| {
        if failure.is_usage() {
            failure
        } else {
            failure.code(exit::NOT_RUN)
        }
    };
    let opened = interrupts.unless(app.open()).await?.map_err(own)?;
    // Output is streamed, so its size does not matter.
    let command = Command::new(command_line(&args.command))
        .timeout(timeout)
        .hard_output_bytes(u64::MAX);
    let backend = Arc::clone(&opened.backend);
    let policy = app.policy(&opened);
    let guarded = Guarded::builder(backend)
        .policy(policy)
        .approver(approval::terminal(app.approval_advice(&opened)))
        .build();
    let ran = interrupts.unless(follow(&guarded, command)).await;
    opened.stop().await;
    Ok(ExitCode::from(ran?.map_err(own)?))
}

fn timeout(seconds: Option<f64>) -> Result<Option<Duration>, Failure> {
    let time = seconds.map(|seconds| {
        let time = Duration::try_from_secs_f64(seconds).ok();
        time.filter(|time| !time.is_zero()).ok_or_else(|| {
            usage!("{seconds} is not a valid time; give seconds, or leave --timeout out")
        })
    });
    time.transpose()
}

/// Quotes the arguments as a command line with exactly that meaning.
pub(crate) fn command_line(arguments: &[String]) -> String {
    let quoted: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
    quoted.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Runs the command and forwards its output.
async fn follow(backend: &dyn Backend, command: Command) -> Result<u8, Failure> {
    let sandbox = backend.as_sandbox().ok_or_else(|| {
        Failure::environment("this backend runs no commands; use --backend local:DIR")
    })?;
    let mut events = sandbox.stream(command).await?;
    let (mut out, mut err) = (tokio::io::stdout(), tokio::io::stderr());
    while let Some(event) = events.next().await {
        let written = match event? {
            Event::Stdout(bytes) => write(&mut out, &bytes).await,
            Event::Stderr(bytes) => write(&mut err, &bytes).await,
            Event::Ended(outcome) => return Ok(code(outcome.status)),
            _ => Ok(()),
        };
        if let Err(error) = written {
            if error.kind() == ErrorKind::BrokenPipe {
                return Ok(exit::signalled(SIGPIPE));
            }
            return Err(environment!(
                "the command's output cannot be written: {error}; make room or write elsewhere"
            ));
        }
    }
    Err(Failure::environment(
        "the command ended without a status; try again",
    ))
}

async fn write(out: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> std::io::Result<()> {
    out.write_all(bytes).await?;
    out.flush().await
}

fn code(status: CommandStatus) -> u8 {
    match status {
        CommandStatus::Exited(code) => u8::try_from(code).unwrap_or(u8::MAX),
        CommandStatus::Signalled(signal) => exit::signalled(signal),
        CommandStatus::TimedOut => {
            output::note("agentbox: the command's time ran out");
            exit::TIMED_OUT
        }
        status => {
            output::note(&format!(
                "agentbox: the command did not end by itself: {status}"
            ));
            exit::NOT_RUN
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stay_what_they_are() {
        let words = ["echo", "a b", "$HOME", "it's", "", "--x=1"].map(str::to_owned);
        assert_eq!(
            command_line(&words),
            r"echo 'a b' '$HOME' 'it'\''s' '' '--x=1'"
        );
    }

    #[test]
    fn times_are_positive() {
        assert_eq!(timeout(None).unwrap(), None);
        assert_eq!(
            timeout(Some(0.5)).unwrap(),
            Some(Duration::from_millis(500))
        );
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert!(timeout(Some(bad)).unwrap_err().is_usage());
        }
    }
}
