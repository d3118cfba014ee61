//! `agentbox sandboxes`: containers whose program is gone.

use std::process::ExitCode;
use std::time::SystemTime;

use backend_docker::Leftover;
use clap::Subcommand;
use serde_json::{Value, json};

use crate::app::App;
use crate::backend::docker::settings::DockerSettings;
use crate::exit::Failure;
use crate::output;
use crate::signals::Interrupts;

/// Options of `sandboxes`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum Action {
    /// Lists the containers of programs that are gone.
    List {
        /// Prints them as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Does with them what their programs would have done: removes them, or stops
    /// those that were to be kept.
    Reap {
        /// Prints them as JSON.
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode, Failure> {
    let interrupts = Interrupts::watch()?;
    let daemon = DockerSettings::configured(&app.config.backends)?.daemon()?;
    let work = async {
        match args.command {
            Action::List { .. } => backend_docker::leftovers(&daemon).await,
            Action::Reap { .. } => backend_docker::reap(&daemon).await,
        }
    };
    let found = interrupts.unless(work).await??;
    match args.command {
        Action::List { json: true } | Action::Reap { json: true } => {
            let all: Vec<Value> = found.iter().map(as_json).collect();
            output::print_json(&all)?;
        }
        Action::List { .. } => output::print_foreign(&listed(&found, "left", "runs on"))?,
        Action::Reap { .. } => output::print_foreign(&listed(&found, "removed", "stopped"))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn listed(found: &[Leftover], removed: &str, kept: &str) -> String {
    if found.is_empty() {
        return "Nothing was left.\n".to_owned();
    }
    let line = |leftover: &Leftover| {
        let what = if leftover.removed { removed } else { kept };
        format!("{}  {}  {what}\n", leftover.name, leftover.image)
    };
    found.iter().map(line).collect()
}

fn as_json(leftover: &Leftover) -> Value {
    let created = leftover.created.duration_since(SystemTime::UNIX_EPOCH);
    json!({
        "id": leftover.id,
        "name": leftover.name,
        "image": leftover.image,
        "created": created.map(|time| time.as_secs()).unwrap_or_default(),
        "removed": leftover.removed,
    })
}
