//! Runs the benchmark target of a suite and compares its rows with the peers.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::bench::corpus::{BigFile, Corpus};
use crate::bench::peers;
use crate::bench::report::{Comparison, Figure, PeerFigure, Run};
use crate::bench::suite::{Method, Row, Suite};
use crate::workspace::{Workspace, cargo_home};
use crate::{agent, flags, process, scratch};

/// The image of the measured containers: Debian with Python.
const DOCKER_IMAGE: &str = "agentbox-test/python:1";

/// If other processes use more than this share, the times are unreliable.
const MAX_BUSY: f64 = 0.1;

/// Measures `rows`. Rows whose peer is not available have no comparison.
pub(super) fn run<'a>(
    workspace: &Workspace,
    suite: &Suite,
    rows: &[&'a Row],
    flags: &flags::Bench,
) -> Result<Run<'a>> {
    let mut command = workspace.cargo(["bench", "--package", &suite.package])?;
    if !suite.features.is_empty() {
        command.args(["--features", &suite.features.join(",")]);
    }
    command.args(["--bench", &suite.bench, "--"]);
    let mut measured = match suite.method {
        Method::Criterion => apart(workspace, suite, rows, flags, command)?,
        Method::Turns => in_turns(workspace, suite, rows, flags, command)?,
    };
    let busy = measured.lines.iter().find_map(|line| line.busy);
    measured.facts.extend(busy.map(describe_load));
    let compare = |row: &&'a Row| compare(row, &measured.lines, flags.no_peer);
    Ok(Run {
        comparisons: rows.iter().map(compare).collect::<Result<_>>()?,
        facts: measured.facts,
        is_peer_missing: measured.is_peer_missing,
    })
}

/// Whether a Docker daemon answers.
pub(super) fn daemon_answers(workspace: &Workspace) -> Result<bool> {
    let mut docker = workspace.command("docker")?;
    Ok(process::succeeds(docker.arg("version")))
}

/// The figures of a suite.
#[derive(Debug, Default)]
struct Measured {
    lines: Vec<Line>,
    /// Further facts for the reader.
    facts: Vec<String>,
    /// Whether a requested peer is not available.
    is_peer_missing: bool,
}

/// The figures of one row, as a benchmark with turns prints them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    id: String,
    ours: Option<Figure>,
    peer: Option<Figure>,
    rounds: Option<usize>,
    idle_bytes: Option<f64>,
    peak_bytes: Option<f64>,
    hits: Option<u64>,
    /// CPU share of other processes, from 0 to 1.
    busy: Option<f64>,
    error: Option<String>,
}

/// Measures our side with criterion, then the peer's with its script.
fn apart(
    workspace: &Workspace,
    suite: &Suite,
    rows: &[&Row],
    flags: &flags::Bench,
    mut command: Command,
) -> Result<Measured> {
    let home = workspace.metadata()?.target_directory.join("criterion");
    for row in rows {
        // The result of an earlier run must not be mistaken for a new one.
        let path = home.join(&row.id);
        if path.exists() {
            fs::remove_dir_all(&path)
                .with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    process::run(command.arg(filter(rows)).env("CRITERION_HOME", &home))?;
    let mut measured = Measured::default();
    for Row { id, .. } in rows {
        let path = home.join(id).join("new/estimates.json");
        let json =
            fs::read_to_string(&path).with_context(|| format!("no benchmark `{id}` was run"))?;
        let median = median(&json).with_context(|| format!("{} has no median", path.display()))?;
        measured.lines.push(Line {
            id: id.clone(),
            ours: Some(Figure::exact(median)),
            ..Line::default()
        });
    }
    if !flags.no_peer {
        match peers::times(workspace, suite, rows) {
            Ok(times) => {
                for line in &mut measured.lines {
                    line.peer = times.get(&line.id).map(|median| Figure::exact(*median));
                }
            }
            Err(error) => measured.miss(&error),
        }
    }
    Ok(measured)
}

/// Returns a regular expression for exactly these ids.
fn filter(rows: &[&Row]) -> String {
    format!("^({})$", ids(rows).join("|"))
}

fn ids<'a>(rows: &[&'a Row]) -> Vec<&'a str> {
    rows.iter().map(|row| row.id.as_str()).collect()
}

/// Reads criterion's `estimates.json`. Times are in nanoseconds.
fn median(json: &str) -> Option<f64> {
    let estimates: Value = serde_json::from_str(json).ok()?;
    estimates.pointer("/median/point_estimate")?.as_f64()
}

/// Prepares the files and the peers for a target that calls both sides in turns.
fn in_turns(
    workspace: &Workspace,
    suite: &Suite,
    rows: &[&Row],
    flags: &flags::Bench,
    mut command: Command,
) -> Result<Measured> {
    let mut measured = Measured::default();
    let files = Files::prepare(workspace, rows)?;
    for (name, path) in files.args() {
        command.arg(name).arg(path);
    }
    measured
        .facts
        .extend(files.tree.as_ref().map(Corpus::describe));
    if suite.needs_docker() {
        command.args(docker(workspace)?);
    }
    command.args(["--rows", &ids(rows).join(",")]);
    if flags.quick {
        command.arg("--quick");
    }
    if !flags.no_peer {
        let used: BTreeSet<_> = rows.iter().filter_map(|row| row.peer).collect();
        for peer in used {
            match peers::prepare(workspace, suite, peer) {
                Ok(args) => _ = command.args(args),
                Err(error) => measured.miss(&error),
            }
        }
        command.arg("--tokio");
    }
    let mut lines = Vec::new();
    let is_success = process::run_observed(&mut command, |line| {
        if line.starts_with('{') {
            lines.push(serde_json::from_str(line).context("cannot parse a line of the benchmark"));
        }
    })?;
    ensure!(is_success, "the benchmark failed");
    measured.lines = lines.into_iter().collect::<Result<_>>()?;
    Ok(measured)
}

impl Measured {
    fn miss(&mut self, error: &anyhow::Error) {
        eprintln!("error: peer not available: {error:#}");
        self.is_peer_missing = true;
    }
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
        scratch::empty(&scratch)?;
        // Cargo unpacks the sources of crates there.
        let tree = (wants("_grep_") || wants("_glob_"))
            .then(|| Corpus::tree(cache.join("tree"), &cargo_home()?.join("registry/src")));
        let many = wants("_memory_many").then(|| Corpus::many(cache.join("many")));
        let big = wants("_memory_big").then(|| BigFile::create(&cache.join("big")));
        Ok(Self {
            scratch,
            tree: tree.transpose()?,
            many: many.transpose()?,
            big: big.transpose()?,
        })
    }

    fn args(&self) -> impl Iterator<Item = (&str, &PathBuf)> {
        let all = [
            ("--scratch", Some(&self.scratch)),
            ("--tree", self.tree.as_ref().map(|tree| &tree.path)),
            ("--many", self.many.as_ref().map(|many| &many.path)),
            ("--big", self.big.as_ref().map(|big| &big.path)),
        ];
        all.into_iter()
            .filter_map(|(name, path)| Some((name, path?)))
    }
}

/// Returns the agent, and an image that contains what the peers need.
fn docker(workspace: &Workspace) -> Result<[OsString; 4]> {
    ensure!(
        daemon_answers(workspace)?,
        "no Docker daemon answers; start one, and set DOCKER_HOST if it is not at its usual place"
    );
    let image = env::var_os("TEST_IMAGE_PYTHON").unwrap_or_else(|| DOCKER_IMAGE.into());
    let agent = agent::build(workspace, None)?;
    Ok(["--agent".into(), agent.path.into(), "--image".into(), image])
}

fn describe_load(busy: f64) -> String {
    if busy > MAX_BUSY {
        eprintln!("warning: the processors are busy with other work; measure again when not");
    }
    format!(
        "Other work: {:.0} % of the processors before the start",
        busy * 100.0
    )
}

fn compare<'a>(row: &'a Row, lines: &[Line], no_peer: bool) -> Result<Comparison<'a>> {
    let line = lines.iter().find(|line| line.id == row.id);
    let line = line.with_context(|| format!("{} was not measured", row.id))?;
    let ours = match (line.ours, line.idle_bytes, line.peak_bytes) {
        (Some(ours), ..) => ours,
        (None, Some(idle), Some(peak)) => Figure {
            size: line.hits,
            ..Figure::exact(peak - idle)
        },
        _ => {
            let error = line.error.as_deref();
            let error = error.unwrap_or("the benchmark gave no figure");
            bail!("{} was not measured: {error}", row.id)
        }
    };
    let peer = match line.peer {
        Some(peer) => PeerFigure::Is(peer),
        None if no_peer || row.peer.is_none() => PeerFigure::NotAsked,
        None => PeerFigure::Unavailable,
    };
    Ok(Comparison {
        row,
        ours,
        peer,
        rounds: line.rounds,
    })
}

#[cfg(test)]
mod tests;
