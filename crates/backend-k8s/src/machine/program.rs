//! Running programs in a pod.

use std::time::Duration;

use backend_core::{Error, ErrorKind, Result};
use futures::future::{self, BoxFuture};
use futures::{FutureExt as _, StreamExt as _, TryFutureExt as _, stream};
use sandbox_shell::HostedMachine as _;
use sandbox_wire::{Process, Spawn};
use tokio::time::{Instant, timeout};

use super::{K8sMachine, Run};
use crate::deliver;
use crate::exec::{exec, exec_unlogged};
use crate::stream::UNKNOWN_END;

/// Enters a directory and sets variables, which a program in a pod cannot be given. `$1`
/// is the directory; variables and the program follow.
const ENTER: &str = r#"cd "$1" && shift && exec env "$@""#;

/// The exit code after KILL, which is also that of programs whose pod ended.
const KILLED: i32 = 137;
/// The exit codes of programs that could not be run.
const NOT_RUN: [i32; 2] = [126, 127];

/// The time in which a node tells the cluster why a container has ended, and with it a
/// stream. If the node could not run a program, or the agent was killed, it probably has, and
/// there is more time.
const NOTICE: Duration = Duration::from_secs(3);
const LATE_NOTICE: Duration = Duration::from_secs(8);

/// The time for the exit code after the output has ended.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// How a program ended, in a form that can be told twice.
type Ended = std::result::Result<i32, (ErrorKind, String)>;

impl K8sMachine {
    pub(super) async fn start_program(&self, program: Spawn) -> Result<Process> {
        let core = &self.0;
        let (cluster, pod) = (&core.config.cluster, core.config.name.as_str());
        let run = self.current_run();
        let (undelivered, is_agent) = core.agent_of(&program);
        let started = match &undelivered {
            Some(agent) => {
                let arguments = program.argv.get(1..).unwrap_or_default();
                let directory = core.agent_directory()?;
                deliver::send_agent(cluster, pod, agent, &directory, arguments).await
            }
            None if is_agent => exec(cluster, pod, &program.argv, program.stdin).await,
            None => exec_unlogged(cluster, pod, &command_line(&program), program.stdin).await,
        };
        let process = match started {
            Ok(process) => process,
            Err(error) => {
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unavailable) {
                    // The container may have ended just now.
                    core.state().suspect_until = Some(Instant::now() + NOTICE);
                }
                return Err(core.explain(error).await);
            }
        };
        if undelivered.is_some() {
            core.state().placed = true;
        }
        Ok(self.observed(process, run, is_agent))
    }

    /// Notes the end of a program, and judges its exit code.
    fn observed(&self, process: Process, run: Option<Run>, is_agent: bool) -> Process {
        let Process {
            stdin,
            output,
            exit,
            ..
        } = process;
        let ended: BoxFuture<'static, Ended> = exit
            .map_err(|error| (error.kind(), error.message().to_owned()))
            .boxed();
        let ended = ended.shared();
        let (machine, noted) = (self.clone(), ended.clone());
        let note = async move {
            let ended = timeout(EXIT_TIMEOUT, noted).await;
            machine.note_end(ended.ok(), is_agent);
        };
        let machine = self.clone();
        let output = output.inspect(move |piece| {
            if let Err(error) = piece {
                machine.0.state().suspect_until = Some(notice_after(error.message()));
            }
        });
        let output = output.chain(stream::once(note).filter_map(|()| future::ready(None)));
        let machine = self.clone();
        let exit = async move {
            let ended = ended.await;
            let ended = ended.map_err(|(kind, message)| Error::new(kind, message));
            machine.judge_exit(ended, run).await
        };
        Process::new(stdin, output.boxed(), exit.boxed())
    }

    /// Notes an end that may be that of the pod. Agents end only with their stream.
    fn note_end(&self, ended: Option<Ended>, is_agent: bool) {
        let mut state = self.0.state();
        match ended {
            Some(Ok(code)) if is_agent && NOT_RUN.contains(&code) => state.placed = false,
            Some(Ok(code)) if !is_agent && code != KILLED => {}
            Some(Ok(KILLED)) if is_agent => {
                state.suspect_until = Some(Instant::now() + LATE_NOTICE);
            }
            Some(Err((_, said))) => state.suspect_until = Some(notice_after(&said)),
            _ => state.suspect_until = Some(Instant::now() + NOTICE),
        }
    }
}

/// Returns until when a node may take to tell that the container has ended, after a stream
/// failed for this reason.
fn notice_after(reason: &str) -> Instant {
    let notice = match reason.starts_with(UNKNOWN_END) {
        true => LATE_NOTICE,
        false => NOTICE,
    };
    Instant::now() + notice
}

/// Returns the command line that runs a program in its directory and with its variables.
fn command_line(program: &Spawn) -> Vec<String> {
    if program.directory.is_none() && program.environment.is_empty() {
        return program.argv.clone();
    }
    let directory = program.directory.as_ref();
    let directory = directory.map_or(".", |directory| directory.as_str());
    let mut line: Vec<String> = ["sh", "-c", ENTER, "sh", directory]
        .map(str::to_owned)
        .into();
    let variables = program.environment.iter();
    line.extend(variables.map(|(name, value)| format!("{name}={value}")));
    line.extend_from_slice(&program.argv);
    line
}

#[cfg(test)]
mod tests {
    use backend_core::VPath;

    use super::*;

    #[test]
    fn a_program_gets_its_directory_and_its_variables() {
        let plain = Spawn::new(["agent", "--directory", "/work"]).stdin(true);
        assert_eq!(command_line(&plain), ["agent", "--directory", "/work"]);
        let other = Spawn::new(["sh", "-c", "true"])
            .directory(VPath::root())
            .env("LC_ALL", "C");
        assert_eq!(
            command_line(&other),
            ["sh", "-c", ENTER, "sh", "/", "LC_ALL=C", "sh", "-c", "true"]
        );
        let here = Spawn::new(["true"]).env("A", "b c");
        assert_eq!(
            command_line(&here),
            ["sh", "-c", ENTER, "sh", ".", "A=b c", "true"]
        );
    }
}
