//! Stage `agent`: the agent for sandboxes can be built, has no dependencies at run
//! time, and is not too large.

use anyhow::{Result, ensure};

use crate::test_all::stage::{Ctx, Outcome};
use crate::{agent, process};

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let built = agent::build(&ctx.workspace, None)?;
    built.check()?;
    let version = process::output(ctx.workspace.command(&built.path)?.arg("--version"))?;
    ensure!(version.starts_with("sandbox-agent "), "it says {version:?}");
    Ok(Outcome::Passed(built.size()))
}
