//! The conformance suite on the sandbox of a local session, with its stored files as the
//! read-only backend.

use std::path::Path;
use std::sync::Arc;

use backend_core::Backend;
use backend_local::{Commands, Supervisor};
use backend_testkit::DirectoryFixture;
use sessions::{LocalEngine, LocalEngineBuilder};

use super::{create, id};

fn fixture(options: impl Fn(LocalEngineBuilder) -> LocalEngineBuilder + Sync) -> DirectoryFixture {
    let open = async |root: &Path| {
        let commands = Commands::new().supervisor(Supervisor::None);
        let builder = LocalEngine::builder(root).commands(commands);
        let engine = options(builder).open().unwrap();
        let sandbox = create(&engine, "alice").await;
        let stored = engine.stored().files(&id("alice")).await.unwrap();
        let backend: Arc<dyn Backend> = sandbox;
        let read_only: Arc<dyn Backend> = Arc::new(stored);
        (backend, Some(read_only))
    };
    let fixture = DirectoryFixture::new(|root| {
        // Not on the runtime of the case, which must not wait for anything.
        std::thread::scope(|scope| {
            let opened = scope.spawn(|| backend_testkit::block_on(open(root)));
            opened.join().unwrap()
        })
    });
    fixture.beneath("alice/workspace")
}

backend_testkit::conformance! {
    mod session;
    fixture = async || fixture(|builder| builder);
    skipped = 32;

    mod session_with_a_quota;
    fixture = async || fixture(|builder| builder.session_quota(1 << 40));
    skipped = 32;
}
