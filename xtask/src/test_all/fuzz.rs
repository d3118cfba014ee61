//! Stage `fuzz`: a short run of every fuzz target.
//!
//! A short run shows that the targets build and that nothing near the surface
//! breaks. It tries the same inputs each time, so that it fails for a change and
//! not by chance; `--slow` tries new ones, for longer.

use anyhow::Result;

use crate::process;
use crate::test_all::{Ctx, Outcome};

/// Inputs that a short run tries.
const RUNS_PER_TARGET: u32 = 100_000;
/// The most that a run may take.
const SECONDS_PER_TARGET: u32 = 60;
const SLOW_SECONDS_PER_TARGET: u32 = 120;
const MEMORY_LIMIT_MIB: u32 = 2048;

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    if !ctx.workspace.root().join("fuzz").is_dir() {
        return Ok(Outcome::Skipped("there is no fuzz/".to_owned()));
    }
    let list = process::output(&mut ctx.workspace.cargo(["fuzz", "list"])?)?;
    let targets: Vec<_> = list
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if targets.is_empty() {
        return Ok(Outcome::Failed("fuzz/ has no targets".to_owned()));
    }
    let mut failed = Vec::new();
    for target in &targets {
        if let Err(error) = fuzz(ctx, target) {
            eprintln!("error: fuzz target {target}: {error:#}");
            failed.push(*target);
        }
    }
    let each = if ctx.slow {
        format!("{SLOW_SECONDS_PER_TARGET} s")
    } else {
        format!("{RUNS_PER_TARGET} inputs")
    };
    let note = format!("{} run, {each} each", targets.len());
    Ok(Outcome::unless_failed(&failed, note))
}

fn fuzz(ctx: &Ctx, target: &str) -> Result<()> {
    // Without a sanitizer the stable toolchain is enough; safe code has little use for one.
    let mut command = ctx
        .workspace
        .cargo(["fuzz", "run", "--sanitizer", "none"])?;
    command
        .arg("--target-dir")
        .arg(ctx.workspace.cache("fuzz-target"))
        .arg(target)
        .arg("--");
    if ctx.slow {
        command.arg(format!("-max_total_time={SLOW_SECONDS_PER_TARGET}"));
    } else {
        command
            .arg("-seed=1")
            .arg(format!("-runs={RUNS_PER_TARGET}"));
        command.arg(format!("-max_total_time={SECONDS_PER_TARGET}"));
    }
    command.arg(format!("-rss_limit_mb={MEMORY_LIMIT_MIB}"));
    // No line for every new input; a crash is still shown in full.
    command.arg("-verbosity=0");
    process::run(&mut command)
}
