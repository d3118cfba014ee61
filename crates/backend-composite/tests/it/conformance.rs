//! The whole conformance suite on composites: with the working directory in a
//! route, above routes, and in a nested composite.

use std::sync::Arc;

use backend_composite::{Composite, Route};
use backend_core::{Backend, VPath};
use backend_state::StateBackend;
use backend_sync::{BlockingAdapter, SyncBackend};
use backend_testkit::path;
use futures::executor::block_on;

use crate::support::fixture::{local_above_routes, local_in_a_route, state, state_at};
use crate::support::unseen::Unseen;

/// The working directory is in a route whose child sees the path below it.
fn in_a_route(store: Arc<StateBackend>) -> Arc<dyn Backend> {
    let composite = Composite::builder()
        .default_backend(Arc::new(StateBackend::new()))
        .route(Route::new(path("/desk/"), store))
        .working_dir(path("/desk"))
        .build();
    Arc::new(composite.unwrap())
}

/// The working directory is in a route whose child sees the whole path, with a
/// route of another name beside it.
fn with_full_paths(store: Arc<StateBackend>) -> Arc<dyn Backend> {
    let composite = Composite::builder()
        .default_backend(Arc::new(StateBackend::new()))
        .route(Route::new(path("/a/desk"), store).full_paths())
        .route(state_at("/a/works"))
        .working_dir(path("/a/desk/deeper"))
        .build();
    let composite = composite.unwrap();
    let deeper = path("/a/desk/deeper");
    block_on(composite.create_dir(&deeper, Default::default())).unwrap();
    Arc::new(composite)
}

/// The working directory contains routes, which the cases do not see.
fn above_routes(store: Arc<StateBackend>) -> Arc<dyn Backend> {
    let composite = Composite::builder()
        .default_backend(store)
        .route(state_at("/unseen"))
        .route(state_at("/unseen/inner"))
        .route(state_at("/unseen-too/deep/down"))
        .build();
    let unseen = ["/unseen", "/unseen-too"];
    Arc::new(Unseen::new(composite.unwrap(), &unseen))
}

/// The working directory is in a child that blocks its threads; the default does
/// not.
fn in_a_blocking_route(store: Arc<StateBackend>) -> Arc<dyn Backend> {
    let blocking = BlockingAdapter::new(SyncBackend::new(store));
    let composite = Composite::builder()
        .default_backend(Arc::new(StateBackend::new()))
        .route(Route::new(path("/desk"), Arc::new(blocking)))
        .working_dir(path("/desk"))
        .build();
    Arc::new(composite.unwrap())
}

/// The working directory is in an async child; the default blocks its threads.
fn beside_a_blocking_default(store: Arc<StateBackend>) -> Arc<dyn Backend> {
    let blocking = SyncBackend::new(Arc::new(StateBackend::new()));
    let composite = Composite::builder()
        .default_backend(Arc::new(BlockingAdapter::new(blocking)))
        .route(Route::new(path("/desk"), store))
        .working_dir(path("/desk"))
        .build();
    Arc::new(composite.unwrap())
}

/// A composite in a composite.
fn nested(store: Arc<StateBackend>) -> Arc<dyn Backend> {
    let inner = Composite::builder()
        .default_backend(Arc::new(StateBackend::new()))
        .route(Route::new(path("/inner"), store))
        .build();
    let outer = Composite::builder()
        .route(Route::new(path("/outer"), Arc::new(inner.unwrap())))
        .route(state_at("/other"))
        .working_dir(path("/outer/inner"))
        .build();
    Arc::new(outer.unwrap())
}

backend_testkit::conformance! {
    mod two_states_in_a_route;
    fixture = async || state(in_a_route);
    skipped = 210;

    mod two_states_with_full_paths;
    fixture = async || state(with_full_paths);
    skipped = 210;

    mod states_above_routes;
    fixture = async || state(above_routes);
    skipped = 210;

    mod states_nested;
    fixture = async || state(nested);
    skipped = 210;

    mod state_and_local_in_a_route;
    fixture = async || local_in_a_route();
    skipped = 32;

    mod state_and_local_above_routes;
    fixture = async || local_above_routes();
    skipped = 32;

    mod blocking_in_a_route;
    fixture = async || state(in_a_blocking_route);
    skipped = 210;

    mod blocking_default;
    fixture = async || state(beside_a_blocking_default);
    skipped = 210;
}

#[test]
fn the_page_of_capabilities_is_current() {
    backend_testkit::test_column("composite", &local_in_a_route());
}

/// Checks an assumption of the fixtures.
#[test]
fn an_unseen_route_is_there_all_the_same() {
    let backend = above_routes(Arc::new(StateBackend::new()));
    let (inner, root) = (path("/unseen/inner"), VPath::root());
    let stat = block_on(backend.stat(&inner, Default::default()));
    assert!(stat.unwrap().is_dir());
    let listed = block_on(backend.ls(&root, Default::default()));
    assert_eq!(listed.unwrap().total, 0);
}
