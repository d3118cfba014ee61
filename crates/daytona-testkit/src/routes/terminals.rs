//! Terminals of the toolbox, over websockets.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::{SinkExt as _, StreamExt as _};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio_tungstenite::tungstenite::Message;

use super::{Routes, Toolbox, read};
use crate::refusal::{Answer, Refusal};
use crate::sandbox::Sandbox;
use crate::service::Service;
use crate::terminals::{Exit, Terminal};
use crate::websocket::{self, Socket, Upgrade};

/// The size of a terminal whose creator sets none.
const DEFAULT_SIZE: (u16, u16) = (80, 24);

/// The largest number of columns and rows.
const MAX_SIDE: u16 = 1000;

/// A subprotocol: the client takes the end of the shell as a message.
const EXIT_CONTROL: &str = "X-Daytona-Pty-Exit-Control";

/// The beginning of a subprotocol with variables, as JSON in base64.
const ENVIRONMENT: &str = "X-Daytona-Pty-Envs~";

pub(super) fn routes() -> Routes {
    Router::new()
        .route("/process/pty", post(create).get(list))
        .route("/process/pty/create-connect", get(create_and_connect))
        .route("/process/pty/{pty}", get(show).delete(delete))
        .route("/process/pty/{pty}/resize", post(resize))
        .route("/process/pty/{pty}/connect", get(connect))
}

fn refuse(status: StatusCode, message: impl Into<String>) -> Refusal {
    Refusal::terminal(status, message)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Create {
    id: String,
    cwd: Option<String>,
    envs: Option<BTreeMap<String, String>>,
    cols: Option<u16>,
    rows: Option<u16>,
    #[serde(default)]
    lazy_start: bool,
}

/// Creates a terminal, and starts its shell unless it is to be started later.
async fn add(sandbox: &Sandbox, request: Create) -> Answer<Arc<Terminal>> {
    if request.id.is_empty() {
        return Err(refuse(
            StatusCode::BAD_REQUEST,
            "PTY session ID is required",
        ));
    }
    let directory = request.cwd.filter(|it| !it.is_empty());
    let size = (
        request.cols.unwrap_or(DEFAULT_SIZE.0),
        request.rows.unwrap_or(DEFAULT_SIZE.1),
    );
    let terminal = Terminal::new(
        request.id,
        directory.unwrap_or_else(|| sandbox.root.home()),
        request.envs.unwrap_or_default(),
        check_size(size)?,
        request.lazy_start,
    );
    if !sandbox.terminals.add(&terminal) {
        let message = format!("PTY session with ID '{}' already exists", terminal.id);
        return Err(refuse(StatusCode::CONFLICT, message));
    }
    if !request.lazy_start {
        terminal
            .start(&sandbox.root)
            .await
            .map_err(Refusal::internal)?;
    }
    Ok(terminal)
}

fn check_size((columns, rows): (u16, u16)) -> Answer<(u16, u16)> {
    let is_valid = |side: u16| (1..=MAX_SIDE).contains(&side);
    if is_valid(columns) && is_valid(rows) {
        return Ok((columns, rows));
    }
    let message = format!("cols and rows must be between 1 and {MAX_SIDE}");
    Err(refuse(StatusCode::BAD_REQUEST, message))
}

async fn create(Toolbox(sandbox): Toolbox, body: Bytes) -> Answer {
    let terminal = add(&sandbox, read(&body)?).await?;
    let answer = Json(json!({"sessionId": terminal.id}));
    Ok((StatusCode::CREATED, answer).into_response())
}

async fn list(Toolbox(sandbox): Toolbox) -> Json<Value> {
    let all = sandbox.terminals.all();
    let all: Vec<_> = all.iter().map(|it| it.document()).collect();
    Json(json!({"sessions": all}))
}

fn missing(id: &str) -> Refusal {
    refuse(StatusCode::NOT_FOUND, format!("PTY session {id} not found"))
}

async fn show(
    Toolbox(sandbox): Toolbox,
    Path((_, id)): Path<(String, String)>,
) -> Answer<Json<Value>> {
    let terminal = sandbox.terminals.get(&id).ok_or_else(|| missing(&id))?;
    Ok(Json(terminal.document()))
}

async fn delete(
    Toolbox(sandbox): Toolbox,
    Path((_, id)): Path<(String, String)>,
) -> Answer<Json<Value>> {
    let terminal = sandbox.terminals.take(&id).ok_or_else(|| missing(&id))?;
    terminal.end();
    Ok(Json(json!({"message": "PTY session deleted"})))
}

#[derive(Deserialize)]
struct Resize {
    cols: u16,
    rows: u16,
}

async fn resize(
    Toolbox(sandbox): Toolbox,
    Path((_, id)): Path<(String, String)>,
    body: Bytes,
) -> Answer<Json<Value>> {
    let request: Resize = read(&body)?;
    let terminal = sandbox.terminals.get(&id).ok_or_else(|| missing(&id))?;
    let resized = terminal.resize(check_size((request.cols, request.rows))?);
    resized.map_err(Refusal::internal)?;
    Ok(Json(terminal.document()))
}

async fn connect(
    State(service): State<Arc<Service>>,
    Toolbox(sandbox): Toolbox,
    Path((_, id)): Path<(String, String)>,
    upgrade: Upgrade,
) -> Answer {
    let terminal = sandbox.terminals.get(&id);
    Ok(serve(&service, upgrade, sandbox, terminal, id))
}

#[derive(Deserialize)]
struct Connect {
    id: String,
    cwd: Option<String>,
    cols: Option<u16>,
    rows: Option<u16>,
}

/// Creates a terminal and connects to it, in one request.
async fn create_and_connect(
    State(service): State<Arc<Service>>,
    Toolbox(sandbox): Toolbox,
    Query(query): Query<Connect>,
    upgrade: Upgrade,
) -> Answer {
    let mut encoded = upgrade
        .protocols
        .iter()
        .filter_map(|it| it.strip_prefix(ENVIRONMENT));
    let envs = match encoded.next() {
        Some(encoded) => {
            let json = URL_SAFE_NO_PAD.decode(encoded).ok();
            let envs = json.and_then(|json| serde_json::from_slice(&json).ok());
            let invalid = || refuse(StatusCode::BAD_REQUEST, "invalid PTY envs");
            Some(envs.ok_or_else(invalid)?)
        }
        None => None,
    };
    let request = Create {
        id: query.id,
        cwd: query.cwd,
        envs,
        cols: query.cols,
        rows: query.rows,
        lazy_start: true,
    };
    let terminal = add(&sandbox, request).await?;
    let id = terminal.id.clone();
    Ok(serve(&service, upgrade, sandbox, Some(terminal), id))
}

/// Accepts a client of a terminal, or tells it that there is none.
fn serve(
    service: &Service,
    upgrade: Upgrade,
    sandbox: Arc<Sandbox>,
    terminal: Option<Arc<Terminal>>,
    id: String,
) -> Response {
    let takes_exit = upgrade.protocols.iter().any(|it| it == EXIT_CONTROL);
    upgrade.accept(service, move |mut socket| async move {
        match terminal {
            Some(terminal) => talk(&mut socket, &sandbox, &terminal, takes_exit).await,
            None => {
                let error = format!("PTY session {id} not found");
                let control = json!({"type": "control", "status": "error", "error": error});
                let _ = socket.send(Message::text(control.to_string())).await;
                websocket::close(&mut socket, 1008, "").await;
            }
        }
    })
}

/// Moves input and output until the shell ends or the client leaves.
///
/// The first message says that the client is connected, and nothing that the server waits
/// for comes before it: the Python SDK gives up if it does not arrive within 100 ms.
async fn talk(socket: &mut Socket, sandbox: &Sandbox, terminal: &Arc<Terminal>, takes_exit: bool) {
    let (mut output, mut exit) = terminal.watch();
    let connected = json!({"type": "control", "status": "connected"});
    if socket
        .send(Message::text(connected.to_string()))
        .await
        .is_err()
    {
        return;
    }
    if let Err(error) = terminal.start(&sandbox.root).await {
        return websocket::close(socket, 1011, &error.to_string()).await;
    }
    loop {
        tokio::select! {
            // Output comes before the end of the shell.
            biased;
            bytes = output.recv() => match bytes {
                Ok(bytes) => {
                    if socket.send(Message::binary(bytes)).await.is_err() {
                        return;
                    }
                }
                Err(RecvError::Lagged(_)) => {
                    return websocket::close(socket, 1008, "slow consumer").await;
                }
                Err(RecvError::Closed) => return,
            },
            message = socket.next() => match message {
                Some(Ok(Message::Binary(bytes))) => type_in(terminal, bytes).await,
                Some(Ok(Message::Text(text))) => type_in(terminal, text.into()).await,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return,
            },
            ended = ended(&mut exit) => {
                let Some(Exit(code)) = ended else {
                    return;
                };
                return say_goodbye(socket, code, takes_exit).await;
            }
        }
    }
}

/// Waits for the end of the shell.
async fn ended(exit: &mut watch::Receiver<Option<Exit>>) -> Option<Exit> {
    let ended = exit.wait_for(Option::is_some).await;
    ended.ok().and_then(|it| *it)
}

async fn type_in(terminal: &Arc<Terminal>, bytes: Bytes) {
    let terminal = Arc::clone(terminal);
    // A terminal whose program reads nothing blocks.
    let _ = spawn_blocking(move || terminal.write(&bytes)).await;
}

/// Tells a client how the shell ended.
async fn say_goodbye(socket: &mut Socket, code: i32, takes_exit: bool) {
    let mut reason = json!({"exitCode": code});
    if code != 0 {
        reason["exitReason"] = json!("non-zero exit");
    }
    if takes_exit {
        let mut control = reason.clone();
        control["type"] = json!("control");
        control["status"] = json!("exited");
        let _ = socket.send(Message::text(control.to_string())).await;
    }
    let status = if code == 0 { 1000 } else { 1011 };
    websocket::close(socket, status, &reason.to_string()).await;
}
