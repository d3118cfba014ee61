//! An agent's runtime from parts: a desk to run commands on, memories that outlive it,
//! both as one tree, and a model's tools in front of it.
//!
//! Run it with `cargo run --example runtime`: the desk is a directory. With the name of
//! an image, as in `cargo run --example runtime python:3.12-slim`, it is a container,
//! and nothing else changes.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use backend_composite::{Composite, Route};
use backend_core::ops::StopMode;
use backend_core::{Backend, BackendExt as _, VPath};
use backend_docker::{Daemon, DockerSandbox};
use backend_local::LocalBackend;
use backend_state::StateBackend;
use console_tools::{Chat, Toolset};
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

    // One tree: /desk is the directory where the sandbox's commands start.
    let on_desk = Route::new(VPath::parse("/desk")?, Arc::clone(&desk));
    let tree = Composite::builder()
        .route(on_desk.to_working_dir())
        .route(Route::new(
            VPath::parse("/memories")?,
            Arc::new(memories.clone()),
        ))
        .working_dir(VPath::parse("/desk")?)
        .build()?;
    let toolset = Toolset::builder(Arc::new(tree))
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
    // One search over both backends.
    call(&chat, "grep", json!({"pattern": "hello|Ada", "path": "/"})).await;

    // The desk is removed, the memories stay.
    if let Some(sandbox) = desk.as_sandbox() {
        sandbox.stop(StopMode::Purge).await?;
    }
    let learned = memories.read_to_string("/people.md").await?;
    assert_eq!(learned, "Ada was greeted.\n");
    Ok(())
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
