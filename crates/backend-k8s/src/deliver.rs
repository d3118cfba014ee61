//! Delivers the agent into a pod over the stream on which it then runs.
//!
//! A shell in the pod says whether the agent is there already, reads it from its input
//! if not, checks it, and becomes the agent. So delivering takes one program and no
//! further request to the cluster.

use std::pin::Pin;
use std::time::Duration;

use backend_core::{Error, Quoted, Result, VPath};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use sandbox_wire::agent::{AgentBinary, LoadedAgent};
use sandbox_wire::{OutputChunk, Process};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::cluster::Cluster;
use crate::exec::exec;

/// The start of the agent's file name in a pod. The rest identifies its content.
const FILE: &str = "sandbox-agent-";
/// Digits of the digest in the file name.
const DIGITS: usize = 16;

/// Places the agent and becomes it. `$1` is its path, `$2` its size, `$3` its SHA-256;
/// its arguments follow. In a directory that other users of the pod can write to, files
/// of theirs are neither run nor written to: they could change them later.
const RECEIVE: &str = r#"p=$1 n=$2 h=$3
shift 3
check() {
	[ "$(wc -c <"$1")" -eq "$n" ] || return 1
	command -v sha256sum >/dev/null 2>&1 || return 0
	s=$(sha256sum <"$1") && [ "${s%% *}" = "$h" ]
}
receive() {
	mkdir -p "${p%/*}/" && rm -f "$t" && head -c "$n" >"$t" || return 1
	check "$t" || { echo 'the agent arrived damaged' >&2; return 1; }
	chmod 755 "$t" && mv -f "$t" "$p"
}
if [ -h "$p" ] || ! [ -O "$p" ] || ! [ -x "$p" ] || ! check "$p"; then
	echo agentbox: send
	umask 022
	set -C
	t=$p.$$
	receive || { rm -f "$t"; exit 1; }
fi
echo agentbox: run
exec "$p" "$@""#;
/// The lines that it prints.
const SEND: &[u8] = b"agentbox: send";
const RUN: &[u8] = b"agentbox: run";
/// The exit codes if there is no shell to run it.
const NO_SHELL: [i32; 2] = [126, 127];

/// The time for the whole delivery.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(120);
/// Bytes that are taken as one line, and that are kept of error output.
const TEXT_BYTES: usize = 1024;

fn path(agent: &LoadedAgent, directory: &VPath) -> Result<String> {
    let digits = agent.digest.get(..DIGITS).unwrap_or(&agent.digest);
    let path = directory.child(&format!("{FILE}{digits}"))?;
    Ok(path.to_string())
}

/// Returns the path of an agent in a directory of a pod.
///
/// # Errors
///
/// `Config` if the agent cannot be read.
pub(crate) async fn agent_path(agent: &AgentBinary, directory: &VPath) -> Result<String> {
    path(&agent.load().await?, directory)
}

/// Places an agent in a directory of a pod, unless it is there, and runs it.
///
/// # Errors
///
/// `Unsupported` if the pod has no shell; `Unavailable` if the agent cannot be placed, or
/// the pod is gone.
pub(crate) async fn send_agent(
    cluster: &Cluster,
    pod: &str,
    agent: &AgentBinary,
    directory: &VPath,
    arguments: &[String],
) -> Result<Process> {
    let loaded = agent.load().await?;
    let (size, path) = (loaded.content.len(), path(&loaded, directory)?);
    let start = ["sh", "-c", RECEIVE, "sh", &path, &size.to_string()];
    let mut program: Vec<String> = start.map(str::to_owned).into();
    program.push(loaded.digest);
    program.extend_from_slice(arguments);
    let process = exec(cluster, pod, &program, true).await?;
    deliver(process, &loaded.content, &path).await
}

/// Talks to the shell until it has become the agent.
async fn deliver(process: Process, content: &Bytes, path: &str) -> Result<Process> {
    let Process {
        stdin,
        output,
        exit,
        ..
    } = process;
    let stdin = stdin.ok_or_else(|| Error::internal("the shell was started without its input"))?;
    let mut receiver = Receiver {
        stdin,
        output,
        printed: BytesMut::new(),
        stderr: Vec::new(),
    };
    match timeout(DELIVERY_TIMEOUT, receiver.converse(content)).await {
        Ok(Ok(true)) => Ok(receiver.into_process(exit)),
        Ok(Ok(false)) => Err(receiver.explain(exit, path).await),
        Ok(Err(error)) => Err(error),
        Err(_) => {
            let seconds = DELIVERY_TIMEOUT.as_secs();
            Err(Error::unavailable(format!(
                "the agent could not be placed in the pod in {seconds} s; see whether its node is overloaded"
            )))
        }
    }
}

/// The shell that receives the agent.
struct Receiver {
    stdin: Pin<Box<dyn AsyncWrite + Send>>,
    output: BoxStream<'static, Result<OutputChunk>>,
    /// Standard output that is not used yet.
    printed: BytesMut,
    /// The start of the error output.
    stderr: Vec<u8>,
}

impl Receiver {
    /// Sends the agent if it is wanted. Returns whether the shell then runs it; `false`
    /// if it has ended.
    async fn converse(&mut self, content: &Bytes) -> Result<bool> {
        let mut line = self.line().await?;
        if line.as_deref() == Some(SEND) {
            // If the shell ends early, its output says why.
            let _ = self.stdin.write_all(content).await;
            line = self.line().await?;
        }
        match line.as_deref() {
            None => Ok(false),
            Some(RUN) => Ok(true),
            Some(other) => {
                let text = String::from_utf8_lossy(other);
                Err(Error::unavailable(format!(
                    "the shell in the pod printed {} instead of taking the agent; check that the image runs `sh` as it is given",
                    Quoted::new(&text)
                )))
            }
        }
    }

    /// Reads a line of standard output. `None` if the output has ended.
    async fn line(&mut self) -> Result<Option<Bytes>> {
        loop {
            let end = self.printed.iter().position(|byte| *byte == b'\n');
            if let Some(end) = end {
                let mut line = self.printed.split_to(end + 1);
                line.truncate(end);
                return Ok(Some(line.freeze()));
            }
            if self.printed.len() > TEXT_BYTES {
                return Ok(Some(self.printed.split_to(TEXT_BYTES).freeze()));
            }
            match self.output.next().await.transpose()? {
                Some(OutputChunk::Stdout(bytes)) => self.printed.extend_from_slice(&bytes),
                Some(OutputChunk::Stderr(bytes)) => {
                    let room = TEXT_BYTES.saturating_sub(self.stderr.len());
                    self.stderr.extend(bytes.iter().take(room));
                }
                None => return Ok(None),
            }
        }
    }

    /// Returns the agent that the shell became.
    fn into_process(self, exit: BoxFuture<'static, Result<i32>>) -> Process {
        // The agent may have said something since.
        let first = (!self.printed.is_empty()).then(|| OutputChunk::Stdout(self.printed.freeze()));
        let output = stream::iter(first.map(Ok)).chain(self.output);
        Process::new(Some(self.stdin), output.boxed(), exit)
    }

    /// Returns the reason why the shell ended without the agent.
    async fn explain(self, exit: BoxFuture<'static, Result<i32>>, path: &str) -> Error {
        let said = String::from_utf8_lossy(&self.stderr);
        let said = Quoted::new(said.trim());
        match exit.await {
            Err(error) => error,
            Ok(code) if NO_SHELL.contains(&code) => Error::unsupported(format!(
                "the agent cannot be placed: there is no `sh` in the pod, where {said} was said; choose an image with a shell, or deliver the agent by an init container"
            )),
            Ok(code) => Error::unavailable(format!(
                "the agent could not be written to {path} in the pod: the shell ended with code {code} and said {said}; give it a writable volume there"
            )),
        }
    }
}

#[cfg(test)]
mod tests;
