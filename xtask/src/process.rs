//! Child processes: printed before they start, with failures never ignored.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike as _};

/// Polling interval for a child with a time limit, and for other conditions.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Runs a command with inherited output streams and fails unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    announce(command);
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", name(command)))?;
    check(command, status)
}

/// Like [`run`], and also passes each line of the standard output to `on_line`. With a label, by
/// which the output of several commands can be told apart, it is shown behind the label and the
/// seconds since the command began.
///
/// Returns whether the command succeeded, because its output matters in both cases.
pub(crate) fn run_observed(
    command: &mut Command,
    label: &str,
    mut on_line: impl FnMut(&str),
) -> Result<bool> {
    announce(command);
    let begun = Instant::now();
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", name(command)))?;
    let stdout = child
        .stdout
        .take()
        .context("the child has no standard output")?;
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.context("cannot read the child's standard output")?;
        // Tests may print anything, so invalid UTF-8 must not end the run.
        let line = String::from_utf8_lossy(&line);
        if label.is_empty() {
            println!("{line}");
        } else {
            println!("{label}{:>3} s: {line}", begun.elapsed().as_secs());
        }
        on_line(&line);
    }
    Ok(child.wait()?.success())
}

/// Runs a command without input and kills it after `limit`.
pub(crate) fn run_limited(command: &mut Command, limit: Duration) -> Result<()> {
    announce(command);
    let mut child = command
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {}", name(command)))?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return check(command, status);
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            bail!("{} ran longer than {} s", name(command), limit.as_secs());
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Returns the output of a command for an input, and prints it. Fails unless the command
/// succeeds.
pub(crate) fn answer(mut command: Command, input: &str) -> Result<String> {
    announce(&command);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", name(&command)))?;
    let mut stdin = child.stdin.take().context("no input")?;
    stdin.write_all(input.as_bytes())?;
    drop(stdin);
    let ended = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    print!("{said}");
    check(&command, ended.status).map(|()| said)
}

/// Calls `check` until it returns `true`, or `limit` has passed. Returns the last result.
pub(crate) fn wait_for(limit: Duration, mut check: impl FnMut() -> Result<bool>) -> Result<bool> {
    let start = Instant::now();
    while !check()? {
        if start.elapsed() > limit {
            return Ok(false);
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(true)
}

/// Returns the standard output of a command that must succeed. Its standard error stays
/// visible.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", name(command)))?;
    check(command, output.status)?;
    String::from_utf8(output.stdout)
        .with_context(|| format!("{} printed something that is not UTF-8", name(command)))
}

/// Whether a command can be started and succeeds. Its output is discarded.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Returns the CPU time of all children that have ended, including their own children.
pub(crate) fn cpu_of_children() -> Duration {
    // It fails only for an argument that the system does not know.
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(Duration::ZERO, |usage| {
        let micros = |time: TimeVal| u64::try_from(time.num_microseconds()).unwrap_or(0);
        Duration::from_micros(micros(usage.user_time()) + micros(usage.system_time()))
    })
}

fn check(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("{} failed ({status})", name(command));
    }
    Ok(())
}

fn announce(command: &Command) {
    println!("$ {}", words(command, usize::MAX));
    // The child writes to the same stream and must not overtake this line. A closed
    // output should not end the run.
    let _ = std::io::stdout().flush();
}

/// Returns the program and its first argument: enough to recognize a command in a short
/// note.
fn name(command: &Command) -> String {
    format!("`{}`", words(command, 2))
}

/// Returns the first `n` words of the command line for people, without shell quoting.
fn words(command: &Command, n: usize) -> String {
    let words = std::iter::once(command.get_program())
        .chain(command.get_args())
        .take(n);
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn failure_names_the_command_and_its_status() {
        let error = run(&mut shell("exit 3")).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c` failed (exit status: 3)");
        assert!(run(&mut shell("exit 0")).is_ok());
    }

    #[test]
    fn a_program_that_does_not_exist_is_an_error() {
        let error = run(&mut Command::new("no-such-program-here")).unwrap_err();
        assert_eq!(error.to_string(), "cannot start `no-such-program-here`");
    }

    #[test]
    fn observed_lines_arrive_even_if_the_command_fails() {
        let mut lines = Vec::new();
        let script = "echo one; printf 'bad \\377\\n'; exit 1";
        let ok = run_observed(&mut shell(script), "", |line| lines.push(line.to_owned())).unwrap();
        assert!(!ok);
        assert_eq!(lines, ["one", "bad \u{fffd}"]);
    }

    #[test]
    fn a_command_over_its_limit_is_ended() {
        let start = Instant::now();
        let error = run_limited(&mut shell("exec sleep 60"), Duration::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c` ran longer than 0 s");
        assert!(start.elapsed() < Duration::from_secs(30));
        assert!(run_limited(&mut shell("exit 0"), Duration::from_secs(60)).is_ok());
    }

    #[test]
    fn a_condition_is_awaited_but_not_forever() {
        let mut n_calls = 0;
        let awaited = wait_for(Duration::from_secs(60), || {
            n_calls += 1;
            Ok(n_calls == 3)
        });
        assert!(awaited.unwrap());
        assert!(!wait_for(Duration::ZERO, || Ok(false)).unwrap());
        assert!(wait_for(Duration::ZERO, || bail!("no")).is_err());
    }

    #[test]
    fn what_children_compute_is_counted() {
        let before = cpu_of_children();
        run(&mut shell(
            "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done",
        ))
        .unwrap();
        assert!(cpu_of_children() > before);
    }

    #[test]
    fn output_is_the_standard_output() {
        assert_eq!(output(&mut shell("echo hello")).unwrap(), "hello\n");
        assert!(output(&mut shell("exit 1")).is_err());
    }
}
