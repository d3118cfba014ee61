//! The comparison as a table and as `docs/benchmarks.md`.

use std::{fs, thread};

use anyhow::{Context as _, Result};

use crate::bench::peer;
use crate::bench::suite::{Row, Suite};
use crate::workspace::Workspace;
use crate::{process, table};

/// The times for one workload.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) row: &'static Row,
    /// In nanoseconds.
    pub(super) ours: f64,
    pub(super) peer: PeerTime,
}

/// What is known about the peer's time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PeerTime {
    Nanos(f64),
    NotAsked,
    Unavailable,
}

impl Comparison {
    /// How many times as long the peer takes.
    fn ratio(&self) -> Option<f64> {
        match self.peer {
            PeerTime::Nanos(peer) => Some(peer / self.ours),
            PeerTime::NotAsked | PeerTime::Unavailable => None,
        }
    }

    /// Whether the target is met; `None` without a target or without a peer.
    pub(super) fn is_met(&self) -> Option<bool> {
        Some(self.ratio()? >= self.row.target?)
    }

    fn cells(&self) -> [String; 7] {
        let peer = match self.peer {
            PeerTime::Nanos(nanos) => duration(nanos),
            PeerTime::NotAsked => "not measured".to_owned(),
            PeerTime::Unavailable => "peer not available".to_owned(),
        };
        let times =
            |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.1}x"));
        let is_met = match self.is_met() {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "",
        };
        let Row { id, what, target } = self.row;
        let [id, what, is_met] = [*id, *what, is_met].map(str::to_owned);
        [
            id,
            what,
            duration(self.ours),
            peer,
            times(self.ratio()),
            times(*target),
            is_met,
        ]
    }
}

/// Where the times were measured.
#[derive(Debug)]
pub(super) struct Machine {
    date: String,
    cpu: String,
    n_cores: usize,
    rustc: String,
    /// What the peer ran on.
    interpreter: String,
}

impl Machine {
    pub(super) fn detect(workspace: &Workspace) -> Result<Self> {
        let line = |program: &str, arg: &str| -> Result<String> {
            let text = process::output(workspace.command(program)?.arg(arg))?;
            Ok(text.trim().to_owned())
        };
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Ok(Self {
            date: line("date", "+%F")?,
            cpu: cpu_model(&cpuinfo).unwrap_or("unknown CPU").to_owned(),
            n_cores: thread::available_parallelism()
                .context("cannot count the cores")?
                .get(),
            rustc: line("rustc", "--version")?,
            interpreter: peer::interpreter(workspace)?,
        })
    }
}

fn cpu_model(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, model)| model.trim())
}

/// One line per workload.
pub(super) fn table(comparisons: &[Comparison]) -> String {
    let header = ["row", "workload", "ours", "peer", "ratio", "target", "met"];
    let rows: Vec<_> = comparisons.iter().map(Comparison::cells).collect();
    table::render(header, &rows)
}

/// The whole of `docs/benchmarks.md`.
pub(super) fn page(suite: &Suite, machine: &Machine, comparisons: &[Comparison]) -> String {
    let Machine {
        date,
        cpu,
        n_cores,
        rustc,
        interpreter,
    } = machine;
    let peer = suite.peer();
    let table = table(comparisons);
    format!(
        "# Benchmarks\n\n\
         Written by `cargo xtask bench`; do not edit.\n\n\
         - Date: {date}\n\
         - CPU: {cpu}, {n_cores} cores\n\
         - Compiler: {rustc}\n\
         - Peer: {peer} on {interpreter}\n\n\
         Times are medians.\n\
         The ratio is the peer's time divided by ours; the target is the least ratio we accept.\n\
         The workloads are described in \
         [the peer's script](../xtask/bench/{}).\n\n\
         {table}",
        suite.peer_script
    )
}

/// A time with three significant digits.
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
mod tests {
    use super::*;
    use crate::bench::suite::STATE;

    fn comparison(target: f64, peer: PeerTime) -> Comparison {
        let row = STATE
            .rows
            .iter()
            .find(|row| row.target == Some(target))
            .unwrap();
        Comparison {
            row,
            ours: 1_500.0,
            peer,
        }
    }

    #[test]
    fn times_have_three_digits() {
        let shown = [0.5, 812.4, 1_234.0, 45_600.0, 7.5e6, 1.2e10].map(duration);
        assert_eq!(
            shown,
            [
                "0.50 ns", "812 ns", "1.23 µs", "45.6 µs", "7.50 ms", "12.0 s"
            ]
        );
    }

    #[test]
    fn target_is_met_from_its_ratio_on() {
        assert_eq!(
            comparison(20.0, PeerTime::Nanos(30_000.0)).is_met(),
            Some(true)
        );
        assert_eq!(
            comparison(20.0, PeerTime::Nanos(29_999.0)).is_met(),
            Some(false)
        );
        assert_eq!(comparison(20.0, PeerTime::Unavailable).is_met(), None);
        let row = STATE.rows.iter().find(|row| row.target.is_none()).unwrap();
        let comparison = Comparison {
            row,
            ours: 9.0,
            peer: PeerTime::Nanos(1.0),
        };
        assert_eq!(comparison.is_met(), None);
    }

    #[test]
    fn cells_show_what_is_known() {
        let [.., ours, peer, ratio, target, is_met] =
            comparison(20.0, PeerTime::Nanos(3_000.0)).cells();
        assert_eq!(
            [ours, peer, ratio, target, is_met],
            ["1.50 µs", "3.00 µs", "2.0x", "20.0x", "NO"]
        );
        let [.., peer, ratio, _, is_met] = comparison(20.0, PeerTime::Unavailable).cells();
        assert_eq!([peer, ratio, is_met], ["peer not available", "", ""]);
    }

    #[test]
    fn page_says_how_it_was_made() {
        let machine = Machine {
            date: "2026-01-31".to_owned(),
            cpu: "Some CPU".to_owned(),
            n_cores: 2,
            rustc: "rustc 1.95.0".to_owned(),
            interpreter: "Python 3.12.1".to_owned(),
        };
        let page = page(
            &STATE,
            &machine,
            &[comparison(10.0, PeerTime::Nanos(30_000.0))],
        );
        for part in [
            "`cargo xtask bench`",
            "2026-01-31",
            "Some CPU, 2 cores",
            "rustc 1.95.0",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(
            page.contains("pydantic-ai-backend 0.2.29 on Python 3.12.1")
                && page.contains("| 20.0x | 10.0x  | yes |")
        );
    }

    #[test]
    fn cpu_model_is_the_first_of_the_cores() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nmodel name\t: Other\n";
        assert_eq!(cpu_model(cpuinfo), Some("Some CPU @ 2 GHz"));
        assert_eq!(cpu_model(""), None);
    }
}
