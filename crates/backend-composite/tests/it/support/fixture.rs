//! Composites for the conformance suite.

use std::sync::Arc;

use backend_composite::{Composite, Route};
use backend_core::{Backend, VPath};
use backend_local::{Commands, LocalBackend, Supervisor};
use backend_state::StateBackend;
use backend_testkit::{ClockFixture, DirectoryFixture, path};

use super::unseen::Unseen;

/// Creates a route to a new store.
pub(crate) fn state_at(prefix: &str) -> Route {
    Route::new(path(prefix), Arc::new(StateBackend::new()))
}

/// A composite that `compose` builds around a store with the working directory.
pub(crate) fn state(compose: fn(Arc<StateBackend>) -> Arc<dyn Backend>) -> ClockFixture {
    ClockFixture::new(|clock| compose(Arc::new(StateBackend::builder().clock(clock).build())))
}

/// A composite with a store everywhere except for a local backend at `/desk/here`, where
/// the working directory is.
pub(crate) fn local_in_a_route() -> DirectoryFixture {
    local(path("/desk/here"), |local| {
        let composite = Composite::builder()
            .default_backend(Arc::new(StateBackend::new()))
            .route(state_at("/desk"))
            .route(Route::new(path("/desk/here"), local))
            .working_dir(path("/desk/here"))
            .build();
        Arc::new(composite.unwrap())
    })
}

/// A composite with a local backend everywhere except for routes beneath the working
/// directory, which the cases do not see.
pub(crate) fn local_above_routes() -> DirectoryFixture {
    local(VPath::root(), |local| {
        let composite = Composite::builder()
            .default_backend(local)
            .route(state_at("/unseen"))
            .route(state_at("/unseen-too/deep/down"))
            .build();
        let unseen = ["/unseen", "/unseen-too"];
        Arc::new(Unseen::new(composite.unwrap(), &unseen))
    })
}

/// A composite around a local backend whose root is at `prefix`, and one of only that
/// route to a read-only backend.
fn local(prefix: VPath, compose: fn(Arc<LocalBackend>) -> Arc<dyn Backend>) -> DirectoryFixture {
    let fixture = DirectoryFixture::new(|root| {
        let builder = LocalBackend::builder(root);
        let read_only = builder.clone().read_only(true).open().unwrap();
        let read_only = Composite::builder()
            .route(Route::new(prefix.clone(), Arc::new(read_only)))
            .working_dir(prefix.clone())
            .build();
        let commands = Commands::default().supervisor(Supervisor::None);
        let local = builder.enable_execute(true).commands(commands).open();
        let backend = compose(Arc::new(local.unwrap()));
        (backend, Some(Arc::new(read_only.unwrap())))
    });
    fixture.at(prefix)
}
