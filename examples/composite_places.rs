//! Several places as one tree, with a model's tools in front of it: a desk to run commands
//! on, memories that outlive it, and a handbook that cannot be changed.
//!
//! Run it with `cargo run --example composite_places`: the desk is a directory. With the
//! name of an image, as in `cargo run --example composite_places python:3.12-slim`, it is
//! a container, and nothing else changes.
//!
//! Look at `tree`: each path goes to the route with the longest matching prefix. To the
//! tools it is one backend, so one search covers all places, and a copy may go from one
//! to another.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use backend_composite::{Composite, Route};
use backend_core::ops::StopMode;
use backend_core::{Backend, BackendExt as _, VPath};
use backend_docker::{Daemon, DockerSandbox};
use backend_local::LocalBackend;
use backend_state::StateBackend;
use console_tools::{Chat, Options, Toolset};
use permissions::Preset;
use permissions::approval::ApproveAll;
use sandbox_wire::agent::AgentBinary;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    // Must come first: this program is also the supervisor of local commands.
    backend_local::supervisor::run_if_asked();
    tokio::runtime::Runtime::new()?.block_on(show())
}

async fn show() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let desk: Arc<dyn Backend> = match std::env::args().nth(1) {
        Some(image) => Arc::new(container(&image)?),
        None => {
            let local = LocalBackend::builder(directory.path());
            Arc::new(local.enable_execute(true).open()?)
        }
    };
    let memories = StateBackend::new();
    memories.write_file("/style.md", "Greet by name.\n").await?;

    let shelf = tempfile::tempdir()?;
    std::fs::write(shelf.path().join("greeting.md"), "Say hello.\n")?;
    let handbook = LocalBackend::builder(shelf.path()).read_only(true).open()?;

    let tree = tree(Arc::clone(&desk), &memories, handbook)?;
    let mut options = Options::default();
    options.include_file_operations = true;
    let toolset = Toolset::builder(Arc::new(tree))
        .options(options)
        .ruleset(Preset::Default.ruleset())
        .approver(ApproveAll) // or an approver that asks the user
        .build()?;
    let chat = toolset.conversation("conversation-1");

    let script = "echo \"hello, $1\"\n";
    call(&chat, "read_file", json!({"path": "/memories/style.md"})).await;
    call(
        &chat,
        "write_file",
        json!({"path": "greet.sh", "content": script}),
    )
    .await;
    call(&chat, "execute", json!({"command": "sh greet.sh Ada"})).await;
    let learned = json!({"path": "/memories/people.md", "content": "Ada was greeted.\n"});
    call(&chat, "write_file", learned).await;
    let copy = json!({"source": "/handbook/greeting.md", "destination": "/desk/greeting.md"});
    call(&chat, "copy_file", copy).await;
    // One search over all places.
    call(&chat, "grep", json!({"pattern": "hello|Ada", "path": "/"})).await;

    let change = json!({"path": "/handbook/greeting.md", "content": ""});
    let refused = chat.call("write_file", change).await;
    println!("\n{}", refused.text);
    assert!(!refused.is_success());

    // The desk is removed, the memories stay.
    if let Some(sandbox) = desk.as_sandbox() {
        sandbox.stop(StopMode::Purge).await?;
    }
    let learned = memories.read_to_string("/people.md").await?;
    assert_eq!(learned, "Ada was greeted.\n");
    Ok(())
}

/// Combines the places. Relative paths and commands start at the desk, which is the
/// directory where the sandbox's own commands start.
fn tree(
    desk: Arc<dyn Backend>,
    memories: &StateBackend,
    handbook: LocalBackend,
) -> Result<Composite, Box<dyn Error>> {
    let route =
        |prefix: &str, backend| Ok::<_, Box<dyn Error>>(Route::new(VPath::parse(prefix)?, backend));
    let tree = Composite::builder()
        .route(route("/desk", desk)?.to_working_dir())
        .route(route("/memories", Arc::new(memories.clone()))?)
        .route(route("/handbook", Arc::new(handbook))?)
        .working_dir(VPath::parse("/desk")?);
    Ok(tree.build()?)
}

/// Describes a container without network, capabilities or root. The first call creates
/// it.
fn container(image: &str) -> Result<DockerSandbox, Box<dyn Error>> {
    let mut builder = DockerSandbox::builder()
        .daemon(Daemon::from_env()?)
        .image(image);
    // Without an agent binary beside this program, the image's shell is used instead.
    if let Some(agent) = AgentBinary::locate_from_env()? {
        builder = builder.agent(agent);
    }
    Ok(builder.build()?)
}

/// Makes a call like a model would, and prints it.
async fn call(chat: &Chat, name: &str, arguments: Value) {
    println!("\n> {name} {arguments}");
    let reply = chat.call(name, arguments).await;
    println!("{}", reply.text.trim_end());
    assert!(reply.is_success());
}
