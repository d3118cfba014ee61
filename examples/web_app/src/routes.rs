//! The routes, and those that begin, show and delete a session.

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

use crate::failure::Failure;
use crate::{App, chat, execute, files, pages, request_check, terminal};

/// Bytes of a JSON body.
const JSON_BYTES: usize = 256 * 1024;

/// Bytes of an uploaded file.
const UPLOAD_BYTES: usize = 16 * 1024 * 1024;

/// How long the turn of a page that was left may take to stop.
const LEAVING_TIME: Duration = Duration::from_secs(2);

/// The cookie in which a browser keeps the id of its session.
const ID_COOKIE: &str = "web_app_session";

/// Returns the service.
pub(crate) fn router(app: Arc<App>) -> Router {
    let uploads = DefaultBodyLimit::max(UPLOAD_BYTES);
    let file = get(files::download).put(files::upload).layer(uploads);
    Router::new()
        .route("/sessions", post(begin))
        .route("/sessions/{id}", get(show).delete(delete))
        .route("/sessions/{id}/chat", post(chat::turn))
        .route("/sessions/{id}/answer", post(chat::answer))
        .route("/sessions/{id}/files", get(files::list))
        .route("/sessions/{id}/files/{*path}", file)
        .route("/sessions/{id}/execute", post(execute::execute))
        .route("/sessions/{id}/terminal", get(terminal::open))
        .route("/", get(pages::index))
        .route("/{file}", get(pages::page))
        .route("/xterm/{file}", get(pages::xterm))
        .layer(DefaultBodyLimit::max(JSON_BYTES))
        .layer(from_fn_with_state(Arc::clone(&app), request_check::check))
        .with_state(app)
}

/// `POST /sessions`: the session of the browser's cookie, or a new one.
async fn begin(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Failure> {
    let known = id_of(&headers).filter(|id| app.browsers.find(id).is_ok());
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
        format!("{ID_COOKIE}={id}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000{secure}");
    let described = describe(&app, &id).await?;
    Ok((status, [(SET_COOKIE, cookie)], Json(described)).into_response())
}

/// `GET /sessions/{id}`
async fn show(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Json<Value>, Failure> {
    describe(&app, &id).await.map(Json)
}

async fn describe(app: &App, id: &str) -> Result<Value, Failure> {
    let browser = app.browsers.find(id)?;
    // A page that was just left may still hold the conversation, and another tab may do so
    // for long.
    let events = match timeout(LEAVING_TIME, browser.messages.lock()).await {
        Ok(messages) => chat::history(&messages),
        Err(_) => vec![json!({"type": "busy"})],
    };
    Ok(json!({
        "id": id,
        "events": events,
        "sandbox": app.place,
        "model": app.model_name,
        "scripted": app.model.is_scripted(),
        "xterm": app.xterm.is_there(),
    }))
}

/// `DELETE /sessions/{id}`: the sandbox, its files and the conversation.
async fn delete(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<StatusCode, Failure> {
    let browser = app.browsers.find(&id)?;
    // A turn would open the sandbox again.
    let _free = browser.messages.try_lock().map_err(|_| chat::busy())?;
    app.delete(&browser.name).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn id_of(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).iter();
    let pairs = cookies.filter_map(|cookie| cookie.to_str().ok());
    pairs
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(name, value)| (name == ID_COOKIE).then_some(value))
}
