//! The peer's side: a Python package in its own environment, timed by a script.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::bench::Times;
use crate::bench::suite::{PEER_NEEDS, PEER_PACKAGE, PEER_VERSION, Peer, Row, Suite};
use crate::process;
use crate::workspace::Workspace;

/// Runs the peer's script for `rows`, after installing the peer into the cache if it is
/// missing.
pub(super) fn measure(workspace: &Workspace, suite: &Suite, rows: &[&Row]) -> Result<Times> {
    install(workspace)?;
    let script = script(workspace, suite);
    let mut command = workspace.command(python(workspace))?;
    command.arg(script).args(rows.iter().map(|row| row.id));
    println!("timing {}", Peer::Python.describe());
    let json = process::output(&mut command)?;
    serde_json::from_str(&json).context("the peer's script printed something unexpected")
}

/// Returns the version of the peer's interpreter, as in `Python 3.12.1`.
pub(super) fn interpreter(workspace: &Workspace) -> Result<String> {
    let version = process::output(workspace.command(python(workspace))?.arg("--version"))?;
    Ok(version.trim().to_owned())
}

/// Returns the Python script of `suite`.
pub(super) fn script(workspace: &Workspace, suite: &Suite) -> PathBuf {
    workspace.root().join(suite.peer_script)
}

/// Installs the peer into the cache if it is missing.
pub(super) fn install(workspace: &Workspace) -> Result<()> {
    let mut probed = workspace.command(python(workspace))?;
    let installed = process::succeeds(probed.args(["-c", &probe(&packages())]));
    if installed {
        return Ok(());
    }
    install_anew(workspace).with_context(|| format!("cannot install {}", Peer::Python.describe()))
}

fn install_anew(workspace: &Workspace) -> Result<()> {
    let mut venv = workspace.command("python3")?;
    process::run(
        venv.args(["-m", "venv", "--clear"])
            .arg(workspace.cache("bench-venv")),
    )?;
    let mut pip = workspace.command(python(workspace))?;
    process::run(
        pip.args(["-m", "pip", "install", "--quiet"]).args(
            packages()
                .iter()
                .map(|(name, version)| format!("{name}=={version}")),
        ),
    )
}

/// Returns all installed packages with their versions.
fn packages() -> Vec<(&'static str, &'static str)> {
    let peer = (PEER_PACKAGE, PEER_VERSION);
    std::iter::once(peer)
        .chain(PEER_NEEDS.iter().copied())
        .collect()
}

/// Returns a Python program that succeeds if the packages are installed in those
/// versions.
fn probe(packages: &[(&str, &str)]) -> String {
    let is_there =
        |(package, version): &(&str, &str)| format!("m.version({package:?}) == {version:?}");
    let all: Vec<_> = packages.iter().map(is_there).collect();
    format!(
        "import importlib.metadata as m; assert {}",
        all.join(" and ")
    )
}

/// Returns the interpreter of the peer's environment.
pub(super) fn python(workspace: &Workspace) -> PathBuf {
    workspace.cache("bench-venv/bin/python")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_is_python() {
        let expected = r#"import importlib.metadata as m; assert m.version("p") == "1.2" and m.version("q") == "3""#;
        assert_eq!(probe(&[("p", "1.2"), ("q", "3")]), expected);
    }
}
