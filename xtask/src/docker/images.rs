//! The images of tests and benchmarks in a daemon.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};

use crate::docker::Docker;
use crate::images::Image;
use crate::process;

/// Loads those of the images that the daemon does not have. Returns what is missing if it
/// cannot.
pub(crate) fn load(docker: &Docker<'_>, images: &[Image]) -> Result<Option<String>> {
    for image in images {
        if process::succeeds(&mut docker.command(&["image", "inspect", image.name])?) {
            continue;
        }
        if let Some(obstacle) = image.obstacle(docker.workspace)? {
            return Ok(Some(obstacle));
        }
        let archive = image.archive(docker.workspace)?;
        process::run(docker.command(&["load", "--input"])?.arg(archive))?;
        check(docker, image.name)?;
    }
    Ok(None)
}

/// Imports a directory as an image.
pub(crate) fn import(docker: &Docker<'_>, root: &Path, image: &str) -> Result<()> {
    let mut tar = docker.workspace.command("tar")?;
    tar.arg("--directory").arg(root);
    let mut tar = tar
        .args(["--numeric-owner", "--create", "."])
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start tar")?;
    let archive = tar.stdout.take().context("tar has no output")?;
    let mut import = docker.command(&["import", "-", image])?;
    let imported = process::run(import.stdin(archive));
    let packed = tar.wait()?;
    imported?;
    ensure!(packed.success(), "tar failed ({packed})");
    check(docker, image)
}

/// Fails if the image has no shell that runs.
fn check(docker: &Docker<'_>, image: &str) -> Result<()> {
    let test = [
        "run",
        "--rm",
        "--network",
        "none",
        image,
        "/bin/sh",
        "-c",
        "true",
    ];
    process::run(&mut docker.command(&test)?)
        .with_context(|| format!("{image} does not work; is its program static?"))
}
