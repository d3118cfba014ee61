//! Stage `fuzz`: a short run of every fuzz target.
//!
//! A short run shows that the targets build and that there are no shallow bugs. It
//! tries the same inputs each time, so that it fails because of a change and not by
//! chance. `--random` tries new ones, for longer, and keeps its corpus.
//!
//! The targets are ordinary programs with libFuzzer. Cargo builds them with the flags
//! of `cargo fuzz`, which does not have to be installed.

use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context as _, Result};

use crate::process;
use crate::test_all::stage::{Ctx, Outcome};
use crate::workspace::host_target;

/// Number of inputs in a short run.
const RUNS_PER_TARGET: u32 = 100_000;
/// Time limit of a short run.
const MAX_SECONDS_PER_TARGET: u32 = 60;
const RANDOM_SECONDS_PER_TARGET: u32 = 120;
const MEMORY_LIMIT_MIB: u32 = 2048;

/// Counters on every edge and comparison, which guide libFuzzer. There is no sanitizer:
/// it needs a nightly toolchain and has little use for safe code.
const RUSTFLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let manifest = ctx.workspace.root().join("fuzz/Cargo.toml");
    let targets = targets(&fs::read_to_string(&manifest)?)?;
    if targets.is_empty() {
        return Ok(Outcome::Failed("fuzz/ has no targets".to_owned()));
    }
    let host = host_target(&ctx.workspace)?;
    let directory = ctx.workspace.cache("fuzz-target");
    let mut build = ctx.workspace.cargo(["build", "--release", "--bins"])?;
    // With `--target`, the flags do not apply to build scripts and macros.
    build.args(["--target", &host, "--manifest-path"]);
    build.arg(&manifest).arg("--target-dir").arg(&directory);
    process::run(build.env("RUSTFLAGS", RUSTFLAGS))?;
    let programs = directory.join(host).join("release");
    let failed = fuzz_all(ctx, &targets, &programs);
    let each = if ctx.is_random {
        format!("{RANDOM_SECONDS_PER_TARGET} s")
    } else {
        format!("{RUNS_PER_TARGET} inputs")
    };
    let note = format!("{} run, {each} each", targets.len());
    Ok(Outcome::unless_failed(&failed, note))
}

/// Returns the names of the programs in a manifest.
fn targets(manifest: &str) -> Result<Vec<String>> {
    let manifest: toml::Table = manifest.parse().context("fuzz/Cargo.toml is no TOML")?;
    let bins = manifest.get("bin").and_then(toml::Value::as_array);
    let names = bins.into_iter().flatten().filter_map(|bin| bin.get("name"));
    Ok(names
        .filter_map(toml::Value::as_str)
        .map(String::from)
        .collect())
}

/// Runs one target per CPU at a time. Returns the names of those that failed.
fn fuzz_all<'t>(ctx: &Ctx, targets: &'t [String], programs: &Path) -> Vec<&'t str> {
    let left = Mutex::new(targets.iter());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut failed = Vec::new();
        while let Some(target) = next() {
            if let Err(error) = fuzz(ctx, &programs.join(target)) {
                eprintln!("error: fuzz target {target}: {error:#}");
                failed.push(target.as_str());
            }
        }
        failed
    };
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(work)).collect();
        let failed = workers.into_iter().map(|worker| worker.join());
        failed
            .flat_map(|failed| failed.unwrap_or_else(|_| vec!["a worker"]))
            .collect()
    })
}

fn fuzz(ctx: &Ctx, program: &Path) -> Result<()> {
    let name = program.file_name().context("a program without a name")?;
    let crashes = ctx.workspace.cache("fuzz-crashes").join(name);
    fs::create_dir_all(&crashes)?;
    let mut command = ctx.workspace.command(program)?;
    // Inputs that crash are stored there. Pass the path of one to the program to run it
    // again.
    command.arg(format!("-artifact_prefix={}/", crashes.display()));
    if ctx.is_random {
        let corpus = ctx.workspace.cache("fuzz-corpus").join(name);
        fs::create_dir_all(&corpus)?;
        command.arg(corpus);
        command.arg(format!("-max_total_time={RANDOM_SECONDS_PER_TARGET}"));
    } else {
        command
            .arg("-seed=1")
            .arg(format!("-runs={RUNS_PER_TARGET}"));
        command.arg(format!("-max_total_time={MAX_SECONDS_PER_TARGET}"));
    }
    command.arg(format!("-rss_limit_mb={MEMORY_LIMIT_MIB}"));
    // Without a line for every new input and function. A crash is still shown in full.
    command.args(["-verbosity=0", "-print_funcs=0"]);
    process::run(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_the_programs_of_the_manifest() {
        let text = "[package]\nname = \"p\"\n[[bin]]\nname = \"a\"\n[[bin]]\nname = \"b\"\n";
        assert_eq!(targets(text).unwrap(), ["a", "b"]);
        assert!(targets("[package]\n").unwrap().is_empty());
        assert!(targets("[").is_err());
    }
}
