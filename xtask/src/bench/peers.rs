//! The peers: installed into the cache, and timed or handed to a benchmark.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};

use crate::bench::suite::{Row, Suite, describe};
use crate::workspace::Workspace;
use crate::{packages, process, provision};

/// Further packages for the Python peer, for its containers and its console tools.
const PYTHON_PACKAGES: &str = "docker==7.1.0\npydantic-ai-slim==2.66.0\n";

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
    println!("timing {}", describe("python"));
    let mut command = workspace.command(python(workspace))?;
    command.arg(workspace.root().join(suite.script()));
    let json = process::output(command.args(&ids))?;
    let times: BTreeMap<String, f64> =
        serde_json::from_str(&json).context("the peer's script printed something unexpected")?;
    for id in ids {
        ensure!(times.contains_key(id), "the peer left out {id}");
    }
    Ok(times)
}

/// Installs a peer if it is missing. Returns the arguments that tell a benchmark where
/// it is.
pub(super) fn prepare(workspace: &Workspace, suite: &Suite, peer: &str) -> Result<Vec<OsString>> {
    // The Python peer finds ripgrep on the PATH and is far slower without it.
    if ["python", "rg"].contains(&peer) {
        provision::run(workspace, &["rg"])?;
    }
    let args = match peer {
        "python" => {
            install_python(workspace)?;
            let script = workspace.root().join(suite.script());
            vec![("--python", python(workspace)), ("--script", script)]
        }
        "rg" => vec![("--rg", workspace.tools().join("bin/rg"))],
        "npm" => vec![("--node", install_npm(workspace)?)],
        _ => Vec::new(),
    };
    let words = |(name, path): (&str, PathBuf)| [OsString::from(name), path.into()];
    Ok(args.into_iter().flat_map(words).collect())
}

/// Returns the version of the Python peer's interpreter, as in `Python 3.12.1`.
pub(super) fn interpreter(workspace: &Workspace) -> Result<String> {
    let version = process::output(workspace.command(python(workspace))?.arg("--version"))?;
    Ok(version.trim().to_owned())
}

fn python(workspace: &Workspace) -> PathBuf {
    workspace.cache(ENVIRONMENT).join("bin/python")
}

fn install_python(workspace: &Workspace) -> Result<()> {
    let peer = describe("python").replace(' ', "==");
    let requirements = format!("{peer}\n{PYTHON_PACKAGES}");
    packages::venv(workspace, ENVIRONMENT, &requirements).map(drop)
}

/// Returns the server's script, after installing it into the cache if it is missing.
fn install_npm(workspace: &Workspace) -> Result<PathBuf> {
    let peer = describe("npm");
    let directory = workspace.cache("bench-npm");
    let wanted = peer.replace(' ', "@");
    packages::install_once(&directory, &wanted, || {
        provision::run(workspace, &["node", "npm"])?;
        let mut install = workspace.command("npm")?;
        install.args(["install", "--no-audit", "--no-fund", "--prefix"]);
        process::run(install.arg(&directory).arg(&wanted))
    })?;
    let package = peer.split(' ').next().unwrap_or_default();
    let modules = directory.join("node_modules");
    Ok(modules.join(package).join("dist/index.js"))
}
