//! Stage `fuzz`: a short run of every fuzz target.
//!
//! A short run finds little that is new; it shows that the targets build and
//! that nothing near the surface breaks. `--slow` gives each one more time.

use anyhow::Result;

use crate::process;
use crate::test_all::{Ctx, Outcome};

const SECONDS_PER_TARGET: u32 = 10;
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
    let seconds = if ctx.slow {
        SLOW_SECONDS_PER_TARGET
    } else {
        SECONDS_PER_TARGET
    };
    let mut failed = Vec::new();
    for target in &targets {
        if let Err(error) = fuzz(ctx, target, seconds) {
            eprintln!("error: fuzz target {target}: {error:#}");
            failed.push(*target);
        }
    }
    let note = format!("{} run, {seconds} s each", targets.len());
    Ok(Outcome::unless_failed(&failed, note))
}

fn fuzz(ctx: &Ctx, target: &str, seconds: u32) -> Result<()> {
    // Without a sanitizer the stable toolchain is enough; safe code has little use for one.
    let mut command = ctx
        .workspace
        .cargo(["fuzz", "run", "--sanitizer", "none"])?;
    command
        .arg("--target-dir")
        .arg(ctx.workspace.cache("fuzz-target"))
        .arg(target)
        .arg("--");
    command.arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-rss_limit_mb={MEMORY_LIMIT_MIB}"));
    // No line for every new input; a crash is still shown in full.
    command.arg("-verbosity=0");
    process::run(&mut command)
}
