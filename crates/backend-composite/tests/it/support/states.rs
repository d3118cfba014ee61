//! Composites of stores in memory.

use std::sync::Arc;

use backend_composite::{Composite, Route};
use backend_core::BackendExt as _;
use backend_state::StateBackend;
use backend_testkit::path;

pub(crate) fn state() -> Arc<StateBackend> {
    Arc::new(StateBackend::new())
}

pub(crate) fn route(prefix: &str, backend: &Arc<StateBackend>) -> Route {
    Route::new(path(prefix), Arc::<StateBackend>::clone(backend))
}

pub(crate) async fn found(composite: &Composite, pattern: &str) -> Vec<String> {
    let found = composite.find_files(pattern).await.unwrap();
    let files = found.files.iter();
    files.map(|file| file.path.to_string()).collect()
}
