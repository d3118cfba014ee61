//! `agentbox tour`: real calls and real replies, in a temporary directory.

#[cfg(local)]
mod stage;
#[cfg(local)]
mod steps;

use std::process::ExitCode;

use crate::exit::{Failure, environment};

/// Options of `tour`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Does not wait for Enter, even on a terminal.
    #[arg(long)]
    no_pause: bool,
}

#[cfg(not(local))]
pub(crate) async fn run(_: &Args) -> Result<ExitCode, Failure> {
    std::future::ready(Err(crate::backend::absent::without_local("the tour"))).await
}

#[cfg(local)]
pub(crate) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    use std::sync::Arc;

    use backend_core::ops::StopMode;

    use crate::backend::open_backend::OpenBackend;
    use crate::signals::{self, Interrupts};

    let interrupts = Interrupts::watch()?;
    let cannot = |error: std::io::Error| {
        environment!(
            "the tour needs a temporary directory: {error}; set TMPDIR to one that can be written"
        )
    };
    let temporary = tempfile::Builder::new()
        .prefix("agentbox-tour-")
        .tempdir()
        .map_err(cannot)?;
    signals::temporary(temporary.path());
    let backend = backend_local::LocalBackend::builder(temporary.path())
        .enable_execute(true)
        .open()?;
    let mut stage = stage::Stage::new(backend.clone(), !args.no_pause);
    let shown = interrupts.unless(steps::all(&mut stage)).await;
    let backend = OpenBackend::new(Arc::new(backend), Some(StopMode::Keep));
    backend.stop().await;
    remove(temporary.path()).map_err(cannot)?;
    shown??;
    Ok(ExitCode::SUCCESS)
}

/// Removes a directory. A file operation that has begun runs to its end even if its call was
/// dropped, and may add something while everything else is removed.
#[cfg(local)]
fn remove(directory: &std::path::Path) -> std::io::Result<()> {
    // One operation at a time, which makes fewer files and directories than this.
    for _ in 0..10 {
        match std::fs::remove_dir_all(directory) {
            Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {}
            removed => return removed,
        }
    }
    std::fs::remove_dir_all(directory)
}
