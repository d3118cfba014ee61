//! Running programs in a container.

use std::pin::Pin;
use std::time::Duration;

use backend_core::{Error, Result};
use bollard::container::LogOutput;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::ExecConfig;
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use sandbox_shell::HostedMachine as _;
use sandbox_wire::{OutputChunk, Process, Spawn};
use tokio::io::AsyncWrite;

use super::{Core, DockerMachine};
use crate::spec;

/// Bytes of output that are read at once.
const OUTPUT_CAPACITY: usize = 64 * 1024;
/// Attempts, and the pause between them, to get an exit code that is late.
const ASK_TIMES: u32 = 50;
const ASK_PAUSE: Duration = Duration::from_millis(20);

/// Whether this is the message that the daemon prints instead of the output of a
/// program that could not be started.
fn is_refusal(piece: &LogOutput) -> bool {
    let LogOutput::StdOut { message } = piece else {
        return false;
    };
    message.starts_with(b"OCI runtime exec failed")
}

pub(super) struct Exec {
    pub(super) id: String,
    pub(super) output: BoxStream<'static, Result<LogOutput, bollard::errors::Error>>,
    pub(super) input: Pin<Box<dyn AsyncWrite + Send>>,
}

impl Core {
    /// Starts a program with its output attached.
    pub(super) async fn start_exec(&self, config: ExecConfig) -> Result<Exec> {
        let config = ExecConfig {
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            ..config
        };
        let client = self.config.daemon.client();
        let created = client.create_exec(&self.config.name, config).await;
        let id = self.explained(created).await?.id;
        let options = StartExecOptions {
            output_capacity: Some(OUTPUT_CAPACITY),
            ..StartExecOptions::default()
        };
        let started = client.start_exec(&id, Some(options)).await;
        match self.explained(started).await? {
            StartExecResults::Attached { output, input } => Ok(Exec { id, output, input }),
            StartExecResults::Detached => {
                Err(Error::internal("the daemon started a program detached"))
            }
        }
    }
}

impl DockerMachine {
    pub(super) async fn exec(&self, program: Spawn) -> Result<Process> {
        let core = &self.0;
        let starts = self.current_run();
        let directory = match &program.directory {
            Some(directory) => directory.to_string(),
            // The agent creates its directory if it is missing.
            None if core.is_agent(&program) => "/".to_owned(),
            None => core.config.working_dir.to_string(),
        };
        let environment = program.environment.iter();
        let environment = environment.map(|(name, value)| format!("{name}={value}"));
        let config = ExecConfig {
            attach_stdin: Some(program.stdin),
            tty: Some(false),
            cmd: Some(program.argv.clone()),
            env: Some(environment.collect()),
            working_dir: Some(directory),
            ..ExecConfig::default()
        };
        let Exec { id, output, input } = core.start_exec(config).await?;
        let machine = self.clone();
        let bound = program.argv.first().is_some_and(|path| spec::is_ours(path));
        let output = output.filter_map(move |piece| {
            let machine = machine.clone();
            if bound && piece.as_ref().is_ok_and(is_refusal) {
                // The mount cannot be executed from: the next call uploads the agent.
                machine.0.state().bound = None;
            }
            async move {
                match piece {
                    Ok(LogOutput::StdOut { message } | LogOutput::Console { message }) => {
                        Some(Ok(OutputChunk::Stdout(message)))
                    }
                    Ok(LogOutput::StdErr { message }) => Some(Ok(OutputChunk::Stderr(message))),
                    Ok(LogOutput::StdIn { .. }) => None,
                    Err(error) => Some(Err(machine.0.explain(error).await)),
                }
            }
        });
        let machine = self.clone();
        let exit = async move {
            let code = machine.exit_code(&id).await?;
            machine.judge_exit(Ok(code), starts).await
        };
        Ok(Process::new(
            program.stdin.then_some(input),
            output.boxed(),
            exit.boxed(),
        ))
    }

    /// Returns the exit code of a program whose output has ended.
    async fn exit_code(&self, exec: &str) -> Result<i32> {
        let core = &self.0;
        for _ in 0..ASK_TIMES {
            let asked = core.config.daemon.client().inspect_exec(exec).await;
            let answer = core.explained(asked).await?;
            if let Some(code) = answer.exit_code
                && answer.running != Some(true)
            {
                let gave_none = |_| Error::unavailable("the daemon gave no exit code; try again");
                return i32::try_from(code).map_err(gave_none);
            }
            if let Some(reason) = core.diagnosis().await {
                return Err(reason);
            }
            tokio::time::sleep(ASK_PAUSE).await;
        }
        Err(Error::unavailable(
            "the daemon does not say how a program ended; see its log",
        ))
    }
}
