//! `agentbox tour`: real calls and real replies, in a directory that goes again.

mod stage;
mod steps;

use std::process::ExitCode;
use std::sync::Arc;

use backend_local::LocalBackend;

use self::stage::Stage;
use crate::backend::Opened;
use crate::exit::Failure;
use crate::signals::{self, Interrupts};

/// Options of `tour`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Waits for nobody, also on a terminal.
    #[arg(long)]
    no_pause: bool,
}

pub(crate) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let interrupts = Interrupts::watch()?;
    let cannot = |error: std::io::Error| {
        Failure::environment(format!(
            "the tour needs a temporary directory: {error}; set TMPDIR to one that can be written"
        ))
    };
    let place = tempfile::Builder::new()
        .prefix("agentbox-tour-")
        .tempdir()
        .map_err(cannot)?;
    signals::temporary(place.path());
    let backend = LocalBackend::builder(place.path())
        .enable_execute(true)
        .open()?;
    let mut stage = Stage::new(backend.clone(), !args.no_pause);
    let shown = interrupts.unless(steps::all(&mut stage)).await;
    Opened::new(Arc::new(backend)).stop().await;
    place.close().map_err(cannot)?;
    match shown {
        Ok(shown) => shown.map(|()| ExitCode::SUCCESS),
        Err(code) => Ok(ExitCode::from(code)),
    }
}
