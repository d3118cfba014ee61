//! A coding agent in the terminal, on a directory of yours.
//!
//! `cargo run --example cli_agent` shows it without a model: a script on loopback stands
//! in, on a directory that is removed afterwards. For a real task:
//!
//! ```sh
//! cargo run --example cli_agent -- --base-url http://localhost:11434/v1 --model NAME \
//!     --dir ~/project --task "Mend the failing test."
//! ```
//!
//! Look at:
//! - `toolset` here: the file tools cannot leave the directory, and every change and every
//!   command asks first;
//! - `screen.rs`: questions are answered in the terminal, and once its input ends, the
//!   answer is no;
//! - `undo.rs`: before the agent starts, git keeps the work tree with its untracked files,
//!   where the agent cannot change it; `--undo` brings it back, and a second `--undo` takes
//!   that back.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a program says why it stops, and reads its key from the environment"
)]

mod screen;
#[cfg(test)]
mod tests;
mod undo;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use backend_local::{Commands, Confinement, Landlock, LocalBackend};
use clap::Parser;
use console_tools::{Options, Toolset};
use examples::chat::script::replies;
use examples::chat::{Endpoint, Error, Event, Model, Script, Turn, begin};
use permissions::Preset;
use screen::Screen;
use serde_json::json;

/// A coding agent on a directory. Without --base-url, a script stands in for the model.
#[derive(Debug, Parser)]
struct Args {
    /// The task, in plain words.
    #[arg(long)]
    task: Option<String>,
    /// The directory to work in.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The model's name.
    #[arg(long, requires = "base_url")]
    model: Option<String>,
    /// The address of an OpenAI-compatible endpoint, before /chat/completions. A key is
    /// read from OPENAI_API_KEY.
    #[arg(long, requires_all = ["model", "task", "dir"])]
    base_url: Option<String>,
    /// Offer no commands.
    #[arg(long)]
    no_execute: bool,
    /// Confine commands to the directory and the system's programs, without network.
    /// Otherwise they run with your privileges, once you agree.
    #[arg(long)]
    restrict: bool,
    /// Search hidden files too.
    #[arg(long)]
    include_hidden: bool,
    /// Restore the directory's git work tree as it was before the last task.
    #[arg(long, requires = "dir", conflicts_with = "task")]
    undo: bool,
    /// The directory that work trees are kept in; a usual place unless given.
    #[arg(long)]
    undo_store: Option<PathBuf>,
}

fn main() -> ExitCode {
    // Must come first: this program is also the supervisor of its commands.
    backend_local::supervisor::run_if_asked();
    let args = Args::parse();
    let screen = Screen::of_this_process();
    let runtime = tokio::runtime::Runtime::new().map_err(Error::from);
    let done = runtime.and_then(|runtime| runtime.block_on(run(args, Commands::new(), screen)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args, commands: Commands, screen: Screen) -> Result<(), Error> {
    let temporary;
    let dir = match &args.dir {
        Some(dir) => dir.as_path(),
        None => {
            temporary = tempfile::tempdir()?;
            temporary.path()
        }
    };
    let store = args.undo_store.as_deref();
    if args.undo {
        screen.line(&undo::undo(dir, store)?);
        return Ok(());
    }
    let model = match (&args.base_url, &args.model) {
        (Some(base_url), Some(model)) => Model::at(Endpoint {
            base_url: base_url.clone(),
            model: model.clone(),
            key: std::env::var("OPENAI_API_KEY").ok(),
        })?,
        _ => Model::scripted(script()).await?,
    };
    if model.is_scripted() {
        screen.line("This is a script, not a model; --base-url and --model name one.");
    }
    screen.line(&match undo::keep(dir, store)? {
        true => format!("To undo all of it: --undo --dir {}", dir.display()),
        false => "There is no git work tree here: changes cannot be undone.".to_owned(),
    });

    let chat = toolset(&args, dir, commands, &screen)?.conversation("cli_agent");
    let task = args.task.as_deref().unwrap_or("Count to three.");
    let mut messages = begin(&chat, task).await?;
    screen.waiting("the model");
    let mut show = |event: Event<'_>| screen.show(event);
    let talked = model.converse(&chat, &mut messages, &mut show).await;
    screen.end_line();
    talked
}

/// Everything the agent can do. The toolset guards the backend: it judges each access, and
/// asks on the screen.
fn toolset(args: &Args, dir: &Path, commands: Commands, screen: &Screen) -> Result<Toolset, Error> {
    let commands = match args.restrict {
        true => commands.confinement(Confinement::Landlock(Landlock::new())),
        false => commands,
    };
    let backend = LocalBackend::builder(dir)
        .enable_execute(!args.no_execute)
        .commands(commands)
        .search_hidden(args.include_hidden)
        .open()?;
    let mut options = Options::default();
    options.default_ignore_hidden = !args.include_hidden;
    options.include_file_operations = true;
    let toolset = Toolset::builder(Arc::new(backend))
        .options(options)
        .ruleset(Preset::Default.ruleset())
        .approver(screen.approver());
    Ok(toolset.build()?)
}

/// Stands for a model: it writes a program, runs it, and respects a no.
fn script() -> Script {
    let program = "for n in 1 2 3; do echo \"$n\"; done\n";
    Script::new()
        .says("I look at what is there.")
        .calls("ls", json!({}))
        .says("Now I write a program.")
        .calls(
            "write_file",
            json!({"path": "count.sh", "content": program}),
        )
        .then(|messages| match replies(messages)[..] {
            [reply] if reply.starts_with("Error: ") => {
                Turn::says("Then I leave everything as it is.")
            }
            _ => Turn::says("I try it.").calls("execute", json!({"command": "sh count.sh"})),
        })
        .then(|messages| match replies(messages)[..] {
            [reply] if reply.trim() == "1\n2\n3" => Turn::says("It counts to three."),
            _ => Turn::says("I have not seen it run."),
        })
}
