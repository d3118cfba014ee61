//! The peers: installed into the cache, and timed or handed to a benchmark.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use crate::bench::suite::{NPM_PACKAGE, PYTHON_PACKAGE, Peer, Row, Suite};
use crate::workspace::Workspace;
use crate::{packages, process, provision};

/// The packages for the Python peer, its console tools and its containers, in the
/// measured versions.
const PYTHON_PACKAGES: [(&str, &str); 3] = [
    PYTHON_PACKAGE,
    ("docker", "7.1.0"),
    ("pydantic-ai-slim", "2.66.0"),
];

/// The directory of the Python peer in the cache.
const ENVIRONMENT: &str = "bench-venv";

/// Times the Python peer with its script. Returns medians in nanoseconds by row id.
pub(super) fn times(
    workspace: &Workspace,
    suite: &Suite,
    rows: &[&Row],
) -> Result<BTreeMap<String, f64>> {
    let rows = rows.iter().filter(|row| row.peer.is_some());
    let ids: Vec<_> = rows.map(|row| &row.id).collect();
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    install_python(workspace)?;
    println!("timing {}", Peer::Python.describe());
    let mut command = workspace.command(python(workspace))?;
    let json = process::output(command.arg(script(workspace, suite)).args(&ids))?;
    let times: BTreeMap<String, f64> =
        serde_json::from_str(&json).context("the peer's script printed something unexpected")?;
    for id in ids {
        ensure!(times.contains_key(id), "the peer left out {id}");
    }
    Ok(times)
}

/// Installs a peer if it is missing. Returns the arguments that tell a benchmark where
/// it is.
pub(super) fn prepare(workspace: &Workspace, suite: &Suite, peer: Peer) -> Result<Vec<OsString>> {
    let args: Vec<(&str, PathBuf)> = match peer {
        Peer::Python => {
            install_python(workspace)?;
            // The peer finds ripgrep on the PATH and is far slower without it.
            provision::run(workspace, &["rg"])?;
            let (python, script) = (python(workspace), script(workspace, suite));
            vec![("--python", python), ("--script", script)]
        }
        Peer::Rg => {
            provision::run(workspace, &["rg"])?;
            vec![("--rg", workspace.tools().join("bin/rg"))]
        }
        Peer::Npm => vec![("--node", install_npm(workspace)?)],
        Peer::Tokio | Peer::Exec | Peer::Cli | Peer::Local => Vec::new(),
    };
    let args = args.into_iter();
    Ok(args
        .flat_map(|(name, path)| [OsString::from(name), path.into()])
        .collect())
}

/// Returns the version of the Python peer's interpreter, as in `Python 3.12.1`.
pub(super) fn interpreter(workspace: &Workspace) -> Result<String> {
    let version = process::output(workspace.command(python(workspace))?.arg("--version"))?;
    Ok(version.trim().to_owned())
}

fn python(workspace: &Workspace) -> PathBuf {
    workspace.cache(ENVIRONMENT).join("bin/python")
}

fn script(workspace: &Workspace, suite: &Suite) -> PathBuf {
    workspace.root().join(&suite.script)
}

fn install_python(workspace: &Workspace) -> Result<()> {
    let packages = PYTHON_PACKAGES.map(|(name, version)| format!("{name}=={version}\n"));
    packages::venv(workspace, ENVIRONMENT, &packages.concat())?;
    Ok(())
}

/// Returns the server's script, after installing it into the cache if it is missing.
fn install_npm(workspace: &Workspace) -> Result<PathBuf> {
    let (package, version) = NPM_PACKAGE;
    let directory = workspace.cache("bench-npm");
    let wanted = format!("{package}@{version}");
    packages::install_once(&directory, &wanted, || {
        provision::run(workspace, &["node", "npm"])?;
        let mut install = workspace.command("npm")?;
        install.args(["install", "--no-audit", "--no-fund", "--prefix"]);
        process::run(install.arg(&directory).arg(&wanted))
    })?;
    let modules = directory.join("node_modules");
    Ok(modules.join(package).join("dist/index.js"))
}
