//! Runs the benchmark target of a suite, and its peers, which are installed into the cache.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::bench::report::{Comparison, Figure, Run};
use crate::bench::suite::{Suite, describe};
use crate::cluster::Cluster;
use crate::docker::daemon::{Daemon, Found};
use crate::docker::{self, Docker};
use crate::images::PYTHON;
use crate::workspace::{Workspace, cargo_home};
use crate::{agent, dist, packages, process, provision, scratch};

/// Further packages for the Python peer, for its sandboxes and its console tools.
const PYTHON_PACKAGES: &str = "daytona==0.226.1\ndocker==7.1.0\npydantic-ai-slim==2.66.0\n";

/// Minimum number of Rust sources in the tree that is searched.
const MIN_SOURCES: &str = "10000";

/// Measures the rows of a suite; if they are called by turns, in fewer rounds if `is_quick`.
pub(super) fn run(workspace: &Workspace, suite: &Suite, is_quick: bool) -> Result<Run> {
    let bench = workspace.root().join(&suite.bench);
    let (Some(package), Some(target)) = (bench.ancestors().nth(2), bench.file_stem()) else {
        bail!("{} is no benchmark of a package", suite.bench);
    };
    let features = suite.features.join(",");
    let mut command = workspace.cargo(["bench", "--features", &features])?;
    command.current_dir(package).arg("--bench").arg(target);
    if suite.needs_cluster() {
        // The cluster would slow it down, and is for measuring.
        let mut compile = workspace.cargo(["bench", "--no-run", "--features", &features])?;
        compile.current_dir(package).arg("--bench").arg(target);
        process::run(&mut compile)?;
    }
    command.arg("--");
    let mut run = if suite.turns {
        command.args((is_quick || suite.brief).then_some("--quick"));
        in_turns(workspace, suite, command)?
    } else {
        apart(workspace, suite, command)?
    };
    assign_rows(&mut run, suite)?;
    Ok(run)
}

/// Returns why a suite cannot be measured here, if so.
pub(super) fn obstacle(
    workspace: &Workspace,
    suite: &Suite,
    may_compile: bool,
) -> Result<Option<String>> {
    if suite.needs_docker() {
        return match Daemon::obstacle(workspace)? {
            None => PYTHON.obstacle(workspace),
            why => Ok(why),
        };
    }
    if !suite.needs_cluster() {
        return Ok(None);
    }
    if Cluster::is_given() {
        let why = "KUBECONFIG names a cluster of others, whose load would be measured; unset it";
        return Ok(Some(why.to_owned()));
    }
    Cluster::obstacle(workspace, may_compile)
}

/// Measures our side with criterion, then the Python peer's with a script.
fn apart(workspace: &Workspace, suite: &Suite, mut command: Command) -> Result<Run> {
    let home = workspace.metadata()?.target_directory.join("criterion");
    for id in suite.ids() {
        // The result of an earlier run must not be mistaken for a new one.
        scratch::empty(&home.join(id))?;
    }
    process::run(command.arg(filter(suite)).env("CRITERION_HOME", &home))?;
    let mut times: BTreeMap<String, f64> = BTreeMap::new();
    if !suite.peers().is_empty() {
        println!("timing {}", describe("python"));
        let mut script = workspace.command(python(workspace)?)?;
        script.arg("xtask/bench/peer_apart.py").args(suite.ids());
        times = serde_json::from_str(&process::output(&mut script)?)
            .context("the peer's script printed something unexpected")?;
    }
    let exact = |median| Figure {
        median,
        ..Figure::default()
    };
    let mut run = Run::default();
    for id in suite.ids() {
        let path = home.join(id).join("new/estimates.json");
        let json =
            fs::read_to_string(&path).with_context(|| format!("no benchmark `{id}` was run"))?;
        let ours = median(&json).with_context(|| format!("{} has no median", path.display()))?;
        run.comparisons.push(Comparison {
            id: id.to_owned(),
            ours: exact(ours),
            peer: times.get(id).copied().map(exact),
            ..Comparison::default()
        });
    }
    Ok(run)
}

/// Runs a target that calls both sides in turns, with the files and the peers it needs.
fn in_turns(workspace: &Workspace, suite: &Suite, mut command: Command) -> Result<Run> {
    let mut run = Run::default();
    let ids = suite.ids();
    let scratch = workspace.cache("bench-scratch");
    scratch::empty(&scratch)?;
    command.args(["--rows", &ids.join(",")]);
    command.arg("--scratch").arg(scratch);
    let is_search = |id: &&str| id.contains("_grep_") || id.contains("_glob_");
    if ids.iter().any(is_search) {
        let (path, size) = tree(workspace)?;
        command.arg("--tree").arg(path);
        run.facts.push(size);
    }
    if suite.needs_docker() || suite.needs_cluster() {
        command.args(["--image", PYTHON.name]);
    }
    let build = || agent::build(workspace, None);
    let agent = suite.needs_agent().then(build).transpose()?;
    if let Some(agent) = &agent {
        command.arg("--agent").arg(&agent.path);
    }
    for peer in suite.peers() {
        pass_peer(workspace, peer, &mut command)?;
    }
    // Held until the end.
    let (cluster, daemon);
    if suite.needs_docker() {
        daemon = match Daemon::find(workspace)? {
            Found::Daemon(daemon) => daemon,
            Found::Nothing(why) => bail!("{why}"),
        };
        let docker = Docker::new(workspace, &daemon);
        if let Some(missing) = docker::images::load(&docker, &[PYTHON])? {
            bail!("{missing}");
        }
        command.env("DOCKER_HOST", &docker.host);
    }
    if suite.needs_cluster() {
        if suite.needs_fake_nodes() {
            command.arg("--kwok").arg(Cluster::kwok(workspace)?);
        }
        cluster = Cluster::start(workspace)?;
        if let Some(agent) = &agent {
            let image = dist::load_agent_image(agent, &cluster)?;
            command.args(["--agent-image", &image]);
        }
        command = cluster.inside(command)?;
    }
    let mut lines = Vec::new();
    let is_success = process::run_observed(&mut command, "", |line| lines.push(line.to_owned()))?;
    ensure!(is_success, "the benchmark failed");
    for line in lines {
        if line.starts_with('{') {
            let parsed = serde_json::from_str(&line);
            let parsed = parsed.context("cannot parse a line of the benchmark")?;
            run.comparisons.push(parsed);
        } else if line.starts_with("Other work: ") {
            run.facts.push(line);
        }
    }
    Ok(run)
}

/// Installs a peer if it is missing, and tells a benchmark where it is.
fn pass_peer(workspace: &Workspace, peer: &str, command: &mut Command) -> Result<()> {
    command.arg("--peers");
    // The Python peer finds ripgrep on the PATH and is far slower without it.
    if ["python", "rg"].contains(&peer) {
        provision::run(workspace, &["rg"])?;
    }
    let script = workspace.root().join("xtask/bench/peer_turns.py");
    let paths = match peer {
        "python" => vec![("--python", python(workspace)?), ("--script", script)],
        "rg" => vec![("--rg", workspace.tools().join("bin/rg"))],
        "npm" => vec![("--node", npm(workspace)?)],
        _ => Vec::new(),
    };
    for (name, path) in paths {
        command.arg(name).arg(path);
    }
    Ok(())
}

/// Returns the interpreter of the Python peer, which is installed if it is missing.
pub(super) fn python(workspace: &Workspace) -> Result<PathBuf> {
    let peer = describe("python").replace(' ', "==");
    let requirements = format!("{peer}\n{PYTHON_PACKAGES}");
    let directory = packages::venv(workspace, "bench-venv", &requirements)?;
    Ok(directory.join("bin/python"))
}

/// Returns the script of the peer that is a server, which is installed if it is missing.
fn npm(workspace: &Workspace) -> Result<PathBuf> {
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

/// Tells the comparisons their rows, which were measured in their order.
fn assign_rows(run: &mut Run, suite: &Suite) -> Result<()> {
    let mut comparisons = run.comparisons.iter_mut();
    for row in &suite.rows {
        let measured = comparisons.next().filter(|measured| measured.id == row.id);
        let measured = measured.with_context(|| format!("{} was not measured", row.id))?;
        measured.row = row.clone();
    }
    Ok(())
}

/// Returns the tree that is searched, which is filled once, and its size for the report.
fn tree(workspace: &Workspace) -> Result<(PathBuf, String)> {
    let directory = workspace.cache("bench-tree");
    let (path, note) = (directory.join("tree"), directory.join("size.txt"));
    packages::install_once(&directory, MIN_SOURCES, || {
        // Cargo unpacks the sources of crates there.
        let registry = cargo_home()?.join("registry/src");
        let size = fill_tree(workspace, &registry, &path, MIN_SOURCES)?;
        Ok(fs::write(&note, size)?)
    })?;
    Ok((path, fs::read_to_string(note)?))
}

fn fill_tree(workspace: &Workspace, from: &Path, to: &Path, min_sources: &str) -> Result<String> {
    println!("filling {}", to.display());
    let mut python = workspace.command("python3")?;
    python.arg("xtask/bench/tree.py").args([from, to]);
    let size = process::output(python.arg(min_sources))?;
    Ok(size.trim().to_owned())
}

/// Returns a regular expression for exactly the ids of a suite.
fn filter(suite: &Suite) -> String {
    format!("^({})$", suite.ids().join("|"))
}

/// Reads criterion's `estimates.json`. Times are in nanoseconds.
fn median(json: &str) -> Option<f64> {
    let estimates: Value = serde_json::from_str(json).ok()?;
    estimates.pointer("/median/point_estimate")?.as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::suite::suites;
    use crate::scratch::Scratch;

    /// Returns the comparison that a line is for the row `id` of the suite `local`.
    fn compared(id: &str, line: &str) -> Result<Comparison> {
        let mut suite = suites()?.swap_remove(1);
        suite.rows.retain(|row| row.id == id);
        let mut run = Run::default();
        run.comparisons.push(serde_json::from_str(line)?);
        assign_rows(&mut run, &suite)?;
        Ok(run.comparisons.remove(0))
    }

    #[test]
    fn a_line_becomes_a_comparison() {
        let line = r#"{"id": "local_read_py", "rounds": 9,
                       "ours": {"best": 4, "median": 5, "p90": 6, "size": 50},
                       "peer": {"best": 9, "median": 20, "p90": 30, "size": 51}}"#;
        let figure = |median, p90, size| Figure {
            median,
            p90: Some(p90),
            size: Some(size),
        };
        let comparison = compared("local_read_py", line).unwrap();
        assert_eq!(comparison.ours, figure(5.0, 6.0, 50));
        assert_eq!(comparison.peer, Some(figure(20.0, 30.0, 51)));
        assert_eq!(comparison.rounds, Some(9));
        assert_eq!(comparison.is_met(), Some(true));
        let error = compared("local_edit_py", line).unwrap_err().to_string();
        assert_eq!(error, "local_edit_py was not measured");
        let line = r#"{"id": "local_memory_big", "ours": {"median": 5e6, "size": 200}}"#;
        let memory = compared("local_memory_big", line).unwrap();
        assert_eq!((memory.ours.median, memory.ours.size), (5e6, Some(200)));
        assert_eq!((memory.peer, memory.is_met()), (None, Some(true)));
    }

    #[test]
    fn criterion_is_asked_for_whole_ids_and_says_the_median() {
        let json = r#"{"mean": {"point_estimate": 9.0, "standard_error": 0.1},
                       "median": {"confidence_interval": {"confidence_level": 0.95,
                       "lower_bound": 7.0, "upper_bound": 8.0},
                       "point_estimate": 7.5, "standard_error": 0.1}}"#;
        assert_eq!(median(json), Some(7.5));
        assert_eq!(median("{}"), None);
        let mut suite = suites().unwrap().swap_remove(0);
        suite.rows.truncate(2);
        assert_eq!(filter(&suite), "^(state_write|state_ls_20k)$");
    }

    #[test]
    fn crates_are_copied_if_there_are_enough() {
        let scratch = Scratch::temporary("tree").unwrap();
        let (registry, path) = (scratch.join("registry"), scratch.join("tree"));
        let krate = registry.join("index-1/some-1.0.0");
        fs::create_dir_all(krate.join("src")).unwrap();
        fs::write(krate.join("src/lib.rs"), "fn main() {}\n").unwrap();
        fs::write(krate.join("Cargo.toml"), "[package]\n").unwrap();
        let workspace = Workspace::discover().unwrap();
        let size = fill_tree(&workspace, &registry, &path, "2").unwrap();
        let expected = "Tree: 3 files of crates from cargo's registry, 2 of them Rust, 0 MB";
        assert_eq!(size, expected);
        assert!(path.join("some-1.0.0/src/lib.rs").is_file());
        let marked = fs::read_to_string(path.join("rare.rs")).unwrap();
        assert_eq!(marked.matches("agentbox_rare_literal").count(), 3);
        fs::remove_dir_all(&path).unwrap();
        assert!(fill_tree(&workspace, &registry, &path, "3").is_err());
    }
}
