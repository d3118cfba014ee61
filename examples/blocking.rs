//! A program without async: files, search, a command and an agent's tools as blocking
//! calls from a plain `fn main`.
//!
//! Run it with `cargo run --example blocking`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use backend_core::Backend;
use backend_core::ops::{Command, Event};
use backend_local::LocalBackend;
use backend_sync::{SyncBackend, SyncToolset};
use console_tools::Toolset;

fn main() -> Result<(), Box<dyn Error>> {
    // Must come first: this program is also the supervisor of its commands.
    backend_local::supervisor::run_if_asked();
    let directory = tempfile::tempdir()?;
    let local = LocalBackend::builder(directory.path()).enable_execute(true);
    let backend: Arc<dyn Backend> = Arc::new(local.open()?);

    let files = SyncBackend::new(Arc::clone(&backend));
    files.write_file("src/greet.sh", "echo hello, $1\n")?;
    files.replace_text("src/greet.sh", "hello", "good morning")?;
    for found in files.search_text("morning")?.files {
        println!("{} says good morning", found.path);
    }

    // The command's output, as it arrives. Leaving the loop ends the command.
    let sandbox = files.as_sandbox().ok_or("commands are switched off")?;
    for event in sandbox.stream(Command::new("sh src/greet.sh world"))? {
        match event? {
            Event::Stdout(piece) => print!("{}", String::from_utf8_lossy(&piece)),
            Event::Ended(outcome) => println!("{}", outcome.status),
            _ => {}
        }
    }

    // The same files through the tools that a model uses.
    let toolset = SyncToolset::new(Toolset::builder(backend).build()?);
    let chat = toolset.conversation("conversation-1");
    let reply = chat.call("read_file", r#"{"path": "src/greet.sh"}"#)?;
    println!("{}", reply.text);
    assert!(reply.is_success());
    Ok(())
}
