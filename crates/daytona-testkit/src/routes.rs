//! The routes of the stand-in, and how their handlers read a request.

mod control;
mod files;
mod git;
mod lifecycle;
mod process;
mod proxy;
mod search;
mod sessions;
mod terminals;
mod transfer;
mod volumes;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, FromRequestParts, Path};
use axum::response::{IntoResponse, Response};
use axum::{Router, middleware};
use http::request::Parts;
use http::{Method, StatusCode, Uri};
use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;

use crate::gate;
use crate::paths::Paths;
use crate::refusal::{Answer, Refusal};
use crate::sandbox::Sandbox;
use crate::service::Service;

/// Returns the whole service.
pub(crate) fn router(service: Arc<Service>) -> Router {
    let toolbox = Router::new()
        .merge(files::routes())
        .merge(search::routes())
        .merge(transfer::routes())
        .merge(process::routes())
        .merge(sessions::routes())
        .merge(terminals::routes())
        .merge(git::routes())
        .merge(proxy::routes());
    Router::new()
        .merge(control::routes())
        .merge(lifecycle::routes())
        .merge(volumes::routes())
        .merge(proxy::previews())
        .nest("/toolbox/{id}", toolbox)
        .fallback(unknown)
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(
            Arc::clone(&service),
            gate::pass,
        ))
        .with_state(service)
}

/// The routes of a part of the service.
type Routes = Router<Arc<Service>>;

async fn unknown(method: Method, uri: Uri) -> Response {
    if uri.path().starts_with("/toolbox/") {
        return (StatusCode::NOT_FOUND, "404 page not found").into_response();
    }
    let message = format!("Cannot {method} {}", uri.path());
    Refusal::control(StatusCode::NOT_FOUND, message).into_response()
}

/// The sandbox of a request to the control plane, by its id or name.
struct Known(Arc<Sandbox>);

impl FromRequestParts<Arc<Service>> for Known {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Answer<Self> {
        let id = parameter(parts, service, "id").await?;
        let missing = || {
            let message = format!("Sandbox with ID or name {id} not found");
            Refusal::control(StatusCode::NOT_FOUND, message)
        };
        service.find(&id).map(Self).ok_or_else(missing)
    }
}

/// The sandbox of a request to the toolbox. It is started, and the request is activity.
struct Toolbox(Arc<Sandbox>);

impl FromRequestParts<Arc<Service>> for Toolbox {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Answer<Self> {
        let id = parameter(parts, service, "id").await?;
        let sandbox = service.find(&id).filter(|it| it.id == id);
        let Some(sandbox) = sandbox else {
            let message = format!("sandbox {id} not found");
            return Err(Refusal::proxy(StatusCode::NOT_FOUND, message));
        };
        if sandbox.state() != "started" {
            return Err(Refusal::not_started());
        }
        let skip = parts.headers.get("x-daytona-skip-last-activity-update");
        if skip.is_none_or(|it| it != "true") {
            sandbox.touch();
        }
        Ok(Self(sandbox))
    }
}

impl Toolbox {
    /// Does something with the sandbox's files, on a thread that may block.
    async fn with_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Paths) -> T + Send + 'static,
    ) -> Answer<T> {
        let paths = self.0.root.paths().await.map_err(Refusal::internal)?;
        let done = spawn_blocking(move || work(&paths)).await;
        done.map_err(Refusal::internal)
    }

    /// Like [`Self::with_files`], for work that fails as files do.
    async fn files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Paths) -> io::Result<T> + Send + 'static,
    ) -> Answer<T> {
        let done = self.with_files(work).await?;
        done.map_err(|error| Refusal::of_file(&error))
    }
}

/// Returns a parameter of the path.
async fn parameter(parts: &mut Parts, service: &Arc<Service>, name: &str) -> Answer<String> {
    let parameters = Path::<BTreeMap<String, String>>::from_request_parts(parts, service).await;
    let parameters = parameters
        .map(|Path(parameters)| parameters)
        .unwrap_or_default();
    let missing = || Refusal::control(StatusCode::BAD_REQUEST, format!("no {name}"));
    parameters.get(name).cloned().ok_or_else(missing)
}

/// Reads a JSON body of a request to the toolbox.
fn read<T: DeserializeOwned>(body: &[u8]) -> Answer<T> {
    serde_json::from_slice(body).map_err(|error| {
        let message = format!("bad request: invalid request body: {error}");
        Refusal::toolbox(StatusCode::BAD_REQUEST, message)
    })
}
