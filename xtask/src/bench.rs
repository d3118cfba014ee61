//! `cargo xtask bench`: our benchmarks compared with peers that do the same work.
//!
//! A suite is measured in one of two ways. Either criterion measures our side and a
//! script in `xtask/bench/` the peer's, or the benchmark target calls both in turns.
//! All sides use the ids of [`suite`] and report medians.

mod corpus;
mod criterion;
mod peer;
mod report;
mod suite;
mod turns;

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result};

use crate::bench::report::{Comparison, Figure, Machine, PeerFigure, Run};
use crate::bench::suite::{DOCKER, Method, Peer, Row, SUITES, Suite};
use crate::flags;
use crate::workspace::Workspace;

/// The file that a complete run of a suite updates.
const REPORT_PATH: &str = "docs/benchmarks.md";

/// Median times in nanoseconds, by row id.
type Times = BTreeMap<String, f64>;

/// Runs the benchmarks, prints the tables, and returns whether every target was met.
pub(crate) fn run(flags: &flags::Bench) -> Result<bool> {
    let workspace = Workspace::discover()?;
    let mut is_right = true;
    for (suite, rows) in select(flags)? {
        let is_named = flags.suites.is_some() || flags.only.is_some();
        if suite.name == DOCKER.name && !is_named && !turns::daemon_answers(&workspace)? {
            println!("the suite docker is left out: no Docker daemon answers");
            continue;
        }
        let run = match suite.method {
            Method::Criterion => measure_apart(&workspace, suite, &rows, flags),
            Method::Interleaved => turns::measure(&workspace, suite, &rows, flags),
        }
        .with_context(|| format!("cannot measure the suite {}", suite.name))?;
        println!("\n{}", report::results(&run));
        if run.is_peer_missing || flags.no_peer || flags.only.is_some() || flags.quick {
            println!("{REPORT_PATH} is written by a whole run over all rows with the peers only");
        } else {
            write_report(&workspace, suite, &run)?;
        }
        is_right &= !run.is_peer_missing & report_missed(&run.comparisons);
    }
    Ok(is_right)
}

/// Returns the suites and rows selected by the flags.
fn select(flags: &flags::Bench) -> Result<Vec<(&'static Suite, Vec<&'static Row>)>> {
    let names: Vec<_> = SUITES.iter().map(|suite| suite.name).collect();
    let wanted = match &flags.suites {
        Some(list) => Some(list.checked("suite", &names)?),
        None => None,
    };
    let is_wanted = |suite: &&Suite| wanted.is_none_or(|all| all.iter().any(|n| n == suite.name));
    let suites: Vec<_> = SUITES.iter().copied().filter(is_wanted).collect();
    let rows = suites.iter().flat_map(|suite| suite.rows);
    let known: Vec<_> = rows.map(|row| row.id).collect();
    let only = match &flags.only {
        Some(list) => Some(list.checked("row", &known)?),
        None => None,
    };
    let is_selected = |row: &&Row| only.is_none_or(|ids| ids.iter().any(|id| id == row.id));
    let selected = suites
        .into_iter()
        .map(|suite| (suite, suite.rows.iter().filter(is_selected).collect()));
    Ok(selected
        .filter(|(_, rows): &(_, Vec<_>)| !rows.is_empty())
        .collect())
}

/// Measures our side with criterion, then the peer's with its script.
fn measure_apart(
    workspace: &Workspace,
    suite: &Suite,
    rows: &[&'static Row],
    flags: &flags::Bench,
) -> Result<Run> {
    let ours = criterion::measure(workspace, suite, rows)?;
    let theirs: Vec<_> = rows
        .iter()
        .copied()
        .filter(|row| row.peer != Peer::Nobody)
        .collect();
    let peer =
        (!flags.no_peer && !theirs.is_empty()).then(|| peer::measure(workspace, suite, &theirs));
    if let Some(Err(error)) = &peer {
        eprintln!("error: peer not available: {error:#}");
    }
    Ok(Run {
        comparisons: compare(rows, &ours, peer.as_ref())?,
        facts: Vec::new(),
        is_peer_missing: matches!(peer, Some(Err(_))),
    })
}

fn compare(
    rows: &[&'static Row],
    ours: &Times,
    peer: Option<&Result<Times>>,
) -> Result<Vec<Comparison>> {
    let compare_one = |row: &&'static Row| {
        let ours = *ours
            .get(row.id)
            .with_context(|| format!("{} was not measured", row.id))?;
        let peer = match peer {
            None => PeerFigure::NotAsked,
            _ if row.peer == Peer::Nobody => PeerFigure::NotAsked,
            Some(Err(_)) => PeerFigure::Unavailable,
            Some(Ok(times)) => {
                let time = times.get(row.id);
                let time = *time.with_context(|| format!("the peer left out {}", row.id))?;
                PeerFigure::Is(Figure::exact(time))
            }
        };
        Ok(Comparison {
            row,
            ours: Figure::exact(ours),
            peer,
            rounds: None,
            found: None,
        })
    };
    rows.iter().map(compare_one).collect()
}

/// Replaces the section of one suite and keeps the others.
fn write_report(workspace: &Workspace, suite: &Suite, run: &Run) -> Result<()> {
    let path = workspace.root().join(REPORT_PATH);
    let machine = Machine::detect(workspace)?;
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    // The file does not exist before the first run.
    let old = fs::read_to_string(&path).unwrap_or_default();
    let section = report::section(suite, &machine, run);
    fs::write(&path, report::page(&old, suite, &section))
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {REPORT_PATH}");
    Ok(())
}

/// Prints the rows that miss their target. Returns `true` if there are none.
fn report_missed(comparisons: &[Comparison]) -> bool {
    let missed = comparisons
        .iter()
        .filter(|comparison| comparison.is_met() == Some(false));
    let missed: Vec<_> = missed.map(|comparison| comparison.row.id).collect();
    if !missed.is_empty() {
        eprintln!("error: target missed: {}", missed.join(", "));
    }
    missed.is_empty()
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;
    use crate::bench::suite::{LOCAL, STATE, Target};

    fn flags(suites: Option<&str>, only: Option<&str>) -> flags::Bench {
        let list = |text: Option<&str>| text.map(|list| list.parse().unwrap());
        flags::Bench {
            suites: list(suites),
            only: list(only),
            no_peer: false,
            quick: false,
        }
    }

    fn selected(suites: Option<&str>, only: Option<&str>) -> Vec<(&'static str, usize)> {
        let selected = select(&flags(suites, only)).unwrap();
        selected
            .iter()
            .map(|(suite, rows)| (suite.name, rows.len()))
            .collect()
    }

    fn times(pairs: &[(&str, f64)]) -> Times {
        pairs
            .iter()
            .map(|(id, nanos)| ((*id).to_owned(), *nanos))
            .collect()
    }

    #[test]
    fn suites_and_rows_are_selected_by_name() {
        let local = LOCAL.rows.len();
        let all: Vec<_> = SUITES.iter().map(|s| (s.name, s.rows.len())).collect();
        assert_eq!(selected(None, None), all);
        assert_eq!(selected(Some("local"), None), [("local", local)]);
        assert_eq!(selected(None, Some("state_write")), [("state", 1)]);
        let both = selected(None, Some("local_read_py,state_write"));
        assert_eq!(both, [("state", 1), ("local", 1)]);
        assert!(select(&flags(None, Some("nope"))).is_err());
        assert!(select(&flags(Some("nope"), None)).is_err());
        assert!(select(&flags(Some("local"), Some("state_write"))).is_err());
    }

    #[test]
    fn every_selected_row_needs_its_times() {
        let rows: Vec<_> = STATE.rows.iter().take(1).collect();
        let time = times(&[("state_write", 5.0)]);
        let peer_time = |ours: &Times, peer: Option<Result<Times>>| {
            compare(&rows, ours, peer.as_ref()).map(|all| all[0].peer)
        };
        assert_eq!(peer_time(&time, None).unwrap(), PeerFigure::NotAsked);
        let measured = peer_time(&time, Some(Ok(time.clone()))).unwrap();
        assert_eq!(measured, PeerFigure::Is(Figure::exact(5.0)));
        let missing = peer_time(&time, Some(Err(anyhow!("no Python")))).unwrap();
        assert_eq!(missing, PeerFigure::Unavailable);
        assert!(peer_time(&time, Some(Ok(Times::new()))).is_err());
        assert!(peer_time(&Times::new(), None).is_err());
    }

    #[test]
    fn only_a_missed_target_is_a_failure() {
        let row = STATE
            .rows
            .iter()
            .find(|row| row.target == Some(Target::Faster(20.0)))
            .unwrap();
        let verdict = |peer| {
            report_missed(&[Comparison {
                row,
                ours: Figure::exact(1.0),
                peer,
                rounds: None,
                found: None,
            }])
        };
        assert!(verdict(PeerFigure::Is(Figure::exact(20.0))));
        assert!(!verdict(PeerFigure::Is(Figure::exact(19.0))));
        assert!(verdict(PeerFigure::NotAsked));
    }
}
