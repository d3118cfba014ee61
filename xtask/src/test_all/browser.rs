//! Stage `browser`: the pages of the examples `web_app` and `predictive_analytics` in headless
//! Chromium.

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
    let built = ["--bin", "web_app", "--bin", "predictive_analytics"];
    process::run(&mut cargo(ctx, "build", &built)?)?;
    let programs = workspace.metadata()?.target_directory.join("debug");
    let shots = workspace.cache("browser");
    let mut node = workspace.command("node")?;
    node.arg(SCRIPT).args([&programs, &CHROMIUM.into()]);
    node.args([&packages, &shots]);
    process::run_limited(&mut node, TIME_LIMIT)?;
    Ok(Outcome::Passed(format!(
        "screenshots in {}",
        shots.display()
    )))
}
