//! `cargo xtask bench`: our benchmarks next to the same work done by a peer.
//!
//! Criterion measures our side and a script in `xtask/bench/` the peer's. Both
//! use the ids of [`suite`] for the same workload, and both report medians.

mod criterion;
mod peer;
mod report;
mod suite;

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result};

use crate::bench::report::{Comparison, Machine, PeerTime};
use crate::bench::suite::{Row, STATE, Suite};
use crate::flags;
use crate::workspace::Workspace;

/// The file that a complete run writes.
const REPORT_PATH: &str = "docs/benchmarks.md";

/// Median times in nanoseconds by the id of their row.
type Times = BTreeMap<String, f64>;

/// Measures, prints the table, and tells whether every target was met.
pub(crate) fn run(flags: &flags::Bench) -> Result<bool> {
    let workspace = Workspace::discover()?;
    let rows = select(&STATE, flags)?;
    let ours = criterion::measure(&workspace, &STATE, &rows)?;
    let peer = (!flags.no_peer).then(|| peer::measure(&workspace, &STATE, &rows));
    if let Some(Err(error)) = &peer {
        eprintln!("error: peer not available: {error:#}");
    }
    let comparisons = compare(&rows, &ours, peer.as_ref())?;
    println!("\n{}", report::table(&comparisons));
    if matches!(peer, Some(Ok(_))) && flags.only.is_none() {
        write_report(&workspace, &comparisons)?;
    } else {
        println!("{REPORT_PATH} is written by a run over all rows with the peer only");
    }
    Ok(!matches!(peer, Some(Err(_))) && report_missed(&comparisons))
}

fn select(suite: &'static Suite, flags: &flags::Bench) -> Result<Vec<&'static Row>> {
    let known: Vec<_> = suite.rows.iter().map(|row| row.id).collect();
    let Some(list) = &flags.only else {
        return Ok(suite.rows.iter().collect());
    };
    let only = list.checked("row", &known)?;
    Ok(suite
        .rows
        .iter()
        .filter(|row| only.iter().any(|id| id == row.id))
        .collect())
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
            None => PeerTime::NotAsked,
            Some(Err(_)) => PeerTime::Unavailable,
            Some(Ok(times)) => {
                let time = times.get(row.id);
                PeerTime::Nanos(*time.with_context(|| format!("the peer left out {}", row.id))?)
            }
        };
        Ok(Comparison { row, ours, peer })
    };
    rows.iter().map(compare_one).collect()
}

fn write_report(workspace: &Workspace, comparisons: &[Comparison]) -> Result<()> {
    let path = workspace.root().join(REPORT_PATH);
    let machine = Machine::detect(workspace)?;
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(&path, report::page(&STATE, &machine, comparisons))
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {REPORT_PATH}");
    Ok(())
}

/// Names the rows under their target; `true` if there are none.
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

    fn flags(only: Option<&str>) -> flags::Bench {
        flags::Bench {
            only: only.map(|list| list.parse().unwrap()),
            no_peer: false,
        }
    }

    fn times(pairs: &[(&str, f64)]) -> Times {
        pairs
            .iter()
            .map(|(id, nanos)| ((*id).to_owned(), *nanos))
            .collect()
    }

    #[test]
    fn rows_are_selected_by_id() {
        assert_eq!(
            select(&STATE, &flags(None)).unwrap().len(),
            STATE.rows.len()
        );
        let rows = select(&STATE, &flags(Some("state_write"))).unwrap();
        assert_eq!(
            rows.iter().map(|row| row.id).collect::<Vec<_>>(),
            ["state_write"]
        );
        assert!(select(&STATE, &flags(Some("nope"))).is_err());
    }

    #[test]
    fn every_selected_row_needs_its_times() {
        let rows = select(&STATE, &flags(Some("state_write"))).unwrap();
        let time = times(&[("state_write", 5.0)]);
        let peer_time = |ours: &Times, peer: Option<Result<Times>>| {
            compare(&rows, ours, peer.as_ref()).map(|all| all[0].peer)
        };
        assert_eq!(peer_time(&time, None).unwrap(), PeerTime::NotAsked);
        let measured = peer_time(&time, Some(Ok(time.clone()))).unwrap();
        assert_eq!(measured, PeerTime::Nanos(5.0));
        let missing = peer_time(&time, Some(Err(anyhow!("no Python")))).unwrap();
        assert_eq!(missing, PeerTime::Unavailable);
        assert!(peer_time(&time, Some(Ok(Times::new()))).is_err());
        assert!(peer_time(&Times::new(), None).is_err());
    }

    #[test]
    fn only_a_missed_target_is_a_failure() {
        let row = STATE
            .rows
            .iter()
            .find(|row| row.target == Some(20.0))
            .unwrap();
        let verdict = |peer| {
            report_missed(&[Comparison {
                row,
                ours: 1.0,
                peer,
            }])
        };
        assert!(verdict(PeerTime::Nanos(20.0)));
        assert!(!verdict(PeerTime::Nanos(19.0)));
        assert!(verdict(PeerTime::NotAsked));
    }
}
