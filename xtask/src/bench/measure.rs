//! Runs the benchmark target of a suite and compares its rows with the peers.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::bench::report::{Comparison, Figure, Run};
use crate::bench::suite::{Row, Suite};
use crate::bench::{corpus, peers};
use crate::scratch::{self, Scratch};
use crate::workspace::{Workspace, cargo_home};
use crate::{agent, flags, process};

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
    command.args(["--bench", suite.bench(), "--"]);
    let job = Job {
        workspace,
        suite,
        rows,
        flags,
    };
    let mut run = Run::default();
    let lines = if suite.turns {
        job.in_turns(command, &mut run)?
    } else {
        job.apart(command, &mut run)?
    };
    let busy = lines.iter().find_map(|line| line.busy);
    run.facts.extend(busy.map(describe_load));
    let compare = |row: &&'a Row| compare(row, &lines, flags.no_peer);
    run.comparisons = rows.iter().map(compare).collect::<Result<_>>()?;
    Ok(run)
}

/// Whether a Docker daemon answers.
pub(super) fn daemon_answers(workspace: &Workspace) -> Result<bool> {
    let mut docker = workspace.command("docker")?;
    Ok(process::succeeds(docker.arg("version")))
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

/// The rows to measure.
struct Job<'a> {
    workspace: &'a Workspace,
    suite: &'a Suite,
    rows: &'a [&'a Row],
    flags: &'a flags::Bench,
}

impl Job<'_> {
    /// Measures our side with criterion, then the peer's with its script.
    fn apart(&self, mut command: Command, run: &mut Run<'_>) -> Result<Vec<Line>> {
        let home = self
            .workspace
            .metadata()?
            .target_directory
            .join("criterion");
        for row in self.rows {
            // The result of an earlier run must not be mistaken for a new one.
            scratch::empty(&home.join(&row.id))?;
        }
        process::run(command.arg(filter(self.rows)).env("CRITERION_HOME", &home))?;
        let ours = self.rows.iter().map(|Row { id, .. }| {
            let path = home.join(id).join("new/estimates.json");
            let json = fs::read_to_string(&path)
                .with_context(|| format!("no benchmark `{id}` was run"))?;
            let median =
                median(&json).with_context(|| format!("{} has no median", path.display()))?;
            Ok(Line {
                id: id.clone(),
                ours: Some(Figure::exact(median)),
                ..Line::default()
            })
        });
        let mut lines = ours.collect::<Result<Vec<_>>>()?;
        if !self.flags.no_peer {
            let times = run.available(peers::times(self.workspace, self.suite, self.rows));
            for line in &mut lines {
                line.peer = times.get(&line.id).map(|median| Figure::exact(*median));
            }
        }
        Ok(lines)
    }

    /// Prepares the files and the peers for a target that calls both sides in turns.
    fn in_turns(&self, mut command: Command, run: &mut Run<'_>) -> Result<Vec<Line>> {
        let _big = self.pass_files(&mut command, run)?;
        if self.suite.needs_docker() {
            command.args(docker(self.workspace)?);
        }
        command.args(["--rows", &ids(self.rows).join(",")]);
        if self.flags.quick {
            command.arg("--quick");
        }
        if !self.flags.no_peer {
            let used = self.rows.iter().filter_map(|row| row.peer.as_deref());
            for peer in used.collect::<BTreeSet<_>>() {
                let args = peers::prepare(self.workspace, self.suite, peer);
                command.args(run.available(args));
            }
            command.arg("--tokio");
        }
        let mut lines = Vec::new();
        let is_success = process::run_observed(&mut command, |line| {
            if line.starts_with('{') {
                let parsed = serde_json::from_str(line);
                lines.push(parsed.context("cannot parse a line of the benchmark"));
            }
        })?;
        ensure!(is_success, "the benchmark failed");
        lines.into_iter().collect()
    }

    /// Prepares the files that the rows work on, and passes their paths. Returns the
    /// directory that is not kept.
    fn pass_files(&self, command: &mut Command, run: &mut Run<'_>) -> Result<Option<Scratch>> {
        let wants = |part: &str| self.rows.iter().any(|row| row.id.contains(part));
        let cache = self.workspace.cache("bench");
        let scratch = cache.join("scratch");
        scratch::empty(&scratch)?;
        command.arg("--scratch").arg(scratch);
        if wants("_grep_") || wants("_glob_") {
            let path = cache.join("tree");
            // Cargo unpacks the sources of crates there.
            let registry = cargo_home()?.join("registry/src");
            run.facts.push(corpus::tree(&path, &registry)?);
            command.arg("--tree").arg(path);
        }
        if wants("_memory_many") {
            let path = cache.join("many");
            corpus::many(&path)?;
            command.arg("--many").arg(path);
        }
        if !wants("_memory_big") {
            return Ok(None);
        }
        let big = Scratch::at(cache.join("big"))?;
        command.arg("--big").arg(corpus::big(&big)?);
        Ok(Some(big))
    }
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
    let percent = busy * 100.0;
    format!("Other work: {percent:.0} % of the processors before the start")
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
    let peer = line.peer.ok_or(match row.peer {
        None => "",
        Some(_) if no_peer => "not measured",
        Some(_) => "not available",
    });
    Ok(Comparison {
        row,
        ours,
        peer,
        rounds: line.rounds,
    })
}

#[cfg(test)]
mod tests;
