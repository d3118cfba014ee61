//! The peer's side: a Python package in its own environment, timed by a script.

use anyhow::{Context as _, Result};

use crate::bench::Times;
use crate::bench::suite::{Row, Suite};
use crate::process;
use crate::workspace::Workspace;

/// Runs the peer's script for `rows`; installs the peer into the cache first if it is missing.
pub(super) fn measure(workspace: &Workspace, suite: &Suite, rows: &[&Row]) -> Result<Times> {
    install(workspace, suite).with_context(|| format!("cannot install {}", suite.peer()))?;
    let script = workspace.root().join("xtask/bench").join(suite.peer_script);
    let mut command = workspace.command(python(workspace))?;
    command.arg(script).args(rows.iter().map(|row| row.id));
    println!("timing {}", suite.peer());
    let json = process::output(&mut command)?;
    serde_json::from_str(&json).context("the peer's script printed something unexpected")
}

/// The interpreter the peer ran on, as in `Python 3.12.1`.
pub(super) fn interpreter(workspace: &Workspace) -> Result<String> {
    let version = process::output(workspace.command(python(workspace))?.arg("--version"))?;
    Ok(version.trim().to_owned())
}

fn install(workspace: &Workspace, suite: &Suite) -> Result<()> {
    let (package, version) = (suite.peer_package, suite.peer_version);
    if process::succeeds(
        workspace
            .command(python(workspace))?
            .args(["-c", &probe(package, version)]),
    ) {
        return Ok(());
    }
    let mut venv = workspace.command("python3")?;
    process::run(
        venv.args(["-m", "venv", "--clear"])
            .arg(workspace.cache("bench-venv")),
    )?;
    let mut pip = workspace.command(python(workspace))?;
    process::run(
        pip.args(["-m", "pip", "install", "--quiet"])
            .arg(format!("{package}=={version}")),
    )
}

/// A Python program that succeeds if the package is there in that version.
fn probe(package: &str, version: &str) -> String {
    format!("import importlib.metadata as m; assert m.version({package:?}) == {version:?}")
}

fn python(workspace: &Workspace) -> std::path::PathBuf {
    workspace.cache("bench-venv/bin/python")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_is_python() {
        let expected = r#"import importlib.metadata as m; assert m.version("p") == "1.2""#;
        assert_eq!(probe("p", "1.2"), expected);
    }
}
