//! The whole conformance suite on a session.

use std::path::Path;
use std::sync::Arc;

use backend_core::{Backend, Error, Sandbox};
use backend_local::{Commands, LocalBackend, Supervisor};
use backend_testkit::DirectoryFixture;
use sessions::{OpenRequest, SessionManager};

/// Opens a session whose sandbox is `root`.
async fn session(root: &Path) -> Arc<dyn Backend> {
    let builder = LocalBackend::builder(root).enable_execute(true);
    let commands = Commands::default().supervisor(Supervisor::None);
    let local: Arc<dyn Sandbox> = Arc::new(builder.commands(commands).open().unwrap());
    let factory = move |_: OpenRequest| {
        let local = Arc::clone(&local);
        async move { Ok::<_, Error>(local) }
    };
    let manager = SessionManager::builder().factory(factory).build().unwrap();
    Arc::new(manager.get_or_create("conformance").await.unwrap())
}

fn fixture() -> DirectoryFixture {
    DirectoryFixture::new(|root| {
        let read_only = LocalBackend::builder(root).read_only(true).open().unwrap();
        let runtime = tokio::runtime::Handle::current();
        // The fixture opens its backend in a function that is not async.
        let opened = tokio::task::block_in_place(|| runtime.block_on(session(root)));
        (opened, Some(Arc::new(read_only)))
    })
}

backend_testkit::conformance! {
    mod session_on_a_directory;
    fixture = async || fixture();
    skipped = 32;
}
