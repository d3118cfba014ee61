//! Volumes and snapshots of the control plane: records, without content.

use std::sync::{Arc, PoisonError};

use axum::extract::{Path, Query, State};
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Routes;
use crate::id;
use crate::refusal::{Answer, Refusal};
use crate::service::Service;

/// The number of snapshots on a page.
const DEFAULT_LIMIT: usize = 100;

pub(super) fn routes() -> Routes {
    Router::new()
        .route("/api/volumes", get(list).post(create))
        .route("/api/volumes/{id}", get(show).delete(delete))
        .route("/api/volumes/by-name/{name}", get(show))
        .route("/api/snapshots", get(snapshots))
        .route("/api/snapshots/{id}", get(show_snapshot))
}

async fn list(State(service): State<Arc<Service>>) -> Json<Value> {
    let volumes = service
        .volumes
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    Json(volumes.clone().into())
}

#[derive(Deserialize)]
struct Create {
    name: String,
}

async fn create(
    State(service): State<Arc<Service>>,
    Json(Create { name }): Json<Create>,
) -> Answer<Json<Value>> {
    let mut volumes = service
        .volumes
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if volumes.iter().any(|it| it["name"] == json!(name)) {
        let message = format!("Volume with name {name} already exists");
        return Err(Refusal::control(StatusCode::CONFLICT, message));
    }
    let now = Timestamp::now().to_string();
    let volume = json!({
        "id": id::random(), "name": name, "organizationId": service.organization,
        "state": "ready", "createdAt": now, "updatedAt": now, "errorReason": null,
    });
    volumes.push(volume.clone());
    Ok(Json(volume))
}

/// Whether an id or a name is that of a volume.
fn is(volume: &Value, id_or_name: &str) -> bool {
    ["id", "name"]
        .iter()
        .any(|key| volume[key] == json!(id_or_name))
}

fn missing(what: &str, id: &str) -> Refusal {
    Refusal::control(StatusCode::NOT_FOUND, format!("{what} {id} not found"))
}

async fn show(State(service): State<Arc<Service>>, Path(id): Path<String>) -> Answer<Json<Value>> {
    let volumes = service
        .volumes
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let volume = volumes.iter().find(|it| is(it, &id)).cloned();
    volume.map(Json).ok_or_else(|| missing("Volume", &id))
}

async fn delete(State(service): State<Arc<Service>>, Path(id): Path<String>) -> Answer<StatusCode> {
    let mut volumes = service
        .volumes
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let n_before = volumes.len();
    volumes.retain(|it| !is(it, &id));
    if volumes.len() == n_before {
        return Err(missing("Volume", &id));
    }
    Ok(StatusCode::OK)
}

/// The only snapshot: the machine itself.
fn snapshot(service: &Service) -> Value {
    let now = Timestamp::now().to_string();
    json!({
        "id": service.organization, "organizationId": service.organization, "general": true,
        "name": "standin", "imageName": "standin", "state": "active", "size": 0, "entrypoint": [],
        "cpu": 1, "gpu": 0, "mem": 1, "disk": 3, "errorReason": null, "createdAt": now,
        "updatedAt": now, "lastUsedAt": now, "sourceSandboxId": null, "ref": "standin",
    })
}

#[derive(Deserialize)]
struct Page {
    page: Option<usize>,
    limit: Option<usize>,
}

async fn snapshots(State(service): State<Arc<Service>>, Query(query): Query<Page>) -> Json<Value> {
    let (page, limit) = (
        query.page.unwrap_or(1),
        query.limit.unwrap_or(DEFAULT_LIMIT),
    );
    let items = if page == 1 && limit > 0 {
        vec![snapshot(&service)]
    } else {
        Vec::new()
    };
    Json(json!({"items": items, "total": 1, "page": page, "totalPages": 1}))
}

async fn show_snapshot(
    State(service): State<Arc<Service>>,
    Path(id): Path<String>,
) -> Answer<Json<Value>> {
    let snapshot = snapshot(&service);
    if is(&snapshot, &id) {
        Ok(Json(snapshot))
    } else {
        Err(missing("Snapshot", &id))
    }
}
