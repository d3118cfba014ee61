//! Stage `platforms`: compiles for other systems and architectures, without running
//! anything.
//!
//! `cargo check` needs a target's standard library, but neither a linker nor a C
//! compiler for it: nothing is linked, so C code of dependencies is left out.

use anyhow::Result;

use crate::process;
use crate::test_all::stage::{Ctx, Outcome};

/// Targets of macOS and Windows, for all crates except [`LINUX_ONLY`].
const FOREIGN: &[&str] = &["x86_64-apple-darwin", "x86_64-pc-windows-gnu"];

/// Linux targets on other architectures, for all crates.
const LINUX: &[&str] = &["aarch64-unknown-linux-gnu"];

/// All targets, for `provision`.
pub(super) const TARGETS: &[&str] = &[FOREIGN[0], FOREIGN[1], LINUX[0]];

/// Packages that support Linux only, and those for the project's own tests.
const LINUX_ONLY: &[&str] = &[
    "agentbox-sandbox-agent",
    "backend-local",
    "daytona-testkit",
    "examples",
    "predictive_analytics",
    "web_app",
    "xtask",
];

/// The program in place of a target's C compiler and archiver: it succeeds and makes
/// nothing.
const NO_COMPILER: &str = "true";

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let (mut missing, mut failed) = (Vec::new(), Vec::new());
    for target in TARGETS {
        if !ctx.workspace.has_target(target)? {
            missing.push(*target);
        } else if let Err(error) = check(ctx, target) {
            eprintln!("error: {error:#}");
            failed.push(*target);
        }
    }
    Ok(match (&*failed, &*missing) {
        ([], [_, ..]) => Outcome::Skipped(format!(
            "no standard library for {}; --provision installs it",
            missing.join(", ")
        )),
        _ => Outcome::unless_failed(&failed, format!("{} targets", TARGETS.len())),
    })
}

fn check(ctx: &Ctx, target: &str) -> Result<()> {
    let args = ["check", "--workspace", "--all-features", "--target", target];
    let mut command = ctx.workspace.cargo(args)?;
    if FOREIGN.contains(&target) {
        command.args(LINUX_ONLY.iter().flat_map(|name| ["--exclude", *name]));
    }
    let name = target.replace('-', "_");
    // A separate target directory, because other flags would rebuild everything.
    command
        .env(format!("CC_{name}"), NO_COMPILER)
        .env(format!("AR_{name}"), NO_COMPILER)
        .env("CARGO_TARGET_DIR", ctx.workspace.cache("platforms-target"))
        .env("RUSTFLAGS", "-D warnings");
    process::run(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    #[test]
    fn packages_that_are_left_out_exist() {
        let metadata = Workspace::discover().unwrap().metadata().unwrap();
        for name in LINUX_ONLY {
            let mut packages = metadata.packages.iter();
            assert!(packages.any(|package| package.name == *name), "{name}");
        }
    }
}
