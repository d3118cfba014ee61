//! A real directory and commands in it: no path leads out of the directory, and no
//! process survives its command.
//!
//! Run it with `cargo run --example local_commands`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use backend_core::ops::{Command, Event};
use backend_core::{Backend as _, BackendExt as _, Sandbox as _};
use backend_local::LocalBackend;
use futures::StreamExt as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Must come first: this program is also the supervisor of its commands.
    backend_local::supervisor::run_if_asked();
    tokio::runtime::Runtime::new()?.block_on(show())
}

async fn show() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let backend = LocalBackend::builder(directory.path())
        .enable_execute(true)
        .open()?;
    println!("# Containment: {:?}", backend.info().containment);

    println!("\n# What the agent writes, its commands see, and the other way round.");
    backend.write_file("count.sh", SCRIPT).await?;
    let mut events = backend.stream(Command::new("sh count.sh")).await?;
    while let Some(event) = events.next().await {
        match event? {
            Event::Stdout(text) => print!("{}", String::from_utf8_lossy(&text)),
            Event::Ended(outcome) => println!("{}", outcome.status),
            _ => {}
        }
    }
    print!("{}", backend.read_to_string("result.txt").await?);

    println!("\n# A link out of the directory leads nowhere.");
    backend
        .execute(Command::new("ln -s /etc/passwd link"))
        .await?;
    if let Err(error) = backend.read_to_string("link").await {
        println!("{error}");
    }

    println!("\n# A command that hides and ignores TERM ends all the same.");
    let line = "setsid sh -c 'trap \"\" TERM; echo $$ > pid; sleep 1000' & wait";
    let stubborn = Command::new(line).timeout(Duration::from_millis(200));
    println!("{}", backend.execute(stubborn).await?.status);
    let check = Command::new("kill -0 $(cat pid) 2>/dev/null && echo still there || echo gone");
    print!("{}", backend.execute(check).await?.stdout.text());
    Ok(())
}

const SCRIPT: &str = "for n in 1 2 3; do echo line $n; done\necho done > result.txt\n";
