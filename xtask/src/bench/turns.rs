//! Suites whose benchmark target itself calls us and the peers in turns.
//!
//! The files and the peers are prepared here. The target prints one line of JSON per
//! row.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::agent;
use crate::bench::corpus::{BigFile, Corpus, Extent};
use crate::bench::peer;
use crate::bench::report::{Comparison, Figure, PeerFigure, Run};
use crate::bench::suite::{DOCKER, DOCKER_IMAGE, NPM_PACKAGE, NPM_VERSION, Peer, Row, Suite};
use crate::flags;
use crate::process;
use crate::provision;
use crate::workspace::Workspace;

/// Measures `rows`. Rows whose peer is not available have no comparison.
pub(super) fn measure(
    workspace: &Workspace,
    suite: &Suite,
    rows: &[&'static Row],
    flags: &flags::Bench,
) -> Result<Run> {
    let files = Files::prepare(workspace, rows)?;
    let mut command = workspace.cargo(["bench", "--package", suite.package])?;
    command.args(["--bench", suite.bench, "--"]);
    command.args(files.args());
    command.args(docker(workspace, suite)?);
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    command.args(["--rows", &ids.join(",")]);
    if flags.quick {
        command.arg("--quick");
    }
    let mut is_peer_missing = false;
    if !flags.no_peer {
        for args in [
            python(workspace, suite, rows),
            ripgrep(workspace, rows),
            npm(workspace, rows),
        ] {
            match args {
                Ok(args) => _ = command.args(args),
                Err(error) => {
                    eprintln!("error: peer not available: {error:#}");
                    is_peer_missing = true;
                }
            }
        }
        command.arg("--tokio");
    }
    let lines = run(&mut command)?;
    let compare = |row: &&'static Row| compare(row, &lines, flags.no_peer);
    let mut facts: Vec<_> = files
        .tree
        .iter()
        .map(|tree| describe(tree.extent))
        .collect();
    facts.extend(lines.iter().find_map(|line| line.busy).map(describe_load));
    Ok(Run {
        comparisons: rows.iter().map(compare).collect::<Result<_>>()?,
        facts,
        is_peer_missing,
    })
}

/// The files that the selected rows work on.
#[derive(Debug)]
struct Files {
    scratch: PathBuf,
    tree: Option<Corpus>,
    many: Option<Corpus>,
    big: Option<BigFile>,
}

impl Files {
    fn prepare(workspace: &Workspace, rows: &[&Row]) -> Result<Self> {
        let wants = |part: &str| rows.iter().any(|row| row.id.contains(part));
        let cache = workspace.cache("bench");
        let scratch = cache.join("scratch");
        if scratch.exists() {
            fs::remove_dir_all(&scratch)?;
        }
        fs::create_dir_all(&scratch)
            .with_context(|| format!("cannot create {}", scratch.display()))?;
        let tree = (wants("_grep_") || wants("_glob_"))
            .then(|| Corpus::tree(cache.join("tree"), &registry()?));
        let many = wants("_memory_many").then(|| Corpus::many(cache.join("many")));
        let big = wants("_memory_big").then(|| BigFile::create(&cache.join("big")));
        Ok(Self {
            scratch,
            tree: tree.transpose()?,
            many: many.transpose()?,
            big: big.transpose()?,
        })
    }

    fn args(&self) -> Vec<OsString> {
        let mut args = path_arg("--scratch", &self.scratch);
        let tree = self.tree.as_ref().map(|tree| &tree.path);
        let many = self.many.as_ref().map(|many| &many.path);
        let big = self.big.as_ref().map(|big| &big.path);
        for (name, path) in [("--tree", tree), ("--many", many), ("--big", big)] {
            args.extend(path.into_iter().flat_map(|path| path_arg(name, path)));
        }
        args
    }
}

fn path_arg(name: &str, path: &Path) -> Vec<OsString> {
    vec![name.into(), path.into()]
}

/// If other processes use more than this share, the times are unreliable.
const MAX_BUSY: f64 = 0.1;

fn describe_load(busy: f64) -> String {
    if busy > MAX_BUSY {
        eprintln!("warning: the processors are busy with other work; measure again when not");
    }
    format!(
        "Other work: {:.0} % of the processors before the start",
        busy * 100.0
    )
}

/// Returns the directory where cargo unpacks the sources of crates.
fn registry() -> Result<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let home = home.context("no cargo home: set CARGO_HOME")?;
    Ok(home.join("registry/src"))
}

fn python(workspace: &Workspace, suite: &Suite, rows: &[&Row]) -> Result<Vec<OsString>> {
    if rows.iter().all(|row| row.peer != Peer::Python) {
        return Ok(Vec::new());
    }
    peer::install(workspace)?;
    // The peer finds ripgrep on the PATH and is far slower without it.
    provision::run(workspace, &["rg"])?;
    let mut args = path_arg("--python", &peer::python(workspace));
    args.extend(path_arg("--script", &peer::script(workspace, suite)));
    Ok(args)
}

fn ripgrep(workspace: &Workspace, rows: &[&Row]) -> Result<Vec<OsString>> {
    if rows.iter().all(|row| row.peer != Peer::Ripgrep) {
        return Ok(Vec::new());
    }
    provision::run(workspace, &["rg"])?;
    Ok(path_arg("--rg", &workspace.tools().join("bin/rg")))
}

/// Whether a Docker daemon answers.
pub(super) fn daemon_answers(workspace: &Workspace) -> Result<bool> {
    let mut docker = workspace.command("docker")?;
    Ok(process::succeeds(docker.arg("version")))
}

/// Prepares the agent, and an image that contains what the peers need.
fn docker(workspace: &Workspace, suite: &Suite) -> Result<Vec<OsString>> {
    if suite.name != DOCKER.name {
        return Ok(Vec::new());
    }
    ensure!(
        daemon_answers(workspace)?,
        "no Docker daemon answers; start one, and set DOCKER_HOST if it is not at its usual place"
    );
    let image = env::var_os("TEST_IMAGE_PYTHON").unwrap_or_else(|| DOCKER_IMAGE.into());
    let agent = agent::build(workspace, None)?;
    let mut args = path_arg("--agent", &agent.path);
    args.extend(["--image".into(), image]);
    Ok(args)
}

/// Installs the server into the cache if it is missing.
fn npm(workspace: &Workspace, rows: &[&Row]) -> Result<Vec<OsString>> {
    if rows.iter().all(|row| row.peer != Peer::Npm) {
        return Ok(Vec::new());
    }
    let directory = workspace.cache(&format!("bench-npm-{NPM_VERSION}"));
    let script = directory
        .join("node_modules")
        .join(NPM_PACKAGE)
        .join("dist/index.js");
    if !script.is_file() {
        provision::run(workspace, &["node", "npm"])?;
        fs::create_dir_all(&directory)?;
        let mut install = workspace.command("npm")?;
        install.args(["install", "--no-audit", "--no-fund", "--prefix"]);
        process::run(
            install
                .arg(&directory)
                .arg(format!("{NPM_PACKAGE}@{NPM_VERSION}")),
        )?;
    }
    Ok(path_arg("--node", &script))
}

fn run(command: &mut std::process::Command) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    let succeeded = process::run_observed(command, |line| {
        if line.starts_with('{') {
            lines.push(serde_json::from_str(line).context("cannot parse a line of the benchmark"));
        }
    })?;
    if !succeeded {
        bail!("the benchmark failed");
    }
    lines.into_iter().collect()
}

/// The benchmark's output for one row: times in nanoseconds, or bytes.
#[derive(Debug, Deserialize)]
struct Line {
    id: String,
    ours: Option<Side>,
    peer: Option<Side>,
    rounds: Option<usize>,
    idle_bytes: Option<f64>,
    peak_bytes: Option<f64>,
    hits: Option<u64>,
    /// CPU share of other processes, from 0 to 1.
    busy: Option<f64>,
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Side {
    median: f64,
    p90: f64,
    /// Number of results.
    size: u64,
}

impl Side {
    fn figure(&self) -> Figure {
        let p90 = Some(self.p90);
        let median = self.median;
        Figure { median, p90 }
    }
}

fn compare(row: &'static Row, lines: &[Line], no_peer: bool) -> Result<Comparison> {
    let line = lines.iter().find(|line| line.id == row.id);
    let line = line.with_context(|| format!("{} was not measured", row.id))?;
    let (ours, found) = match (&line.ours, line.idle_bytes, line.peak_bytes) {
        (Some(ours), ..) => (ours.figure(), Some(ours.size)),
        (None, Some(idle), Some(peak)) => (Figure::exact(peak - idle), line.hits),
        _ => bail!(
            "{} was not measured: {}",
            row.id,
            line.error
                .as_deref()
                .unwrap_or("the benchmark gave no figure")
        ),
    };
    let peer = match &line.peer {
        Some(peer) => PeerFigure::Is(peer.figure()),
        None if no_peer || row.peer == Peer::Nobody => PeerFigure::NotAsked,
        None => PeerFigure::Unavailable,
    };
    Ok(Comparison {
        row,
        ours,
        peer,
        rounds: line.rounds,
        found: found.zip(Some(line.peer.as_ref().map(|peer| peer.size))),
    })
}

fn describe(
    Extent {
        files,
        sources,
        bytes,
    }: Extent,
) -> String {
    let megabytes = bytes / 1_000_000;
    format!(
        "Tree: {files} files of crates from cargo's registry, {sources} of them Rust, {megabytes} MB"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::suite::LOCAL;

    fn row(id: &str) -> &'static Row {
        LOCAL.rows.iter().find(|row| row.id == id).unwrap()
    }

    fn compared(row: &'static Row, json: &str, no_peer: bool) -> Result<Comparison> {
        compare(row, &[serde_json::from_str(json).unwrap()], no_peer)
    }

    #[test]
    fn a_line_becomes_a_comparison() {
        let json = r#"{"id": "local_read_py", "rounds": 9,
                       "ours": {"median": 5, "p90": 6, "size": 50},
                       "peer": {"median": 20, "p90": 30, "size": 51}}"#;
        let comparison = compared(row("local_read_py"), json, false).unwrap();
        assert_eq!(comparison.ours.median, 5.0);
        let theirs = Figure {
            median: 20.0,
            p90: Some(30.0),
        };
        assert_eq!(comparison.peer, PeerFigure::Is(theirs));
        assert_eq!(comparison.rounds, Some(9));
        assert_eq!(comparison.found, Some((50, Some(51))));
        assert_eq!(comparison.is_met(), Some(true));
    }

    #[test]
    fn memory_is_what_lies_above_idle() {
        let json = r#"{"id": "local_memory_big", "hits": 200,
                       "idle_bytes": 4000000, "peak_bytes": 9000000}"#;
        let comparison = compared(row("local_memory_big"), json, false).unwrap();
        assert_eq!(comparison.ours, Figure::exact(5e6));
        assert_eq!(comparison.peer, PeerFigure::NotAsked);
        assert_eq!(comparison.is_met(), Some(true));
    }

    #[test]
    fn what_is_missing_is_told() {
        let json = r#"{"id": "local_read_py", "error": "no peer",
                       "ours": {"median": 5, "p90": 6, "size": 50}}"#;
        let peer = |no_peer| compared(row("local_read_py"), json, no_peer).unwrap().peer;
        assert_eq!(peer(true), PeerFigure::NotAsked);
        assert_eq!(peer(false), PeerFigure::Unavailable);
        let json = r#"{"id": "local_read_py", "error": "there is no such row"}"#;
        let error = compared(row("local_read_py"), json, false).unwrap_err();
        assert!(error.to_string().ends_with("there is no such row"));
        assert!(compared(row("local_edit_py"), json, false).is_err());
    }
}
