//! The comparison as a table, and as a section of `docs/benchmarks.md`.

use std::{fs, thread};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::bench::suite::{Row, Suite, Target, describe};
use crate::workspace::Workspace;
use crate::{process, table};

/// The text above the sections.
const HEAD: &str = "# Benchmarks\n\n\
    Written by `cargo xtask bench`; do not edit.\n\n\
    Times are medians.\n\
    The ratio is the peer's time, or memory, divided by ours, so more is better for us.\n\
    *asked* is our target, the smallest ratio we accept: 0.91x lets us take 1.1 times as long.\n";

/// The beginning of a section of the page.
const SECTION: &str = "\n## ";

/// The results of a suite.
#[derive(Debug, Default)]
pub(super) struct Run<'a> {
    pub(super) comparisons: Vec<Comparison<'a>>,
    /// Further facts for the reader.
    pub(super) facts: Vec<String>,
    /// Whether a requested peer is not available.
    pub(super) is_peer_missing: bool,
}

impl Run<'_> {
    /// Notes that a requested peer is not available.
    pub(super) fn available<T: Default>(&mut self, peer: Result<T>) -> T {
        peer.unwrap_or_else(|error| {
            eprintln!("error: peer not available: {error:#}");
            self.is_peer_missing = true;
            T::default()
        })
    }
}

/// The figures for one workload.
#[derive(Debug)]
pub(super) struct Comparison<'a> {
    pub(super) row: &'a Row,
    pub(super) ours: Figure,
    /// If there is none, the text of its cell.
    pub(super) peer: Result<Figure, &'static str>,
    /// Number of calls of each side, if they alternate.
    pub(super) rounds: Option<usize>,
}

/// Nanoseconds, or bytes in a row about memory.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(super) struct Figure {
    pub(super) median: f64,
    /// The 90th percentile.
    pub(super) p90: Option<f64>,
    /// Number of results.
    pub(super) size: Option<u64>,
}

impl Figure {
    /// Creates a figure without a spread.
    pub(super) fn exact(median: f64) -> Self {
        Self {
            median,
            p90: None,
            size: None,
        }
    }

    fn time(self) -> String {
        let median = duration(self.median);
        match self.p90 {
            Some(p90) => format!("{median} (p90 {})", duration(p90)),
            None => median,
        }
    }
}

impl Comparison<'_> {
    /// Returns the peer's time divided by ours.
    fn ratio(&self) -> Option<f64> {
        self.peer.ok().map(|peer| peer.median / self.ours.median)
    }

    /// Whether the target is met; `None` without a target or without a peer.
    pub(super) fn is_met(&self) -> Option<bool> {
        Some(match self.row.target? {
            Target::Faster(times) | Target::Lighter(times) => self.ratio()? >= times,
            Target::Within(times) => self.ratio()? >= 1.0 / times,
            Target::Below(most) | Target::Under(most) => self.ours.median < most,
        })
    }

    fn cells(&self) -> [String; 8] {
        let row = self.row;
        let figure: fn(Figure) -> String = match row.target {
            Some(Target::Below(_) | Target::Lighter(_)) => |figure| megabytes(figure.median),
            _ => Figure::time,
        };
        let asked = row.target.map(|target| match target {
            Target::Faster(ratio) | Target::Lighter(ratio) => times(ratio),
            Target::Within(limit) => times(1.0 / limit),
            Target::Below(bytes) => format!("under {}", megabytes(bytes)),
            Target::Under(nanos) => format!("under {}", duration(nanos)),
        });
        let is_met = match self.is_met() {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "",
        };
        [
            row.id.clone(),
            row.what.clone(),
            row.peer.clone().unwrap_or_default(),
            figure(self.ours),
            self.peer.map_or_else(str::to_owned, figure),
            self.ratio().map(times).unwrap_or_default(),
            asked.unwrap_or_default(),
            is_met.to_owned(),
        ]
    }

    /// Returns both sides' results, if they differ.
    fn difference(&self) -> Option<String> {
        let (ours, theirs) = (self.ours.size?, self.peer.ok()?.size?);
        let (id, peer) = (&self.row.id, self.row.peer.as_ref()?);
        (ours != theirs).then(|| format!("- `{id}`: ours {ours}, {peer} {theirs}"))
    }
}

/// Returns facts for the reader about the machine the times were measured on.
pub(super) fn machine(workspace: &Workspace) -> Result<[String; 3]> {
    let line = |program: &str, arg: &str| -> Result<String> {
        let text = process::output(workspace.command(program)?.arg(arg))?;
        Ok(text.trim().to_owned())
    };
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu_model(&cpuinfo).unwrap_or("unknown CPU");
    let n_cores = thread::available_parallelism().context("cannot count the cores")?;
    Ok([
        format!("Date: {}", line("date", "+%F")?),
        format!("CPU: {cpu}, {n_cores} cores"),
        format!("Compiler: {}", line("rustc", "--version")?),
    ])
}

fn cpu_model(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, model)| model.trim())
}

/// Renders one line per workload, followed by differences between the sides' results.
pub(super) fn results(run: &Run<'_>) -> String {
    let header = [
        "row", "workload", "peer", "ours", "theirs", "ratio", "asked", "met",
    ];
    let rows: Vec<_> = run.comparisons.iter().map(Comparison::cells).collect();
    let mut text = table::render(header, &rows);
    let all = run.comparisons.iter();
    let differences: Vec<_> = all.filter_map(Comparison::difference).collect();
    if !differences.is_empty() {
        let differences = differences.join("\n");
        text += &format!("\nThe number of results differs in:\n\n{differences}\n");
    }
    text
}

/// Renders the section of one suite, including its heading. `interpreter` is that of the
/// Python peer.
pub(super) fn section(
    suite: &Suite,
    machine: &[String],
    interpreter: &str,
    run: &Run<'_>,
) -> String {
    let peers = peers_of(suite, interpreter);
    let mut facts = machine.to_vec();
    if !peers.is_empty() {
        facts.push(format!("Peers: {}", peers.join(", ")));
    }
    facts.extend_from_slice(&run.facts);
    let rounds = run.comparisons.iter().filter_map(|all| all.rounds);
    let how = match (rounds.clone().min(), rounds.max()) {
        (Some(least), Some(most)) if suite.turns => {
            format!("We and the peer are called by turns, each row in {least} to {most} rounds.\n")
        }
        _ if peers.is_empty() => String::new(),
        _ => "We are measured first, then the peer.\n".to_owned(),
    };
    let script = suite.script();
    let name = if script.ends_with(".py") {
        "the peer's script"
    } else {
        "the benchmark"
    };
    format!(
        "{SECTION}{}\n\n- {}\n\n{how}\
         The workloads are described in [{name}](../{script}).\n\n{}",
        suite.title,
        facts.join("\n- "),
        results(run)
    )
}

/// Returns the peers of a suite, each once.
fn peers_of(suite: &Suite, interpreter: &str) -> Vec<String> {
    let mut peers: Vec<String> = Vec::new();
    for peer in suite.rows.iter().filter_map(|row| row.peer.as_deref()) {
        let mut name = describe(peer).to_owned();
        if peer == "python" {
            name += &format!(" on {interpreter}");
        }
        if !peers.contains(&name) {
            peers.push(name);
        }
    }
    peers
}

/// Replaces the section of one suite in the page `old`. Sections are in the order of
/// `suites`.
pub(super) fn page(old: &str, suites: &[Suite], suite: &Suite, section: &str) -> String {
    let kept = |other: &Suite| {
        let heading = format!("{SECTION}{}\n", other.title);
        let start = old.find(&heading)?;
        let rest = &old[start..];
        let end = rest[heading.len()..].find(SECTION);
        let length = end.map_or(rest.len(), |end| heading.len() + end);
        Some(&rest[..length])
    };
    let sections = suites.iter().map(|other| {
        if other.name == suite.name {
            section
        } else {
            kept(other).unwrap_or_default()
        }
    });
    std::iter::once(HEAD).chain(sections).collect()
}

/// Formats a ratio with up to three significant digits.
fn times(ratio: f64) -> String {
    let n_decimals = if ratio < 10.0 { 2 } else { 1 };
    format!("{ratio:.n_decimals$}x")
}

fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / 1e6)
}

/// Formats a time with three significant digits.
fn duration(nanos: f64) -> String {
    let (value, unit) = match nanos {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "µs"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    let n_decimals = match value {
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.n_decimals$} {unit}")
}

#[cfg(test)]
mod tests;
