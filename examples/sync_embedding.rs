//! All of it in a program without async: files, search, commands and an agent's tools as
//! blocking calls, from a plain `fn main` and from threads of its own.
//!
//! Run it with `cargo run --example sync_embedding`.
//!
//! Look at `in_threads`: one toolset serves all threads, each with its own conversation;
//! and at `cancelled`: any thread can end the calls of another.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;
use std::thread;

use backend_core::ops::{Command, Event};
use backend_core::{Backend, ErrorKind};
use backend_local::{Commands, LocalBackend};
use backend_sync::{Cancel, SyncBackend, SyncToolset};
use console_tools::Toolset;
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    // Must come first: this program is also the supervisor of its commands.
    backend_local::supervisor::run_if_asked();
    show(Commands::new())
}

fn show(commands: Commands) -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let local = LocalBackend::builder(directory.path())
        .commands(commands)
        .enable_execute(true);
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
    in_threads(&SyncToolset::new(Toolset::builder(backend).build()?));
    assert_eq!(files.find_files("notes/*")?.files.len(), 4);
    cancelled(&files)
}

fn in_threads(toolset: &SyncToolset) {
    let work = |number: usize| {
        let chat = toolset.conversation(format!("conversation-{number}"));
        let note = json!({"path": format!("notes/{number}.md"), "content": "# Note\n"});
        let reply = chat.call("write_file", note);
        println!(
            "{number}: {}",
            reply.map_or_else(|error| error.to_string(), |reply| reply.text)
        );
    };
    thread::scope(|scope| {
        for number in 1..=4 {
            scope.spawn(move || work(number));
        }
    });
}

/// Starts a command that never ends, and ends it from another thread.
fn cancelled(files: &SyncBackend) -> Result<(), Box<dyn Error>> {
    let cancel = Cancel::new();
    let files = files.clone().cancelled_by(&cancel);
    let sandbox = files.as_sandbox().ok_or("commands are switched off")?;
    let endless = Command::new("echo started; exec sleep 1000");
    thread::scope(|scope| {
        for event in sandbox.stream(endless)? {
            match event {
                Ok(Event::Stdout(_)) => {
                    scope.spawn(|| cancel.cancel());
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Cancelled => {
                    println!("{error}");
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err("the command ended by itself".into())
    })
}

#[cfg(test)]
mod tests {
    use backend_local::Supervisor;

    use super::*;

    #[test]
    fn it_runs() {
        // This program has no supervisor: its main function is that of the tests.
        show(Commands::new().supervisor(Supervisor::None)).unwrap();
    }
}
