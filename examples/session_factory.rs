//! Sessions whose sandboxes you create yourself: a function from a request to a sandbox.
//! Here each tenant gets what its plan includes.
//!
//! Run it with `cargo run --example session_factory`.
//!
//! Look at `create`: it is called once for each session, however many ask for it at the
//! same time, and again after the session has ended. The manager does the rest: ceilings,
//! idle sessions, shutdown. `many_users` shows an engine instead, whose sandboxes
//! outlive the program.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backend_core::ops::Command;
use backend_core::{BackendExt as _, Error, Result, Sandbox};
use backend_local::{Commands, LocalBackend};
use sessions::{OpenRequest, SessionId, SessionManager};

/// Creates the sandbox of a session beneath `root`.
fn create(root: &Path, commands: Commands, request: &OpenRequest) -> Result<Arc<dyn Sandbox>> {
    let file_bytes = match request.tenant.as_deref() {
        Some("free") => 1_000,
        Some("team") => 1_000_000,
        // A factory decides who gets a sandbox at all.
        _ => {
            return Err(Error::invalid_input(
                "no plan has this tenant; sign in first",
            ));
        }
    };
    let directory = root.join(request.id.as_str());
    let backend = LocalBackend::builder(directory)
        .create_root(true)
        .max_file_bytes(file_bytes)
        .commands(commands)
        .enable_execute(true)
        .open()?;
    Ok(Arc::new(backend))
}

fn manager(root: &Path, commands: Commands) -> Result<SessionManager> {
    let root = root.to_owned();
    SessionManager::builder()
        .factory(move |request: OpenRequest| {
            println!("(a sandbox for {})", request.id);
            let sandbox = create(&root, commands.clone(), &request);
            async move { sandbox }
        })
        // The directory stays, so a session that ended is found again.
        .keeps_files(true)
        .max_sessions_per_tenant(2)
        .on_release(|id| println!("({id} has ended)"))
        .build()
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    // Must come first: this program is also the supervisor of its commands.
    backend_local::supervisor::run_if_asked();
    let root = tempfile::tempdir()?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async { show(&manager(root.path(), Commands::new())?).await })?;
    Ok(())
}

fn request(id: &str, tenant: &str) -> Result<OpenRequest> {
    Ok(OpenRequest::new(SessionId::new(id)?).tenant(tenant))
}

async fn show(manager: &SessionManager) -> Result<()> {
    println!("# Two ask for one session at once, and get the same sandbox");
    let open = || async { manager.open(request("ada", "free")?).await };
    let (one, two) = futures::try_join!(open(), open())?;
    one.write_file("notes.md", "mine\n").await?;
    assert_eq!(two.read_to_string("notes.md").await?, "mine\n");

    println!("\n# The plan decides");
    for (id, tenant) in [("ada", "free"), ("grace", "team")] {
        let session = manager.open(request(id, tenant)?).await?;
        let done = session
            .execute(Command::new("echo hello from $PWD"))
            .await?;
        print!("{}", done.stdout.text());
        match session.write_file("large", "x".repeat(2_000)).await {
            Ok(_) => println!("{id} writes a large file"),
            Err(error) => println!("{error}"),
        }
    }
    if let Err(error) = manager.open(request("eve", "nobody")?).await {
        println!("{error}");
    }

    println!("\n# A session ends, and its files are found again");
    manager.release("ada").await?;
    let again = manager.open(request("ada", "free")?).await?;
    print!("{}", again.read_to_string("notes.md").await?);

    println!("\n# The end");
    let ended = manager.shutdown(Duration::from_secs(60)).await;
    println!("{} sessions ended", ended.ended);
    Ok(())
}

#[cfg(test)]
mod tests {
    use backend_local::Supervisor;

    use super::*;

    fn started(root: &Path) -> SessionManager {
        // This program has no supervisor: its main function is that of the tests.
        manager(root, Commands::new().supervisor(Supervisor::None)).unwrap()
    }

    #[tokio::test]
    async fn it_runs() {
        let root = tempfile::tempdir().unwrap();
        show(&started(root.path())).await.unwrap();
        assert!(root.path().join("ada/notes.md").exists());
    }

    #[tokio::test]
    async fn the_plan_decides() {
        let root = tempfile::tempdir().unwrap();
        let manager = started(root.path());
        for (id, tenant, expected) in [("ada", "free", false), ("grace", "team", true)] {
            let session = manager.open(request(id, tenant).unwrap()).await.unwrap();
            let written = session.write_file("large", "x".repeat(2_000)).await;
            assert_eq!(written.is_ok(), expected, "{id}: {written:?}");
            assert_eq!(root.path().join(id).join("large").exists(), expected);
        }
        assert!(
            manager
                .open(request("eve", "nobody").unwrap())
                .await
                .is_err()
        );
        assert!(!root.path().join("eve").exists());
    }
}
