//! Commands of the toolbox that are answered when they have ended.

use std::collections::BTreeMap;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use axum::body::Bytes;
use axum::routing::post;
use axum::{Json, Router};
use http::StatusCode;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;
use tokio::time::sleep;

use super::{Routes, Toolbox, read};
use crate::paths::Paths;
use crate::refusal::{Answer, Refusal};

pub(super) fn routes() -> Routes {
    Router::new()
        .route("/process/execute", post(execute))
        .route("/process/code-run", post(run_code))
}

#[derive(Deserialize)]
struct Execute {
    command: String,
    timeout: Option<u32>,
    cwd: Option<String>,
    envs: Option<BTreeMap<String, String>>,
}

async fn execute(toolbox: Toolbox, body: Bytes) -> Answer<Json<Value>> {
    let request: Execute = read(&body)?;
    let refuse = |message: &str| {
        let message = format!("bad request: {message}");
        Err(Refusal::toolbox(StatusCode::BAD_REQUEST, message))
    };
    if request.command.trim().is_empty() {
        return refuse("command is required");
    }
    let environment = request.envs.unwrap_or_default();
    if let Some(name) = environment.keys().find(|name| !is_name(name)) {
        return refuse(&format!("invalid environment variable name: {name}"));
    }
    let root = &toolbox.0.root;
    let shell = root.shell();
    let directory = request
        .cwd
        .filter(|it| !it.is_empty())
        .unwrap_or_else(|| root.home());
    let absolute = move |paths: &Paths| {
        let place = paths.find(&directory).ok()?;
        place.path().is_dir().then(|| paths.absolute(&directory))
    };
    let Some(directory) = toolbox.with_files(absolute).await? else {
        let result = format!("fork/exec {shell}: no such file or directory");
        return Ok(Json(json!({"exitCode": -1, "result": result})));
    };
    let mut command = root
        .command(&directory, &[shell])
        .await
        .map_err(Refusal::internal)?;
    command.envs(environment);
    run(command, request.command, request.timeout).await
}

/// Whether a variable can have this name.
fn is_name(name: &str) -> bool {
    let is_word = |it: char| it == '_' || it.is_ascii_alphanumeric();
    name.chars().all(is_word) && name.chars().next().is_some_and(|it| !it.is_ascii_digit())
}

#[derive(Deserialize)]
struct RunCode {
    code: String,
    language: String,
    #[serde(default)]
    argv: Vec<String>,
    envs: Option<BTreeMap<String, String>>,
    timeout: Option<u32>,
}

async fn run_code(toolbox: Toolbox, body: Bytes) -> Answer<Json<Value>> {
    let request: RunCode = read(&body)?;
    let program = match request.language.as_str() {
        "python" => "python3",
        "javascript" => "node",
        language => {
            let message = format!("bad request: unsupported language: {language}");
            return Err(Refusal::toolbox(StatusCode::BAD_REQUEST, message));
        }
    };
    let root = &toolbox.0.root;
    let mut words = vec![program, "-"];
    words.extend(request.argv.iter().map(String::as_str));
    let mut command = root
        .command(&root.home(), &words)
        .await
        .map_err(Refusal::internal)?;
    command.envs(request.envs.unwrap_or_default());
    run(command, request.code, request.timeout).await
}

/// Runs a command with an input, also if the client leaves.
async fn run(command: Command, input: String, timeout: Option<u32>) -> Answer<Json<Value>> {
    let limit = timeout.filter(|seconds| *seconds > 0);
    let limit = limit.map(|seconds| Duration::from_secs(seconds.into()));
    let ended = tokio::spawn(finish(command, input, limit)).await;
    match ended
        .map_err(Refusal::internal)?
        .map_err(Refusal::internal)?
    {
        Some((code, output)) => {
            let result = String::from_utf8_lossy(&output);
            Ok(Json(json!({"exitCode": code, "result": result})))
        }
        None => {
            let message = "request timeout: command execution timeout";
            Err(Refusal::toolbox(StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}

/// Runs a command until it and all programs with its output have ended. At the limit, its
/// process group is killed and its output lost. A program that has left the group delays
/// the end.
async fn finish(
    mut command: Command,
    input: String,
    limit: Option<Duration>,
) -> io::Result<Option<(i32, Vec<u8>)>> {
    // One pipe for both streams keeps their order.
    let (reader, writer) = io::pipe()?;
    command
        .stdin(Stdio::piped())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let mut child = command.spawn()?;
    // It holds the writing ends, which would keep the pipe open.
    drop(command);
    let group = child
        .id()
        .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    if let Some(mut stdin) = child.stdin.take() {
        tokio::spawn(async move {
            // A command that ends early does not read everything.
            let _ = stdin.write_all(input.as_bytes()).await;
        });
    }
    let mut output = Vec::new();
    let mut reader = Receiver::from_owned_fd(reader.into())?;
    let status = {
        let end = async {
            reader.read_to_end(&mut output).await?;
            child.wait().await
        };
        tokio::pin!(end);
        tokio::select! {
            status = &mut end => status?,
            () = expire(limit) => {
                group.map(|group| kill_process_group(group, Signal::KILL));
                end.await?;
                return Ok(None);
            }
        }
    };
    Ok(Some((status.code().unwrap_or(-1), output)))
}

/// Waits for the end of a time, if there is one.
async fn expire(limit: Option<Duration>) {
    match limit {
        Some(limit) => sleep(limit).await,
        None => std::future::pending().await,
    }
}
