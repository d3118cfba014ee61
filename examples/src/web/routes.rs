//! The routes that begin, show and delete a session, and the service as a whole.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::{COOKIE, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::failure::Failure;
use super::{App, Program, request_check, turn};

/// Bytes of a JSON body.
const JSON_BYTES: usize = 256 * 1024;

/// How long the turn of a page that was left may take to stop.
const LEAVING_TIME: Duration = Duration::from_secs(2);

/// Returns the service, with the program's own routes.
pub(super) fn service<P: Program>(app: Arc<App<P>>, own: Router<Arc<App<P>>>) -> Router {
    Router::new()
        .route("/sessions", post(begin))
        .route("/sessions/{id}", get(show).delete(delete))
        .route("/sessions/{id}/chat", post(turn::turn))
        .route("/sessions/{id}/answer", post(turn::answer))
        .merge(own)
        .layer(DefaultBodyLimit::max(JSON_BYTES))
        .layer(from_fn_with_state(Arc::clone(&app), request_check::check))
        .with_state(app)
}

/// `POST /sessions`: the session of the browser's cookie, or a new one.
async fn begin<P: Program>(
    State(app): State<Arc<App<P>>>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    // Cookies do not distinguish ports, so each program has its own.
    let cookie = format!("{}_session", P::NAME);
    let known = id_of(&headers, &cookie).filter(|id| app.browsers.find(id).is_ok());
    let status = match known {
        Some(_) => StatusCode::OK,
        None => StatusCode::CREATED,
    };
    let id = match known {
        Some(id) => id.to_owned(),
        None => app.browsers.begin()?,
    };
    // Scripts cannot read the cookie, and pages of other sites cannot have it sent.
    let is_https = headers
        .get(ORIGIN)
        .is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
    let secure = if is_https { "; Secure" } else { "" };
    let cookie =
        format!("{cookie}={id}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000{secure}");
    let described = describe(&app, &id).await?;
    Ok((status, [(SET_COOKIE, cookie)], Json(described)).into_response())
}

/// `GET /sessions/{id}`
async fn show<P: Program>(
    State(app): State<Arc<App<P>>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Failure> {
    describe(&app, &id).await.map(Json)
}

async fn describe<P: Program>(app: &App<P>, id: &str) -> Result<Value, Failure> {
    let browser = app.browsers.find(id)?;
    // A page that was just left may still hold the conversation, and another tab may do so
    // for long.
    let events = match timeout(LEAVING_TIME, browser.messages.lock()).await {
        Ok(messages) => turn::history(&app.program, &messages),
        Err(_) => vec![json!({"type": "busy"})],
    };
    let mut described = json!({
        "id": id,
        "events": events,
        "sandbox": app.sandboxes.place,
        "model": app.model_name,
        "scripted": app.model.is_scripted(),
    });
    app.program.describe(&mut described);
    Ok(described)
}

/// `DELETE /sessions/{id}`: the sandbox, its files and the conversation.
async fn delete<P: Program>(
    State(app): State<Arc<App<P>>>,
    Path(id): Path<String>,
) -> Result<StatusCode, Failure> {
    let browser = app.browsers.find(&id)?;
    // A turn would open the sandbox again.
    let _free = browser.messages.try_lock().map_err(|_| turn::busy())?;
    app.delete(&browser.name).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn id_of<'h>(headers: &'h HeaderMap, cookie: &str) -> Option<&'h str> {
    let cookies = headers.get_all(COOKIE).iter();
    let pairs = cookies.filter_map(|cookie| cookie.to_str().ok());
    pairs
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(name, value)| (name == cookie).then_some(value))
}
