//! Sessions of the toolbox, and the logs of their commands.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse as _;
use axum::routing::{get, post};
use axum::{Json, Router};
use futures::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{Routes, Toolbox, read};
use crate::refusal::{Answer, Refusal};
use crate::service::Service;
use crate::session_log::{merged, split};
use crate::sessions::{Session, SessionCommand};
use crate::websocket::{self, Socket, Upgrade};

/// The time after the end of a command until its log is closed.
const LINGER: Duration = Duration::from_secs(1);

/// The first version of a client that gets standard output and standard error apart.
const SPLIT_SINCE: [u64; 3] = [0, 167, 0];

pub(super) fn routes() -> Routes {
    const COMMAND: &str = "/process/session/{session}/command/{command}";
    Router::new()
        .route("/process/session", post(create).get(list))
        .route("/process/session/entrypoint", get(entrypoint))
        .route("/process/session/entrypoint/logs", get(entrypoint_logs))
        .route("/process/session/{session}", get(show).delete(delete))
        .route("/process/session/{session}/exec", post(execute))
        .route(COMMAND, get(show_command))
        .route(&format!("{COMMAND}/logs"), get(logs))
        .route(&format!("{COMMAND}/input"), post(send_input))
}

/// The form in which a client gets output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// All output, and both streams apart.
    Split,
    /// All output without marks.
    Merged,
    /// All output with marks.
    Raw,
}

impl Form {
    /// Returns the form for the version that a client sends.
    fn of(headers: &HeaderMap) -> Self {
        let Some(version) = headers.get("x-daytona-sdk-version") else {
            return Self::Merged;
        };
        let version = version.to_str().unwrap_or_default();
        if version.contains("dev") {
            return Self::Split;
        }
        let numbers: Result<Vec<u64>, _> = version
            .trim_start_matches('v')
            .split('.')
            .map(str::parse)
            .collect();
        match numbers {
            Ok(numbers) if numbers.len() == 3 && *numbers >= SPLIT_SINCE[..] => Self::Split,
            Ok(numbers) if numbers.len() == 3 => Self::Merged,
            _ => Self::Raw,
        }
    }

    /// Returns `output`, `stdout` and `stderr`.
    fn show(self, log: &[u8]) -> Value {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match self {
            Self::Split => {
                let (stdout, stderr) = split(log);
                json!({"output": text(log), "stdout": text(&stdout), "stderr": text(&stderr)})
            }
            Self::Merged => json!({"output": text(&merged(log)), "stdout": null, "stderr": null}),
            Self::Raw => json!({"output": text(log), "stdout": null, "stderr": null}),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Create {
    session_id: String,
}

async fn create(Toolbox(sandbox): Toolbox, body: Bytes) -> Answer<StatusCode> {
    let request: Create = read(&body)?;
    if request.session_id.is_empty() {
        let message = "bad request: sessionId is required";
        return Err(Refusal::toolbox(StatusCode::BAD_REQUEST, message));
    }
    let created = sandbox
        .sessions
        .create(&sandbox.root, &request.session_id)
        .await;
    if created.map_err(Refusal::internal)? {
        Ok(StatusCode::CREATED)
    } else {
        let message = "conflict: session already exists";
        Err(Refusal::toolbox(StatusCode::CONFLICT, message))
    }
}

fn missing(what: &str) -> Refusal {
    let message = format!("not found: {what} not found");
    Refusal::toolbox(StatusCode::NOT_FOUND, message)
}

fn find(toolbox: &Toolbox, name: &str) -> Answer<Arc<Session>> {
    let session = toolbox.0.sessions.get(name);
    session.ok_or_else(|| missing("session"))
}

fn find_command(toolbox: &Toolbox, name: &str, id: &str) -> Answer<Arc<SessionCommand>> {
    let command = find(toolbox, name)?.command(id);
    command.ok_or_else(|| missing("command"))
}

fn describe_command(command: &SessionCommand) -> Value {
    let mut described = json!({"id": command.id, "command": command.line});
    if let Some(code) = *command.exit_code.borrow() {
        described["exitCode"] = json!(code);
    }
    described
}

fn describe(name: &str, session: &Session) -> Value {
    let commands = session.commands();
    let commands: Vec<_> = commands.iter().map(|it| describe_command(it)).collect();
    json!({"sessionId": name, "commands": commands})
}

async fn list(Toolbox(sandbox): Toolbox) -> Json<Value> {
    let all = sandbox.sessions.all();
    let described = all.iter().map(|(name, session)| describe(name, session));
    Json(described.collect())
}

async fn show(toolbox: Toolbox, Path((_, name)): Path<(String, String)>) -> Answer<Json<Value>> {
    let session = find(&toolbox, &name)?;
    Ok(Json(describe(&name, &session)))
}

async fn entrypoint(_: Toolbox) -> Json<Value> {
    Json(json!({"sessionId": "entrypoint", "commands": []}))
}

async fn entrypoint_logs(_: Toolbox) -> Json<Value> {
    Json(json!({"output": "", "stdout": "", "stderr": ""}))
}

async fn delete(toolbox: Toolbox, Path((_, name)): Path<(String, String)>) -> Answer<StatusCode> {
    let session = toolbox.0.sessions.take(&name);
    session.ok_or_else(|| missing("session"))?.end().await;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Execute {
    command: String,
    #[serde(default)]
    run_async: bool,
    #[serde(default, rename = "async")]
    is_async: bool,
    #[serde(default)]
    suppress_input_echo: bool,
}

async fn execute(
    toolbox: Toolbox,
    Path((_, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let request: Execute = read(&body)?;
    let failed = |error: &str| {
        let message = format!("failed to execute command: {error}");
        Refusal::toolbox(StatusCode::INTERNAL_SERVER_ERROR, message)
    };
    let session = toolbox.0.sessions.get(&name);
    let session = session.ok_or_else(|| failed("not found: session not found"))?;
    let is_async = request.run_async || request.is_async;
    let is_echoing = !request.suppress_input_echo;
    let command = session.execute(&toolbox.0.root, request.command, is_async, is_echoing);
    let command = command.map_err(|error| match error.kind() {
        std::io::ErrorKind::BrokenPipe => failed("failed to write command: write |1: broken pipe"),
        _ => failed(&error.to_string()),
    })?;
    if is_async {
        let answer = json!({
            "cmdId": command.id, "output": null, "stdout": null, "stderr": null, "exitCode": null,
        });
        return Ok((StatusCode::ACCEPTED, Json(answer)).into_response());
    }
    // If the command ends the shell, this is never answered.
    let mut exit_code = command.exit_code.clone();
    let code = tokio::select! {
        () = session.cancelled.cancelled() => None,
        code = ended(&mut exit_code) => Some(code),
    };
    let Some(code) = code else {
        return Err(failed("session cancelled"));
    };
    let log = command.log.read_from(0).map_err(Refusal::internal)?;
    let mut answer = Form::of(&headers).show(&log);
    answer["cmdId"] = json!(command.id);
    answer["exitCode"] = json!(code);
    Ok(Json(answer).into_response())
}

/// Waits for the exit code of a command, for ever if there will be none.
async fn ended(exit_code: &mut tokio::sync::watch::Receiver<Option<i32>>) -> i32 {
    let known = exit_code
        .wait_for(Option::is_some)
        .await
        .ok()
        .and_then(|it| *it);
    match known {
        Some(code) => code,
        None => std::future::pending().await,
    }
}

/// The names of a sandbox, a session and a command.
type Names = Path<(String, String, String)>;

async fn show_command(toolbox: Toolbox, Path((_, name, id)): Names) -> Answer<Json<Value>> {
    let command = find_command(&toolbox, &name, &id)?;
    Ok(Json(describe_command(&command)))
}

#[derive(Deserialize)]
struct Follow {
    #[serde(default)]
    follow: bool,
}

async fn logs(
    State(service): State<Arc<Service>>,
    toolbox: Toolbox,
    Path((_, name, id)): Names,
    Query(query): Query<Follow>,
    headers: HeaderMap,
    upgrade: Result<Upgrade, Refusal>,
) -> Answer {
    let command = find_command(&toolbox, &name, &id)?;
    if query.follow {
        let cancelled = find(&toolbox, &name)?.cancelled.clone();
        return Ok(upgrade?.accept(&service, |mut socket| async move {
            cancelled
                .run_until_cancelled(follow(&mut socket, &command))
                .await;
            websocket::close(&mut socket, 1000, "").await;
        }));
    }
    let log = command.log.read_from(0).map_err(Refusal::internal)?;
    let form = Form::of(&headers);
    if form == Form::Split {
        return Ok(Json(form.show(&log)).into_response());
    }
    let text = if form == Form::Raw { log } else { merged(&log) };
    Ok(String::from_utf8_lossy(&text).into_owned().into_response())
}

/// Sends a log from its beginning, as it grows, until a while after the command's end or
/// until the client leaves.
async fn follow(socket: &mut Socket, command: &SessionCommand) {
    let (mut length, mut exit_code) = (command.log.length(), command.exit_code.clone());
    let mut position = 0;
    let end = async {
        ended(&mut exit_code).await;
        tokio::time::sleep(LINGER).await;
    };
    tokio::pin!(end);
    loop {
        length.mark_unchanged();
        let Ok(new) = command.log.read_from(position) else {
            return;
        };
        if !new.is_empty() {
            position += u64::try_from(new.len()).unwrap_or(u64::MAX);
            if socket.send(Message::binary(new)).await.is_err() {
                return;
            }
            continue;
        }
        tokio::select! {
            changed = length.changed() => if changed.is_err() { return },
            () = &mut end => return,
            message = socket.next() => if !matches!(message, Some(Ok(_))) { return },
        }
    }
}

#[derive(Deserialize)]
struct Input {
    data: String,
}

async fn send_input(
    toolbox: Toolbox,
    Path((_, name, id)): Names,
    body: Bytes,
) -> Answer<StatusCode> {
    let request: Input = read(&body)?;
    let command = find_command(&toolbox, &name, &id)?;
    if command
        .send(&request.data)
        .await
        .map_err(Refusal::internal)?
    {
        Ok(StatusCode::NO_CONTENT)
    } else {
        let message = "gone: command has already completed";
        Err(Refusal::toolbox(StatusCode::GONE, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_output_follows_the_version_of_the_client() {
        let form = |version: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-daytona-sdk-version", version.parse().unwrap());
            Form::of(&headers)
        };
        for version in ["0.167.0", "0.226.1", "1.0.0", "0.0.0-dev"] {
            assert_eq!(form(version), Form::Split, "{version}");
        }
        assert_eq!(form("0.166.9"), Form::Merged);
        assert_eq!(form("0.1.0"), Form::Merged);
        assert_eq!(form("latest"), Form::Raw);
        assert_eq!(Form::of(&HeaderMap::new()), Form::Merged);
    }
}
