//! The states of sandboxes: which change is allowed from which, and how long it takes.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::routing::post;
use axum::{Extension, Json, Router};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Known, Routes};
use crate::faults::Fault;
use crate::refusal::{Answer, Refusal};
use crate::sandbox::Sandbox;
use crate::service::Service;

/// States in which a sandbox can be deleted.
const DELETABLE: &[&str] = &[
    "started",
    "stopped",
    "archived",
    "archiving",
    "paused",
    "error",
    "build_failed",
    "pending_build",
];

pub(super) fn routes() -> Routes {
    Router::new()
        .route("/api/sandbox/{id}/start", post(start))
        .route("/api/sandbox/{id}/stop", post(stop))
        .route("/api/sandbox/{id}/pause", post(pause))
        .route("/api/sandbox/{id}/archive", post(archive))
        .route("/api/sandbox/{id}/recover", post(recover))
}

/// Lets a sandbox that was created or is starting get to `started`, unless a fault
/// prevents it.
pub(super) async fn finish_start(
    service: &Arc<Service>,
    sandbox: &Arc<Sandbox>,
    fault: Option<&Fault>,
) {
    if fault == Some(&Fault::StuckStarting) {
        sandbox.set_state("starting");
        return;
    }
    let via = sandbox.state();
    change(service, sandbox, &via, "started").await;
}

/// Brings a sandbox into a state, by way of another.
async fn change(service: &Arc<Service>, sandbox: &Arc<Sandbox>, via: &str, to: &'static str) {
    let number = sandbox.set_state(via);
    sandbox.set("desiredState", json!(to));
    let time = service.options.transition;
    if time.is_zero() {
        return finish(sandbox, number, to).await;
    }
    let sandbox = Arc::clone(sandbox);
    service.spawn(async move {
        tokio::time::sleep(time).await;
        finish(&sandbox, number, to).await;
    });
}

async fn finish(sandbox: &Sandbox, number: u64, to: &str) {
    if !["started", "paused"].contains(&to) {
        sandbox.end_processes().await;
    }
    sandbox.set_state_after(number, to);
    if sandbox.state() == "destroyed" {
        sandbox.root.remove().await;
    }
}

/// Returns why a sandbox in this state cannot be changed as wished.
fn refusal(state: &str, wrong: &str) -> Refusal {
    match state {
        "error" | "build_failed" => {
            let message = "Sandbox is in an errored state";
            Refusal::control(StatusCode::BAD_REQUEST, message)
        }
        "started" | "stopped" | "archived" | "paused" | "destroyed" => {
            Refusal::control(StatusCode::BAD_REQUEST, wrong)
        }
        _ => Refusal::busy(),
    }
}

async fn start(
    State(service): State<Arc<Service>>,
    fault: Option<Extension<Fault>>,
    Known(sandbox): Known,
) -> Answer<Json<Value>> {
    match sandbox.state().as_str() {
        "started" => {}
        "paused" if sandbox.text("sandboxClass") == "container" => {
            let message = "Sandboxes of this class cannot be resumed";
            return Err(Refusal::control(StatusCode::UNPROCESSABLE_ENTITY, message));
        }
        state @ ("stopped" | "archived" | "archiving" | "paused") => {
            let via = match state {
                "stopped" => "starting",
                "paused" => "resuming",
                _ => "restoring",
            };
            sandbox.set_state(via);
            let fault = fault.map(|Extension(fault)| fault);
            finish_start(&service, &sandbox, fault.as_ref()).await;
        }
        state => return Err(refusal(state, "Sandbox is not in valid state")),
    }
    Ok(Json(sandbox.document()))
}

async fn stop(State(service): State<Arc<Service>>, Known(sandbox): Known) -> Answer<Json<Value>> {
    let state = sandbox.state();
    if !["started", "paused"].contains(&state.as_str()) {
        return Err(refusal(&state, "Sandbox is not in a stoppable state"));
    }
    if sandbox.get("autoDeleteInterval") == json!(0) {
        change(&service, &sandbox, "destroying", "destroyed").await;
    } else {
        change(&service, &sandbox, "stopping", "stopped").await;
    }
    Ok(Json(sandbox.document()))
}

async fn pause(State(service): State<Arc<Service>>, Known(sandbox): Known) -> Answer<Json<Value>> {
    let state = sandbox.state();
    if state != "started" {
        return Err(refusal(&state, "Sandbox is not in valid state"));
    }
    if sandbox.text("sandboxClass") == "container" {
        let message = "Sandboxes of this class cannot be paused";
        return Err(Refusal::control(StatusCode::UNPROCESSABLE_ENTITY, message));
    }
    change(&service, &sandbox, "pausing", "paused").await;
    Ok(Json(sandbox.document()))
}

async fn archive(
    State(service): State<Arc<Service>>,
    Known(sandbox): Known,
) -> Answer<Json<Value>> {
    let state = sandbox.state();
    if state != "stopped" {
        return Err(refusal(&state, "Sandbox is not stopped"));
    }
    change(&service, &sandbox, "archiving", "archived").await;
    Ok(Json(sandbox.document()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recovery {
    #[serde(default)]
    skip_start: bool,
}

async fn recover(
    State(service): State<Arc<Service>>,
    fault: Option<Extension<Fault>>,
    Known(sandbox): Known,
    Query(recovery): Query<Recovery>,
) -> Answer<Json<Value>> {
    let is_possible = sandbox.state() == "error" && sandbox.get("recoverable") == json!(true);
    if !is_possible {
        let message = "Sandbox is not in a recoverable state";
        return Err(Refusal::control(StatusCode::BAD_REQUEST, message));
    }
    sandbox.set("errorReason", Value::Null);
    sandbox.set("recoverable", json!(false));
    if recovery.skip_start {
        sandbox.set_state("stopped");
    } else {
        sandbox.set_state("starting");
        let fault = fault.map(|Extension(fault)| fault);
        finish_start(&service, &sandbox, fault.as_ref()).await;
    }
    Ok(Json(sandbox.document()))
}

pub(super) async fn delete(
    State(service): State<Arc<Service>>,
    Known(sandbox): Known,
) -> Answer<Json<Value>> {
    let state = sandbox.state();
    // A sandbox that is being deleted stays in this state.
    if state != "destroying" {
        if !DELETABLE.contains(&state.as_str()) {
            return Err(refusal(&state, ""));
        }
        change(&service, &sandbox, "destroying", "destroyed").await;
    }
    // The answer never says that it is gone.
    let mut document = sandbox.document();
    document["state"] = json!("destroying");
    Ok(Json(document))
}
