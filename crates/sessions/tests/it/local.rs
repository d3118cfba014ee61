//! Sessions in local directories, and the reader of stored files.

mod claims;
mod conformance;
mod manager;
mod processes;
mod quota;
mod reader;
mod roots;
mod storage;

use std::path::Path;
use std::sync::Arc;

use backend_core::Sandbox;
use sessions::{Attached, Claim, Engine as _, LocalEngine, OpenRequest, SessionId};

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

fn request(text: &str) -> OpenRequest {
    OpenRequest::new(id(text))
}

fn engine(root: &Path) -> LocalEngine {
    LocalEngine::open(root).unwrap()
}

/// Claims a session that no process has.
async fn create(engine: &LocalEngine, name: &str) -> Arc<dyn Sandbox> {
    match engine.claim(&request(name)).await.unwrap() {
        Claim::Created(sandbox) => sandbox,
        other => panic!("{name} is not free: {other:?}"),
    }
}

async fn attach(engine: &LocalEngine, name: &str) -> Option<Attached> {
    engine.attach(&id(name)).await.unwrap()
}
