//! `agentbox watch [PATH]`: prints the changes of a tree as they happen.

use std::process::ExitCode;
use std::sync::Arc;

use backend_core::ops::{Change, ChangeKind, WatchEvent, WatchQuery};
use backend_core::search::Exclude;
use backend_core::{Backend, VPath};
use futures::StreamExt as _;
use permissions::Guarded;

use crate::app::App;
use crate::approval;
use crate::exit::{self, Failure, usage};
use crate::output;
use crate::signals::Interrupts;
use crate::terminal::safe::is_plain;

/// The signal that the exit code reports when the reader of the output is gone.
const SIGPIPE: i32 = 13;

/// Options of `watch`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The directory to watch; the working directory if it is left out.
    #[arg(value_name = "PATH")]
    path: Option<String>,
    /// A pattern of entries to leave out, such as target or '*.log'. Can be given
    /// several times.
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
    /// Leaves out what happens in the directories beneath.
    #[arg(long)]
    one_level: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode, Failure> {
    let interrupts = Interrupts::watch()?;
    let exclude = Exclude::hide(&args.exclude).map_err(|error| usage!("{error}"))?;
    let opened = interrupts.unless(app.open()).await??;
    let backend = Arc::clone(&opened.backend);
    let path = backend
        .working_dir()
        .join(args.path.as_deref().unwrap_or_default());
    let policy = app.policy(&opened);
    let guarded = Guarded::builder(backend)
        .policy(policy)
        .approver(approval::terminal(app.approval_advice(&opened)))
        .build();
    let watch = async {
        let path = path.map_err(|error| usage!("{error}"))?;
        let query = WatchQuery::new(path)
            .recursive(!args.one_level)
            .exclude(exclude);
        follow(&guarded, query).await
    };
    let ended = interrupts.unless(watch).await;
    opened.stop().await;
    Ok(ExitCode::from(ended??))
}

/// Prints changes until there are no more.
async fn follow(backend: &dyn Backend, query: WatchQuery) -> Result<u8, Failure> {
    let path = shown(&query.path);
    let mut events = backend.watch(query).await?;
    output::note(&format!("agentbox: watching {path}; Ctrl-C ends it"));
    while let Some(event) = events.next().await {
        let line = line(&event?);
        if !output::print_bytes(format!("{line}\n").as_bytes())? {
            return Ok(exit::signalled(SIGPIPE));
        }
    }
    Ok(0)
}

fn line(event: &WatchEvent) -> String {
    match event {
        WatchEvent::Change(change) => change_line(change),
        WatchEvent::Overflow => {
            "overflow: changes were lost; list the directory to see its state".to_owned()
        }
        other => format!("{other:?}"),
    }
}

fn change_line(change: &Change) -> String {
    let path = shown(&change.path);
    match &change.kind {
        ChangeKind::Created => format!("created {path}"),
        ChangeKind::Changed => format!("changed {path}"),
        ChangeKind::Deleted => format!("deleted {path}"),
        ChangeKind::Renamed { from } => format!("renamed {} -> {path}", shown(from)),
        other => format!("{other:?} {path}"),
    }
}

/// Returns the path on one line: one with invisible characters is escaped.
fn shown(path: &VPath) -> String {
    let text = path.as_str();
    if is_plain(text) {
        text.to_owned()
    } else {
        format!("{text:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_look_like_a_line() {
        let path = |text| VPath::parse(text).unwrap();
        let told = |change: Change| line(&change.into());
        let moved = Change::renamed(path("/a b"), path("/c"));
        assert_eq!(told(moved), "renamed /a b -> /c");
        let odd = Change::created(path("/a\ndeleted /b\u{1b}[2J"));
        assert_eq!(told(odd), r#"created "/a\ndeleted /b\u{1b}[2J""#);
        assert!(line(&WatchEvent::Overflow).starts_with("overflow: "));
    }
}
