//! `cargo xtask bench`: our benchmarks compared with peers that do the same work.
//!
//! A suite is measured in one of two ways. Either criterion measures our side and a
//! script in `xtask/bench/` the peer's, or the benchmark target calls both in turns.
//! All sides use the ids of `xtask/bench/suites.toml` and report medians.

mod corpus;
mod measure;
mod peers;
mod report;
mod suite;

use std::fs;

use anyhow::{Context as _, Result};

use crate::bench::report::{Comparison, Run};
use crate::bench::suite::{Row, Suite, suites};
use crate::flags;
use crate::workspace::Workspace;

/// The file that a complete run of a suite updates.
const REPORT_PATH: &str = "docs/benchmarks.md";

/// Runs the benchmarks, prints the tables, and returns whether every target was met.
pub(crate) fn run(flags: &flags::Bench) -> Result<bool> {
    let workspace = Workspace::discover()?;
    let suites = suites()?;
    let mut is_right = true;
    for (suite, rows) in select(&suites, flags)? {
        let is_named = flags.suites.is_some() || flags.only.is_some();
        if suite.needs_docker() && !is_named && !measure::daemon_answers(&workspace)? {
            println!(
                "the suite {} is left out: no Docker daemon answers",
                suite.name
            );
            continue;
        }
        let run = measure::run(&workspace, suite, &rows, flags)
            .with_context(|| format!("cannot measure the suite {}", suite.name))?;
        println!("\n{}", report::results(&run));
        if run.is_peer_missing || flags.no_peer || flags.only.is_some() || flags.quick {
            println!("{REPORT_PATH} is written by a whole run over all rows with the peers only");
        } else {
            write_report(&workspace, &suites, suite, &run)?;
        }
        is_right &= !run.is_peer_missing & report_missed(&run.comparisons);
    }
    Ok(is_right)
}

/// Returns the suites and rows selected by the flags.
fn select<'a>(suites: &'a [Suite], flags: &flags::Bench) -> Result<Vec<(&'a Suite, Vec<&'a Row>)>> {
    let checked = |list: &Option<flags::List>, kind: &str, known: &[&str]| -> Result<_> {
        let names = list.as_ref().map(|list| list.checked(kind, known));
        Ok(names.transpose()?.map(<[String]>::to_vec))
    };
    let is_in = |names: &Option<Vec<String>>, name: &String| {
        names.as_ref().is_none_or(|names| names.contains(name))
    };
    let known: Vec<_> = suites.iter().map(|suite| suite.name.as_str()).collect();
    let wanted = checked(&flags.suites, "suite", &known)?;
    let suites = suites.iter().filter(|suite| is_in(&wanted, &suite.name));
    let rows = suites.clone().flat_map(|suite| &suite.rows);
    let known: Vec<_> = rows.map(|row| row.id.as_str()).collect();
    let only = checked(&flags.only, "row", &known)?;
    let selected = suites.map(|suite| {
        let rows = suite.rows.iter().filter(|row| is_in(&only, &row.id));
        (suite, rows.collect::<Vec<_>>())
    });
    Ok(selected.filter(|(_, rows)| !rows.is_empty()).collect())
}

/// Replaces the section of one suite and keeps the others.
fn write_report(
    workspace: &Workspace,
    suites: &[Suite],
    suite: &Suite,
    run: &Run<'_>,
) -> Result<()> {
    let path = workspace.root().join(REPORT_PATH);
    // The file does not exist before the first run.
    let old = fs::read_to_string(&path).unwrap_or_default();
    let (machine, python) = (report::machine(workspace)?, peers::interpreter(workspace)?);
    let section = report::section(suite, &machine, &python, run);
    fs::write(&path, report::page(&old, suites, suite, &section))
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {REPORT_PATH}");
    Ok(())
}

/// Prints the rows that miss their target. Returns `true` if there are none.
fn report_missed(comparisons: &[Comparison<'_>]) -> bool {
    let all = comparisons.iter();
    let missed = all.filter(|comparison| comparison.is_met() == Some(false));
    let missed: Vec<_> = missed.map(|missed| missed.row.id.as_str()).collect();
    if !missed.is_empty() {
        eprintln!("error: target missed: {}", missed.join(", "));
    }
    missed.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::Figure;
    use crate::bench::suite::Target;

    #[test]
    fn suites_and_rows_are_selected_by_name() {
        let suites = suites().unwrap();
        let selected = |names: Option<&str>, only: Option<&str>| -> Result<Vec<_>> {
            let list = |text: Option<&str>| text.map(|list| list.parse().unwrap());
            let flags = flags::Bench {
                suites: list(names),
                only: list(only),
                no_peer: false,
                quick: false,
            };
            let selected = select(&suites, &flags)?.into_iter();
            Ok(selected
                .map(|(suite, rows)| (suite.name.as_str(), rows.len()))
                .collect())
        };
        let n_rows = |suite: &Suite| suite.rows.len();
        let all: Vec<_> = suites
            .iter()
            .map(|s| (s.name.as_str(), n_rows(s)))
            .collect();
        assert_eq!(selected(None, None).unwrap(), all);
        let local = *all.iter().find(|(name, _)| *name == "local").unwrap();
        assert_eq!(selected(Some("local"), None).unwrap(), [local]);
        let one = selected(None, Some("state_write")).unwrap();
        assert_eq!(one, [("state", 1)]);
        let both = selected(None, Some("local_read_py,state_write")).unwrap();
        assert_eq!(both, [("state", 1), ("local", 1)]);
        assert!(selected(None, Some("nope")).is_err());
        assert!(selected(Some("nope"), None).is_err());
        assert!(selected(Some("local"), Some("state_write")).is_err());
    }

    #[test]
    fn only_a_missed_target_is_a_failure() {
        let row = Row {
            id: "a".to_owned(),
            what: "b".to_owned(),
            peer: Some("python".to_owned()),
            target: Some(Target::Faster(20.0)),
        };
        let verdict = |peer| {
            report_missed(&[Comparison {
                row: &row,
                ours: Figure::exact(1.0),
                peer,
                rounds: None,
            }])
        };
        assert!(verdict(Ok(Figure::exact(20.0))));
        assert!(!verdict(Ok(Figure::exact(19.0))));
        assert!(verdict(Err("")));
    }
}
