//! A command of the user, without the model.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use backend_core::Sandbox as _;
use backend_core::ops::Command;
use examples::web::Failure;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::App;

const TIME: Duration = Duration::from_secs(60);

/// Bytes that are shown of each stream: its beginning and its end.
const OUTPUT_BYTES: usize = 64 * 1024;

/// The body of the request.
#[derive(Debug, Deserialize)]
pub(crate) struct Execute {
    command: String,
}

/// `POST /sessions/{id}/execute`
pub(crate) async fn execute(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Json(body): Json<Execute>,
) -> Result<Json<Value>, Failure> {
    let (_, sandbox) = app.sandbox(&id).await?;
    let command = Command::new(body.command)
        .timeout(TIME)
        .output_bytes(OUTPUT_BYTES);
    let done = sandbox.execute(command).await?;
    Ok(Json(json!({
        "status": done.status.to_string(),
        "success": done.status.success(),
        "stdout": done.stdout.text(),
        "stderr": done.stderr.text(),
    })))
}
