//! Starts a program in a pod.

use std::time::Duration;

use backend_core::{Error, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::Resource as _;
use kube::api::{AttachParams, Request};
use sandbox_wire::Process;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::check;
use crate::cluster::Cluster;
use crate::labels::CONTAINER;
use crate::stream;

/// The time in which the cluster must open a stream. On a busy node it takes seconds.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest command line that is part of a request, as it is encoded there. Addresses
/// have at most 64 KiB, and proxies may allow less.
const LINE_BYTES: usize = 32 * 1024;

/// Runs a program whose arguments are the first line of its input. The shell reads that
/// line byte by byte, so the rest is the program's.
const READ_ARGUMENTS: &str = r#"agentbox_nl='
'
IFS= read -r agentbox_line || exit 126
eval "unset agentbox_line; set -- $agentbox_line"
exec "$@""#;

/// The time for a shell to take a long command line.
const LINE_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts a program in a pod, in the directory and with the variables of its container.
/// No shell interprets it.
///
/// Its exit code says nothing about the pod: also a container runtime that was killed
/// ends it with 0.
///
/// # Errors
///
/// `Unavailable` if the cluster does not answer in time; `NotFound` if there is no such
/// pod.
pub(crate) async fn exec(
    cluster: &Cluster,
    pod: &str,
    program: &[String],
    stdin: bool,
) -> Result<Process> {
    check_call(pod, program)?;
    if encoded_bytes(program) <= LINE_BYTES {
        return start(cluster, pod, program, stdin).await;
    }
    exec_unlogged(cluster, pod, program, stdin).await
}

/// Does the same without the program's arguments in the request, whose address servers
/// log: they may be variables with secrets. The image needs a shell.
///
/// # Errors
///
/// As [`exec`].
pub(crate) async fn exec_unlogged(
    cluster: &Cluster,
    pod: &str,
    program: &[String],
    stdin: bool,
) -> Result<Process> {
    check_call(pod, program)?;
    let shell = ["sh", "-c", READ_ARGUMENTS].map(str::to_owned);
    let mut process = start(cluster, pod, &shell, true).await?;
    if let Some(input) = &mut process.stdin {
        send_line(input, &line(program)).await?;
    }
    process.stdin = process.stdin.filter(|_| stdin);
    Ok(process)
}

fn check_call(pod: &str, program: &[String]) -> Result<()> {
    check::name("a pod", pod)?;
    if program.iter().any(|argument| argument.contains('\0')) {
        let text = "an argument of the program holds a NUL character; remove it";
        return Err(Error::invalid_input(text));
    }
    Ok(())
}

/// Sends a command line. A part of one would become another one with the input that
/// follows, so then nothing may follow.
async fn send_line(input: &mut (impl AsyncWrite + Unpin), line: &str) -> Result<()> {
    match timeout(LINE_TIMEOUT, input.write_all(line.as_bytes())).await {
        // If there is no shell, the output and the exit code say so.
        Ok(_) => Ok(()),
        Err(_) => {
            let seconds = LINE_TIMEOUT.as_secs();
            Err(Error::unavailable(format!(
                "the pod did not take a long command line in {seconds} s; try again, and see whether its node is overloaded"
            )))
        }
    }
}

async fn start(cluster: &Cluster, pod: &str, program: &[String], stdin: bool) -> Result<Process> {
    cluster.check_namespace()?;
    let options = AttachParams::default().container(CONTAINER).stdin(stdin);
    let request = Request::new(Pod::url_path(&(), Some(cluster.namespace())));
    let request = request.exec(pod, program, &options);
    let request = request.map_err(|error| cluster.error(kube::Error::BuildRequest(error)))?;
    let key = format!("{}/{pod}", cluster.namespace());
    let slot = cluster.start_slots().take(&key).await?;
    let opened = timeout(OPEN_TIMEOUT, cluster.client().connect(request)).await;
    let opened = opened.map_err(|_| {
        let seconds = OPEN_TIMEOUT.as_secs();
        Error::unavailable(format!(
            "the cluster did not open a stream into the pod {pod} in {seconds} s; try again, and see whether its node is overloaded"
        ))
    })?;
    let connection = opened.map_err(|error| cluster.error(error))?;
    if stdin && !connection.supports_stream_close() {
        return Err(Error::unsupported(
            "the cluster cannot end the input of a program; update it to Kubernetes 1.30 or later",
        ));
    }
    // Nothing was read from it yet, so nothing is lost with the buffers around it.
    stream::attach(connection.into_stream().into_inner(), stdin, slot).await
}

/// The size of arguments in the address of a request.
fn encoded_bytes(program: &[String]) -> usize {
    let bytes = program.iter().flat_map(|argument| argument.bytes());
    let content: usize = bytes
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' | b' ' => 1,
            _ => 3,
        })
        .sum();
    content + program.len() * "&command=".len()
}

/// Writes arguments as one line for a shell, which [`READ_ARGUMENTS`] evaluates.
fn line(program: &[String]) -> String {
    let quote = |argument: &String| {
        let quoted = argument.replace('\'', r"'\''");
        format!("'{}'", quoted.replace('\n', "'\"$agentbox_nl\"'"))
    };
    let mut line = program.iter().map(quote).collect::<Vec<_>>().join(" ");
    line.push('\n');
    line
}

#[cfg(test)]
mod tests;
