//! A terminal of the sandbox, over a websocket.
//!
//! Bytes are keys one way and output the other way. A text is a new size from the browser,
//! and an error for it.

use std::sync::Arc;

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use backend_core::ops::{Command, ShellId, TerminalSize};
use backend_core::{Connection, Sandbox as _};
use examples::web::Failure;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _, future, pin_mut};
use serde::Deserialize;
use serde_json::json;
use sessions::Session;

use crate::App;

/// Bytes of a message from the browser.
const MESSAGE_BYTES: usize = 64 * 1024;

/// bash, or sh where there is none.
const SHELL: &str = "if command -v bash >/dev/null; then exec bash; else exec sh; fi";

/// The size of the terminal on the page.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Size {
    rows: u16,
    columns: u16,
}

impl Size {
    fn terminal(self) -> TerminalSize {
        TerminalSize::new(self.rows, self.columns)
    }
}

/// `GET /sessions/{id}/terminal?rows=24&columns=80`, upgraded to a websocket.
pub(crate) async fn open(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(size): Query<Size>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Failure> {
    size.terminal().check()?;
    let (browser, sandbox) = app.sandbox(&id).await?;
    let place = Arc::clone(&browser.own.0).try_acquire_owned();
    let place = place.map_err(|_| {
        Failure::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the session has too many terminals; close one",
        )
    })?;
    let upgrade = upgrade.max_message_size(MESSAGE_BYTES);
    Ok(upgrade.on_upgrade(move |mut socket| async move {
        match start(&sandbox, size).await {
            Ok((shell, connection)) => {
                pass(socket, connection, &sandbox, &shell).await;
                // Nothing runs on that has no terminal; it may have ended by itself.
                let _ = sandbox.shell_kill(&shell).await;
            }
            Err(error) => {
                let said = json!({"error": error.to_string()}).to_string();
                let _ = socket.send(Message::text(said)).await;
                let _ = socket.send(Message::Close(None)).await;
                // Until the browser has read it.
                while let Some(Ok(_)) = socket.recv().await {}
            }
        }
        drop(place);
    }))
}

async fn start(sandbox: &Session, size: Size) -> backend_core::Result<(ShellId, Connection)> {
    let command = Command::new(SHELL)
        .terminal(size.terminal())
        // A prompt without the path of the directory, which is long.
        .env("PS1", "$ ")
        .env("PROMPT_COMMAND", r"PS1='\W \$ '")
        // Output is shown as it comes, so its size does not matter.
        .hard_output_bytes(u64::MAX);
    let shell = sandbox.shell_start(command).await?.id;
    let connection = sandbox.shell_attach(&shell).await?;
    Ok((shell, connection))
}

/// Passes keys and output on until one side is gone.
async fn pass(socket: WebSocket, connection: Connection, sandbox: &Session, shell: &ShellId) {
    let (to_browser, from_browser) = socket.split();
    // Two loops, not one: a shell that does not read must not keep its output back.
    let output = show(connection.incoming, to_browser);
    let input = read(from_browser, connection.outgoing, sandbox, shell);
    pin_mut!(output, input);
    future::select(output, input).await;
}

async fn show(
    mut incoming: impl futures::Stream<Item = backend_core::Result<bytes::Bytes>> + Unpin,
    mut browser: SplitSink<WebSocket, Message>,
) {
    while let Some(piece) = incoming.next().await {
        let message = match piece {
            Ok(bytes) => Message::Binary(bytes),
            Err(error) => Message::text(json!({"error": error.to_string()}).to_string()),
        };
        if browser.send(message).await.is_err() {
            return;
        }
    }
    let _ = browser.close().await;
}

async fn read(
    mut browser: SplitStream<WebSocket>,
    mut outgoing: Box<dyn backend_core::Outgoing>,
    sandbox: &Session,
    shell: &ShellId,
) {
    while let Some(Ok(message)) = browser.next().await {
        let passed = match message {
            Message::Binary(keys) => outgoing.send(keys).await,
            Message::Text(text) => match serde_json::from_str::<Size>(&text) {
                Ok(size) => sandbox.shell_resize(shell, size.terminal()).await,
                Err(_) => return,
            },
            _ => Ok(()),
        };
        if passed.is_err() {
            return;
        }
    }
}
