//! Stage `agent`: the program that is carried into sandboxes can be built, runs by itself, and is
//! not too large. With `--full`, also: an `agentbox` that carries it unpacks it.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use crate::agent::Built;
use crate::test_all::cargo::cargo;
use crate::test_all::{Ctx, Outcome};
use crate::{agent, dist, process};

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let built = agent::build(&ctx.workspace, None)?;
    built.check()?;
    let version = process::output(ctx.workspace.command(&built.path)?.arg("--version"))?;
    ensure!(version.starts_with("sandbox-agent "), "it says {version:?}");
    if !ctx.is_full {
        return Ok(Outcome::Passed(built.size()));
    }
    unpacks(ctx, &built, &version)?;
    Ok(Outcome::Passed(format!("{}, also embedded", built.size())))
}

/// Builds the program as `cargo xtask dist` does, but like the tests, and has it unpack.
fn unpacks(ctx: &Ctx, built: &Built, version: &str) -> Result<()> {
    let place = ctx.workspace.cache("embedded");
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    let agents = place.join("agents");
    fs::create_dir_all(&agents)?;
    dist::pack(built, &agents)?;
    let mut build = cargo(ctx, "build", &["--bin", "agentbox"])?;
    process::run(build.env(dist::EMBED, &agents))?;
    let program = ctx.workspace.metadata()?.target_directory;
    let mut program = ctx.workspace.command(program.join("debug/agentbox"))?;
    program.args(["agent", "where"]).env_remove("SANDBOX_AGENT");
    for variable in ["HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"] {
        program.env(variable, place.join("home"));
    }
    let found = process::output(&mut program)?;
    let path = found.split_whitespace().last().context("it found none")?;
    ensure!(
        path.starts_with(&*place.to_string_lossy()),
        "it found {path}"
    );
    let unpacked = process::output(ctx.workspace.command(path)?.arg("--version"))?;
    ensure!(unpacked == version, "what was unpacked says {unpacked:?}");
    Ok(())
}
