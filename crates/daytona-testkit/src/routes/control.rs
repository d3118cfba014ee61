//! The control plane: sandboxes are created, found and described.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Extension, Json, Router};
use http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Known, Routes, lifecycle};
use crate::faults::Fault;
use crate::id;
use crate::refusal::{Answer, Refusal};
use crate::sandbox::Sandbox;
use crate::service::Service;

/// The size of a page of a list.
const DEFAULT_LIMIT: usize = 100;

/// Fields of a request that only a sandbox with an image of its own may set.
const RESOURCES: &[&str] = &["cpu", "gpu", "memory", "disk"];

pub(super) fn routes() -> Routes {
    let timer = |field: &'static str| {
        post(
            move |Known(sandbox): Known, Path((_, minutes)): Path<(String, i64)>| {
                sandbox.set(field, json!(minutes));
                async move { Json(sandbox.document()) }
            },
        )
    };
    Router::new()
        .route("/api/config", get(config))
        .route("/api/sandbox", post(create).get(list))
        .route("/api/sandbox/paginated", get(pages))
        .route("/api/sandbox/{id}", get(show).delete(lifecycle::delete))
        .route("/api/sandbox/{id}/labels", put(set_labels))
        .route("/api/sandbox/{id}/last-activity", post(touch))
        .route("/api/sandbox/{id}/resize", post(merge))
        .route("/api/sandbox/{id}/network-settings", post(merge))
        .route("/api/sandbox/{id}/public/{is_public}", post(publish))
        .route("/api/sandbox/{id}/toolbox-proxy-url", get(toolbox_url))
        .route("/api/sandbox/{id}/ports/{port}/preview-url", get(preview))
        .route(
            "/api/sandbox/{id}/ports/{port}/signed-preview-url",
            get(signed_preview),
        )
        .route(
            "/api/sandbox/{id}/autostop/{minutes}",
            timer("autoStopInterval"),
        )
        .route(
            "/api/sandbox/{id}/autopause/{minutes}",
            timer("autoPauseInterval"),
        )
        .route(
            "/api/sandbox/{id}/autoarchive/{minutes}",
            timer("autoArchiveInterval"),
        )
        .route(
            "/api/sandbox/{id}/autodelete/{minutes}",
            timer("autoDeleteInterval"),
        )
        .route("/api/sandbox/{id}/ttl/{minutes}", timer("ttlMinutes"))
}

async fn config(State(service): State<Arc<Service>>) -> Json<Value> {
    Json(json!({
        "version": "0.190.0", "proxyToolboxUrl": toolbox(&service), "defaultSnapshot": "standin",
        "proxyTemplateUrl": format!("{}/preview/{{{{sandboxId}}}}/{{{{PORT}}}}", service.origin),
        "dashboardUrl": service.origin, "linkedAccountsEnabled": false, "announcements": {},
        "maxAutoArchiveInterval": 43_200, "maintananceMode": false, "environment": "standin",
        "oidc": {"issuer": service.origin, "clientId": "standin", "audience": "standin"},
    }))
}

fn toolbox(service: &Service) -> String {
    format!("{}/toolbox", service.origin)
}

/// The fields of a new sandbox that the request does not set.
fn defaults(service: &Service, id: &str) -> Map<String, Value> {
    let now = Timestamp::now().to_string();
    let fields = json!({
        "id": id, "organizationId": service.organization, "name": id, "snapshot": "standin",
        "user": "root", "env": {}, "labels": {}, "public": false, "networkBlockAll": false,
        "kvm": false, "target": "us", "cpu": 1, "gpu": 0, "memory": 1, "disk": 3,
        "state": "creating", "desiredState": "started", "errorReason": null, "recoverable": false,
        "backupState": "None", "autoStopInterval": 15, "autoArchiveInterval": 10_080,
        "autoDeleteInterval": -1, "volumes": [], "createdAt": now, "updatedAt": now,
        "lastActivityAt": now, "sandboxClass": "container", "runnerId": "standin",
        "daemonVersion": if service.options.typed_errors { "0.205.1" } else { "0.190.0" },
        "toolboxProxyUrl": toolbox(service),
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

async fn create(
    State(service): State<Arc<Service>>,
    fault: Option<Extension<Fault>>,
    Json(request): Json<Map<String, Value>>,
) -> Answer {
    let refused = |message: &str| Err(Refusal::control(StatusCode::BAD_REQUEST, message));
    let is_set = |key: &str| request.get(key).is_some_and(|value| !value.is_null());
    let has_image = is_set("buildInfo");
    if has_image && is_set("snapshot") {
        return refused("Cannot specify both a snapshot and a build info entry");
    }
    if !has_image && RESOURCES.iter().any(|key| is_set(key)) {
        return refused("Cannot specify Sandbox resources when using a snapshot");
    }
    let id = id::random();
    let mut document = defaults(&service, &id);
    document.extend(request.into_iter().filter(|(_, value)| !value.is_null()));
    if has_image {
        document.remove("snapshot");
        document.insert("state".to_owned(), json!("pending_build"));
    }
    if document["kvm"] == json!(true) {
        document.insert("sandboxClass".to_owned(), json!("linux-vm"));
    }
    let mut environment = service.options.environment.clone();
    let sent = document["env"].as_object().into_iter().flatten();
    environment
        .extend(sent.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))));
    let created = Sandbox::create(id, document, environment).await;
    let sandbox = Arc::new(created.map_err(Refusal::internal)?);
    {
        let mut sandboxes = service.sandboxes();
        let name = sandbox.text("name");
        if sandboxes.iter().any(|it| it.is(&name)) {
            let message = format!("Sandbox with name {name} already exists");
            return Err(Refusal::control(StatusCode::CONFLICT, message));
        }
        sandboxes.push(Arc::clone(&sandbox));
    }
    let fault = fault.map(|Extension(fault)| fault);
    lifecycle::finish_start(&service, &sandbox, fault.as_ref()).await;
    Ok(Json(sandbox.document()).into_response())
}

async fn show(Known(sandbox): Known) -> Json<Value> {
    Json(sandbox.document())
}

/// Selects sandboxes of a list.
#[derive(Debug, Default)]
struct Filter {
    id: Option<String>,
    name: Option<String>,
    labels: BTreeMap<String, String>,
    states: Vec<String>,
    cursor: usize,
    limit: usize,
    page: usize,
}

impl Filter {
    fn new(query: Vec<(String, String)>) -> Answer<Self> {
        let invalid = |key: &str| {
            let message = format!("{key} is invalid");
            Refusal::control(StatusCode::BAD_REQUEST, message)
        };
        let mut filter = Self {
            limit: DEFAULT_LIMIT,
            page: 1,
            ..Self::default()
        };
        for (key, value) in query {
            let number = || value.parse().map_err(|_| invalid(&key));
            match key.as_str() {
                "id" => filter.id = Some(value),
                "name" => filter.name = Some(value),
                "labels" => {
                    filter.labels = serde_json::from_str(&value).map_err(|_| invalid("labels"))?;
                }
                "states" => filter.states.extend(value.split(',').map(str::to_owned)),
                "cursor" => filter.cursor = number()?,
                "limit" => filter.limit = number()?.clamp(1, DEFAULT_LIMIT),
                "page" => filter.page = number()?.max(1),
                _ => {}
            }
        }
        Ok(filter)
    }

    fn selects(&self, sandbox: &Sandbox) -> bool {
        let (labels, state) = (sandbox.get("labels"), sandbox.state());
        let starts = |prefix: &Option<String>, text: &str| {
            prefix
                .as_ref()
                .is_none_or(|prefix| text.starts_with(prefix.as_str()))
        };
        state != "destroyed"
            && (self.states.is_empty() || self.states.contains(&state))
            && starts(&self.id, &sandbox.id)
            && starts(&self.name, &sandbox.text("name"))
            && self
                .labels
                .iter()
                .all(|(key, value)| labels[key] == json!(value))
    }

    /// Returns the selected sandboxes with their positions, which are stable.
    fn select(&self, service: &Service) -> Vec<(usize, Value)> {
        let sandboxes = service.sandboxes();
        let selected = sandboxes
            .iter()
            .enumerate()
            .filter(|(_, it)| self.selects(it));
        selected
            .map(|(position, it)| (position, it.item()))
            .collect()
    }
}

async fn list(
    State(service): State<Arc<Service>>,
    fault: Option<Extension<Fault>>,
    Query(query): Query<Vec<(String, String)>>,
) -> Answer<Json<Value>> {
    let filter = Filter::new(query)?;
    let mut last = service
        .last_list
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if !matches!(fault, Some(Extension(Fault::StaleList))) {
        let mut selected = filter.select(&service);
        selected.retain(|(position, _)| *position >= filter.cursor);
        let next = selected
            .get(filter.limit)
            .map(|(position, _)| position.to_string());
        selected.truncate(filter.limit);
        let items: Vec<_> = selected.into_iter().map(|(_, item)| item).collect();
        *last = json!({"items": items, "nextCursor": next});
    }
    Ok(Json(last.clone()))
}

/// Lists sandboxes as older clients ask for them.
async fn pages(
    State(service): State<Arc<Service>>,
    Query(query): Query<Vec<(String, String)>>,
) -> Answer<Json<Value>> {
    let filter = Filter::new(query)?;
    let selected = filter.select(&service);
    let (total, n_pages) = (selected.len(), selected.len().div_ceil(filter.limit));
    let shown = selected.into_iter().skip((filter.page - 1) * filter.limit);
    let items: Vec<_> = shown.take(filter.limit).map(|(_, item)| item).collect();
    Ok(Json(json!({
        "items": items, "total": total, "page": filter.page, "totalPages": n_pages,
    })))
}

#[derive(Deserialize)]
struct Labels {
    labels: BTreeMap<String, String>,
}

async fn set_labels(Known(sandbox): Known, Json(request): Json<Labels>) -> Json<Value> {
    sandbox.set("labels", json!(request.labels));
    Json(json!({"labels": request.labels}))
}

async fn touch(Known(sandbox): Known) -> StatusCode {
    sandbox.touch();
    StatusCode::CREATED
}

/// Takes over the fields of a request.
async fn merge(Known(sandbox): Known, Json(request): Json<Map<String, Value>>) -> Json<Value> {
    for (key, value) in request {
        sandbox.set(&key, value);
    }
    Json(sandbox.document())
}

async fn publish(Known(sandbox): Known, Path((_, is_public)): Path<(String, bool)>) -> Json<Value> {
    sandbox.set("public", json!(is_public));
    Json(sandbox.document())
}

async fn toolbox_url(State(service): State<Arc<Service>>, Known(_): Known) -> Json<Value> {
    Json(json!({"url": toolbox(&service)}))
}

async fn preview(
    State(service): State<Arc<Service>>,
    Known(sandbox): Known,
    Path((_, port)): Path<(String, u16)>,
) -> Response {
    let (id, token) = (&sandbox.id, &sandbox.token);
    let url = format!("{}/preview/{id}/{port}", service.origin);
    Json(json!({"sandboxId": id, "url": url, "token": token})).into_response()
}

/// Returns a URL that needs no key. It does not expire.
async fn signed_preview(
    State(service): State<Arc<Service>>,
    Known(sandbox): Known,
    Path((_, port)): Path<(String, u16)>,
) -> Response {
    let (id, token) = (&sandbox.id, &sandbox.token);
    let url = format!("{}/preview/{token}/{port}", service.origin);
    Json(json!({"sandboxId": id, "port": port, "url": url, "token": token})).into_response()
}
