//! Stage `browser`: the page of the example `web_app` in headless Chromium.

use std::time::Duration;

use anyhow::Result;

use crate::process;
use crate::test_all::cargo::cargo;
use crate::test_all::stage::{Ctx, Outcome};
use crate::xterm;

/// The script, in the repository.
const SCRIPT: &str = "examples/web_app/tests/browser/browser.mjs";

/// Debian's browser.
pub(super) const CHROMIUM: &str = "/usr/bin/chromium";

/// Only a hang takes this long.
const TIME_LIMIT: Duration = Duration::from_secs(600);

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let workspace = &ctx.workspace;
    let packages = xterm::install(workspace)?;
    process::run(&mut cargo(ctx, "build", &["--bin", "web_app"])?)?;
    let program = workspace.metadata()?.target_directory.join("debug/web_app");
    let shots = workspace.cache("browser");
    let mut node = workspace.command("node")?;
    node.arg(SCRIPT).args([&program, &CHROMIUM.into()]);
    node.args([&packages, &shots]);
    process::run_limited(&mut node, TIME_LIMIT)?;
    Ok(Outcome::Passed(format!(
        "screenshots in {}",
        shots.display()
    )))
}
