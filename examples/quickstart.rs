//! An agent's files in memory: write, list, search, edit, snapshot, restore.
//!
//! Run it with `cargo run --example quickstart`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use backend_core::ops::{GrepQuery, TextOptions};
use backend_core::{Backend, BackendExt as _, Result};
use backend_state::{Snapshot, StateBackend};

#[tokio::main]
async fn main() -> Result<()> {
    let files = StateBackend::new();

    println!("# An agent writes a small project.");
    files.write_file("src/main.rs", MAIN).await?;
    files.write_file("src/lib.rs", LIB).await?;
    files.write_file(".gitignore", "target/\n").await?;
    files.write_file("target/debug/junk", "TODO\n").await?;
    for entry in files.list_dir(".").await?.entries {
        println!("{}{}", entry.name(), if entry.is_dir() { "/" } else { "" });
    }

    println!("\n# It searches; what .gitignore names stays out.");
    let found = files
        .grep(GrepQuery::new("TODO", files.working_dir()))
        .await?;
    for file in &found.files {
        for line in file.lines() {
            println!("{}:{}: {}", file.path, line.number, line.text());
        }
    }
    println!("({} ignored)", found.skipped.ignored);

    println!("\n# A wrong edit changes nothing and says what is near.");
    let before = files.snapshot();
    let missed = files
        .replace_text("src/lib.rs", "todo!()  // todo", "a + b")
        .await;
    if let Err(error) = missed {
        println!("{error}");
    }

    println!("\n# A right one does exactly what it says.");
    files
        .replace_text("src/lib.rs", "todo!() // TODO: add them", "a + b")
        .await?;
    let path = files.path("src/lib.rs")?;
    for line in files
        .read_text(&path, TextOptions::default())
        .await?
        .lines()
    {
        println!("{:>3} {}", line.number, line.text);
    }

    println!("\n# The state before is one JSON document, and comes back byte by byte.");
    let json = before.to_json()?;
    println!("{} bytes of JSON, {} files", json.len(), before.len());
    files.restore(Snapshot::from_json(&json)?);
    assert_eq!(files.read_to_string("src/lib.rs").await?, LIB);
    println!("restored");
    Ok(())
}

const MAIN: &str = "fn main() {\n    println!(\"{}\", demo::add(1, 2));\n}\n";
const LIB: &str = "pub fn add(a: i32, b: i32) -> i32 {\n    todo!() // TODO: add them\n}\n";
