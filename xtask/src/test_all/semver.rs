//! Stage `semver`: the API of released libraries has no breaking changes, unless the
//! version says so.
//!
//! The baseline is the last tag `v*` before this commit.

use anyhow::Result;

use crate::metadata::Package;
use crate::test_all::stage::{Ctx, Outcome};
use crate::{process, provision};

const TOOL: &str = "cargo-semver-checks";

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let Some(tag) = last_release(ctx)? else {
        return Ok(Outcome::Skipped("no release to compare with".to_owned()));
    };
    if ctx.is_provisioning {
        // Not earlier: it takes minutes to compile, and without a release it is
        // useless.
        provision::run(&ctx.workspace, &[TOOL])?;
    }
    if !ctx.workspace.has_program(TOOL)? {
        let reason = format!("{TOOL} is not installed; --provision installs it");
        return Ok(Outcome::Skipped(reason));
    }
    let metadata = ctx.workspace.metadata()?;
    let mut command = ctx.workspace.cargo(["semver-checks", "--all-features"])?;
    command.args(["--baseline-rev", &tag]);
    let mut compared = 0;
    for package in &metadata.packages {
        if package.is_published_library() && was_there(ctx, package, &tag)? {
            command.args(["--package", &package.name]);
            compared += 1;
        }
    }
    process::run(&mut command)?;
    Ok(Outcome::Passed(format!("{compared} libraries since {tag}")))
}

/// Returns the highest version tag among the ancestors of this commit.
fn last_release(ctx: &Ctx) -> Result<Option<String>> {
    let mut git = ctx.workspace.command("git")?;
    git.args(["tag", "--list", "v*", "--merged", "HEAD"]);
    git.arg("--sort=-version:refname");
    // A source archive has no history.
    let tags = process::output(&mut git).unwrap_or_default();
    Ok(tags.lines().next().map(str::to_owned))
}

/// Whether a release included the package. A new package cannot break anything.
fn was_there(ctx: &Ctx, package: &Package, tag: &str) -> Result<bool> {
    let manifest = &package.manifest_path;
    let manifest = manifest
        .strip_prefix(ctx.workspace.root())
        .unwrap_or(manifest);
    let mut git = ctx.workspace.command("git")?;
    git.args(["cat-file", "-e"]);
    git.arg(format!("{tag}:{}", manifest.display()));
    Ok(process::succeeds(&mut git))
}
