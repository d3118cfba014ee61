//! `agentbox` without a command: the console.

use std::process::ExitCode;

use crate::app::App;
use crate::console::{self, Session};
use crate::exit::{self, Failure};

/// Runs the console, which handles Ctrl-C and shows the location of the files itself.
pub(crate) async fn run(mut app: App) -> Result<ExitCode, Failure> {
    app.spec.quiet = true;
    let opened = app.open().await?;
    let session = Session {
        toolset: app.toolset(&opened),
        approval_advice: app.approval_advice(&opened),
        backend: app.spec.text(),
    };
    let code = console::run(session).await;
    opened.stop().await;
    // The user's input may be to blame.
    code.map_err(|error| Failure::from(error).code(exit::FIXABLE))
}
