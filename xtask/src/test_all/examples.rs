//! Stage `examples`: runs each example, because one that only compiles may still be
//! wrong.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::process;
use crate::test_all::cargo::cargo;
use crate::test_all::stage::{Ctx, Outcome};

/// The package with the examples.
const PACKAGE: &str = "examples";

/// Timeout of an example. Only a hang takes this long.
const TIME_LIMIT: Duration = Duration::from_secs(120);

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let metadata = ctx.workspace.metadata()?;
    let package = metadata
        .packages
        .iter()
        .find(|package| package.name == PACKAGE)
        .with_context(|| format!("the workspace has no package `{PACKAGE}`"))?;
    let names: Vec<_> = package.targets_of("example").collect();
    if names.is_empty() {
        return Ok(Outcome::Skipped("there are no examples".to_owned()));
    }
    process::run(&mut cargo(ctx, "build", &["--examples"])?)?;
    let programs = metadata.target_directory.join("debug/examples");
    let failed: Vec<_> = names
        .iter()
        .copied()
        .filter(|name| !passes(ctx, &programs.join(name)))
        .collect();
    let note = format!("{} run", names.len());
    Ok(Outcome::unless_failed(&failed, note))
}

fn passes(ctx: &Ctx, program: &Path) -> bool {
    let result = ctx
        .workspace
        .command(program)
        .and_then(|mut command| process::run_limited(&mut command, TIME_LIMIT));
    if let Err(error) = &result {
        eprintln!("error: {}: {error:#}", program.display());
    }
    result.is_ok()
}
