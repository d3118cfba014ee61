//! `cargo xtask xterm`: fetches xterm.js for the page of the example `web_app`. It is used from
//! the cache and is no part of the repository.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::process;
use crate::workspace::Workspace;

/// The packages with their versions and hashes.
const PACKAGES: &str = "examples/web_app/npm";

pub(crate) fn run() -> Result<bool> {
    let directory = install(&Workspace::discover()?)?;
    println!("xterm.js is in {}", directory.display());
    Ok(true)
}

/// Installs the packages into the cache. Returns their directory.
pub(crate) fn install(workspace: &Workspace) -> Result<PathBuf> {
    let directory = workspace.cache("xterm");
    fs::create_dir_all(&directory)?;
    let packages = workspace.root().join(PACKAGES);
    for file in ["package.json", "package-lock.json"] {
        fs::copy(packages.join(file), directory.join(file))?;
    }
    let mut npm = workspace.command("npm")?;
    npm.current_dir(&directory);
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    process::run(&mut npm).context("npm cannot fetch xterm.js")?;
    Ok(directory)
}
