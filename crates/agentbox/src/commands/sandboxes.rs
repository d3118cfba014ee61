//! `agentbox sandboxes`: containers, pods and hosted sandboxes whose program is gone.

use std::process::ExitCode;
use std::time::SystemTime;

use clap::Subcommand;
use serde::Serialize;

use crate::app::App;
use crate::backend;
#[cfg(not(all(feature = "daytona", feature = "docker", feature = "k8s")))]
use crate::backend::absent;
#[cfg(feature = "daytona")]
use crate::backend::daytona::settings::DaytonaSettings;
#[cfg(feature = "docker")]
use crate::backend::docker::settings::DockerSettings;
#[cfg(feature = "k8s")]
use crate::backend::k8s::settings::K8sSettings;
use crate::backend::kind::Kind;
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
    /// Lists the containers of programs that are gone; the pods with --backend k8s, the hosted
    /// sandboxes with --backend daytona.
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

impl Action {
    fn is_reap(self) -> bool {
        matches!(self, Self::Reap { .. })
    }
}

/// A sandbox whose program is gone.
#[derive(Debug, Serialize)]
struct Left {
    id: String,
    name: String,
    /// The image or snapshot it was created from.
    image: String,
    /// Seconds since 1970.
    created: u64,
    /// Whether it was to be kept, and is only stopped.
    keep: bool,
    /// Whether it was removed just now.
    removed: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode, Failure> {
    let interrupts = Interrupts::watch()?;
    let work = find(app, args.command.is_reap());
    let found = interrupts.unless(work).await??;
    match args.command {
        Action::List { json: true } | Action::Reap { json: true } => output::print_json(&found)?,
        Action::List { .. } => output::print_foreign(&listed(&found, "left", "runs on"))?,
        Action::Reap { .. } => output::print_foreign(&listed(&found, "removed", "stopped"))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the kinds to look at: those that the backend consists of, else containers.
fn kinds(app: &App) -> Vec<Kind> {
    let mut kinds = match app.spec.kind {
        Kind::Composite => backend::check(&app.spec).unwrap_or_default(),
        // Also without an image, which is of no interest here.
        kind => vec![kind],
    };
    kinds.retain(|kind| matches!(kind, Kind::Daytona | Kind::Docker | Kind::K8s));
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.is_empty() {
        kinds.push(Kind::Docker);
    }
    kinds
}

async fn find(app: &App, is_reap: bool) -> Result<Vec<Left>, Failure> {
    let mut found = Vec::new();
    for kind in kinds(app) {
        found.extend(match kind {
            #[cfg(feature = "k8s")]
            Kind::K8s => pods(app, is_reap).await?,
            #[cfg(not(feature = "k8s"))]
            Kind::K8s => return Err(absent::without_k8s()),
            #[cfg(feature = "daytona")]
            Kind::Daytona => hosted(app, is_reap).await?,
            #[cfg(not(feature = "daytona"))]
            Kind::Daytona => return Err(absent::without_daytona()),
            #[cfg(feature = "docker")]
            _ => containers(app, is_reap).await?,
            #[cfg(not(feature = "docker"))]
            _ => return Err(absent::without_docker()),
        });
    }
    Ok(found)
}

#[cfg(feature = "docker")]
async fn containers(app: &App, is_reap: bool) -> Result<Vec<Left>, Failure> {
    let daemon = DockerSettings::configured(&app.config.backends)?.daemon()?;
    let found = if is_reap {
        backend_docker::reap(&daemon).await?
    } else {
        backend_docker::leftovers(&daemon).await?
    };
    let left = |leftover: backend_docker::Leftover| Left {
        id: leftover.id,
        name: leftover.name,
        image: leftover.image,
        created: seconds(leftover.created),
        keep: !leftover.removed,
        removed: is_reap && leftover.removed,
    };
    Ok(found.into_iter().map(left).collect())
}

#[cfg(feature = "k8s")]
async fn pods(app: &App, is_reap: bool) -> Result<Vec<Left>, Failure> {
    let settings = K8sSettings::configured(&app.config.backends)?;
    let cluster = settings.cluster().await?;
    let found = if is_reap {
        backend_k8s::reap(&cluster).await?
    } else {
        backend_k8s::leftovers(&cluster).await?
    };
    let left = |leftover: backend_k8s::Leftover| Left {
        id: leftover.pod.uid,
        name: leftover.name,
        image: leftover.image,
        created: seconds(leftover.created),
        keep: false,
        removed: is_reap,
    };
    Ok(found.into_iter().map(left).collect())
}

#[cfg(feature = "daytona")]
async fn hosted(app: &App, is_reap: bool) -> Result<Vec<Left>, Failure> {
    let account = DaytonaSettings::configured(&app.config.backends)?.account()?;
    let found = if is_reap {
        backend_daytona::reap(&account).await?
    } else {
        backend_daytona::leftovers(&account).await?
    };
    let left = |leftover: backend_daytona::Leftover| Left {
        id: leftover.id,
        name: leftover.name,
        image: leftover.image,
        created: seconds(leftover.created),
        keep: !leftover.removed,
        removed: is_reap && leftover.removed,
    };
    Ok(found.into_iter().map(left).collect())
}

fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map(|since| since.as_secs()).unwrap_or_default()
}

fn listed(found: &[Left], removed: &str, kept: &str) -> String {
    if found.is_empty() {
        return "Nothing was left.\n".to_owned();
    }
    let line = |left: &Left| {
        let what = if left.keep { kept } else { removed };
        format!("{}  {}  {what}\n", left.name, left.image)
    };
    found.iter().map(line).collect()
}
