//! The comparison as a table, and as a section of `docs/benchmarks.md`.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, iter, thread};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::bench::suite::{Row, Suite, describe};
use crate::workspace::Workspace;
use crate::{process, table};

/// The text above the sections.
const HEAD: &str = "# Benchmarks\n\n\
    Written by `cargo xtask bench`; do not edit.\n\n\
    Times are medians.\n\
    The ratio is the peer's time, or memory, divided by ours, so more is better for us.\n\
    *asked* is our target, the smallest ratio we accept: 0.91x lets us take 1.1 times as long.\n\
    In the plots, a bar to the right of 1x is how much faster we are, and what misses its target is red.\n\
    A curve shows how a time, or memory, grows: by ten times from one line to the next.\n";

/// The beginning of a section of the page.
const SECTION: &str = "\n## ";

/// The results of a suite.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) comparisons: Vec<Comparison>,
    /// Further facts for the reader.
    pub(super) facts: Vec<String>,
}

/// The figures for one workload, as a benchmark that calls both sides prints them.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Comparison {
    #[serde(skip)]
    pub(super) row: Row,
    pub(super) id: String,
    pub(super) ours: Figure,
    pub(super) peer: Option<Figure>,
    /// Number of calls of each side, if they alternate.
    pub(super) rounds: Option<usize>,
}

/// Nanoseconds, or bytes in a row about memory, or an amount of the row's unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub(super) struct Figure {
    pub(super) median: f64,
    /// The 90th percentile.
    pub(super) p90: Option<f64>,
    /// Number of results.
    pub(super) size: Option<u64>,
}

impl Comparison {
    /// Returns the peer's time divided by ours.
    fn ratio(&self) -> Option<f64> {
        self.peer.map(|peer| peer.median / self.ours.median)
    }

    /// Whether the target is met; `None` without a target or without a peer.
    pub(super) fn is_met(&self) -> Option<bool> {
        match (self.row.ratio, self.row.under) {
            (Some(least), _) => Some(self.ratio()? >= least),
            (None, under) => Some(self.ours.median < under?),
        }
    }

    fn cells(&self) -> [String; 8] {
        let row = &self.row;
        let figure = |figure: Figure| match figure.p90 {
            Some(p90) if !row.is_memory() => {
                format!("{} (p90 {})", amount(row, figure.median), amount(row, p90))
            }
            _ => amount(row, figure.median),
        };
        let side = if row.mib.is_some() { "over" } else { "under" };
        let under = row
            .under
            .map(|most| format!("{side} {}", amount(row, most)));
        [
            row.id.clone(),
            row.what.clone(),
            row.peer.clone().unwrap_or_default(),
            figure(self.ours),
            self.peer.map(figure).unwrap_or_default(),
            self.ratio().map(times).unwrap_or_default(),
            row.ratio.map(times).or(under).unwrap_or_default(),
            self.is_met()
                .map_or("", |is_met| if is_met { "yes" } else { "NO" })
                .to_owned(),
        ]
    }

    /// Returns both sides' results, if they differ.
    fn difference(&self) -> Option<String> {
        let (ours, theirs) = (self.ours.size?, self.peer?.size?);
        let (id, peer) = (&self.row.id, self.row.peer.as_ref()?);
        (ours != theirs).then(|| format!("- `{id}`: ours {ours}, {peer} {theirs}"))
    }
}

/// Returns the rows that miss their target.
pub(super) fn missed(run: &Run) -> Vec<&str> {
    let all = run.comparisons.iter();
    let missed = all.filter(|comparison| comparison.is_met() == Some(false));
    missed.map(|comparison| comparison.id.as_str()).collect()
}

/// Returns facts for the reader about the machine that measured.
pub(super) fn machine(workspace: &Workspace) -> Result<[String; 3]> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut models = cpuinfo
        .lines()
        .filter_map(|line| line.strip_prefix("model name\t: "));
    let cpu = models.next().unwrap_or("unknown CPU");
    let n_cores = thread::available_parallelism().context("cannot count the cores")?;
    Ok([
        format!("Date: {}", line(workspace, "date".as_ref(), "+%F")?),
        format!("CPU: {cpu}, {n_cores} cores"),
        format!("Compiler: {}", version(workspace, "rustc".as_ref())?),
    ])
}

/// Returns the version that a program prints.
pub(super) fn version(workspace: &Workspace, program: &Path) -> Result<String> {
    line(workspace, program, "--version")
}

fn line(workspace: &Workspace, program: &Path, arg: &str) -> Result<String> {
    let text = process::output(workspace.command(program)?.arg(arg))?;
    Ok(text.trim().to_owned())
}

/// Renders one line per workload, followed by differences between the sides' results.
pub(super) fn results(run: &Run) -> String {
    let header = [
        "row", "workload", "peer", "ours", "theirs", "ratio", "asked", "met",
    ];
    let all = run.comparisons.iter();
    let rows: Vec<_> = all.clone().map(Comparison::cells).collect();
    let mut text = table::render(header, &rows);
    let differences: Vec<_> = all.filter_map(Comparison::difference).collect();
    if !differences.is_empty() {
        let differences = differences.join("\n");
        text += &format!("\nThe number of results differs in:\n\n{differences}\n");
    }
    text
}

/// Renders the section of one suite. `interpreter` is that of the Python peer.
pub(super) fn section(suite: &Suite, machine: &[String], interpreter: &str, run: &Run) -> String {
    let peers = suite.peers().into_iter().map(|peer| match peer {
        "python" => format!("{} on {interpreter}", describe(peer)),
        _ => describe(peer).to_owned(),
    });
    let peers: Vec<_> = peers.collect();
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
    format!(
        "{SECTION}{}\n\n- {}\n\n{how}\
         The workloads are described in [the benchmark](../{}).\n\n{}",
        suite.title,
        facts.join("\n- "),
        suite.bench,
        results(run)
    )
}

/// Puts a section into the page `old`, in the order of the suites.
pub(super) fn page(old: &str, suites: &[Suite], section: &str) -> String {
    let both = [old, section].into_iter();
    let sections = both.flat_map(|text| text.split(SECTION).skip(1));
    let mut sections: BTreeMap<_, _> = sections.filter_map(|text| text.split_once('\n')).collect();
    let known = suites.iter().filter_map(|Suite { title, .. }| {
        let text = sections.remove(title.as_str())?;
        Some(format!("{SECTION}{title}\n{text}"))
    });
    iter::once(HEAD.to_owned()).chain(known).collect()
}

/// Formats a ratio with up to three significant digits.
fn times(ratio: f64) -> String {
    let n_decimals = if ratio < 10.0 { 2 } else { 1 };
    format!("{ratio:.n_decimals$}x")
}

/// Formats a figure of a row: a speed, an amount of its unit, memory or a time.
fn amount(row: &Row, figure: f64) -> String {
    match (row.mib, &row.unit) {
        (Some(mib), _) => format!("{:.0} MiB/s", mib * 1e9 / figure),
        (None, Some(unit)) => format!("{} {unit}", three_digits(figure)),
        (None, None) if row.is_memory() => format!("{:.1} MB", figure / 1e6),
        (None, None) => duration(figure),
    }
}

/// Formats a time with three significant digits.
fn duration(nanos: f64) -> String {
    let (value, unit) = match nanos {
        n if n < 1e3 => (n, "ns"),
        n if n < 1e6 => (n / 1e3, "µs"),
        n if n < 1e9 => (n / 1e6, "ms"),
        n => (n / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

fn three_digits(value: f64) -> String {
    let n_decimals = match value {
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.n_decimals$}")
}

#[cfg(test)]
mod tests;
