//! `cargo xtask bench`: our benchmarks compared with peers that do the same work.
//!
//! A suite is measured in one of two ways. Either criterion measures our side and a
//! script in `xtask/bench/` the peer's, or the benchmark target calls both in turns.
//! All sides use the ids of `xtask/bench/suites.toml` and report medians.

mod figures;
mod measure;
mod plot;
mod plots;
mod report;
mod suite;

use std::fs;

use anyhow::{Context as _, Result, ensure};

pub(crate) use crate::bench::plots::Drawn;

use crate::bench::report::Run;
use crate::bench::suite::{Suite, suites};
use crate::flags;
use crate::workspace::Workspace;

/// The file that a complete run of a suite updates.
pub(crate) const REPORT_PATH: &str = plots::PAGE;

/// The name of all suites together.
const ALL: &str = "all";

/// Runs the benchmarks, prints the tables, and returns whether every target was met.
pub(crate) fn run(flags: &flags::Bench) -> Result<bool> {
    let workspace = Workspace::discover()?;
    if flags.plots {
        return draw(&workspace);
    }
    let is_named = flags.only.is_some() || flags.suites.as_ref().is_some_and(|list| !is_all(list));
    let is_partial = flags.no_peer || flags.quick || flags.only.is_some();
    let mut is_right = true;
    let mut left_out = Vec::new();
    for suite in select(flags)? {
        let name = &suite.name;
        if let Some(why) = measure::obstacle(&workspace, &suite, is_named)? {
            ensure!(!is_named, "cannot measure the suite {name}: {why}");
            left_out.push(format!("the suite {name} is left out: {why}"));
            continue;
        }
        let run = measure::run(&workspace, &suite, flags.quick)
            .with_context(|| format!("cannot measure the suite {name}"));
        let run = match run {
            Ok(run) => run,
            Err(error) if is_named => return Err(error),
            Err(error) => {
                left_out.push(format!("{error:#}"));
                is_right = false;
                continue;
            }
        };
        println!("\n{}", report::results(&run));
        if is_partial {
            println!("{REPORT_PATH} is written by a whole run over all rows with the peers only");
        } else {
            write_report(&workspace, &suite, &run)?;
        }
        let missed = report::missed(&run);
        if !missed.is_empty() {
            eprintln!("error: target missed: {}", missed.join(", "));
            is_right = false;
        }
    }
    // At the end, where they are seen.
    for reason in left_out {
        println!("{reason}");
    }
    Ok(is_right)
}

fn is_all(list: &flags::List) -> bool {
    list.checked("suite", &[ALL]).is_ok()
}

/// Draws the plots of the figures that were measured.
fn draw(workspace: &Workspace) -> Result<bool> {
    let path = workspace.root().join(REPORT_PATH);
    let page = fs::read_to_string(&path);
    let page = page.with_context(|| format!("cannot read {}", path.display()))?;
    let drawn = Drawn::of(&page)?;
    let changed = drawn.differences(workspace.root())?;
    drawn.write(workspace.root())?;
    for path in &changed {
        println!("wrote {path}");
    }
    println!(
        "{} of the plots and their page were not current",
        changed.len()
    );
    Ok(true)
}

/// Returns the suites selected by the flags, with the selected rows.
fn select(flags: &flags::Bench) -> Result<Vec<Suite>> {
    let mut suites = suites()?;
    if let Some(list) = flags.suites.as_ref().filter(|list| !is_all(list)) {
        let known: Vec<_> = suites.iter().map(|suite| suite.name.as_str()).collect();
        let wanted = list.checked("suite", &known)?;
        suites.retain(|suite| wanted.contains(&suite.name));
    }
    if let Some(list) = &flags.only {
        let known: Vec<_> = suites.iter().flat_map(Suite::ids).collect();
        let wanted = list.checked("row", &known)?;
        for suite in &mut suites {
            suite.rows.retain(|row| wanted.contains(&row.id));
        }
        suites.retain(|suite| !suite.rows.is_empty());
    }
    if flags.quick && flags.only.is_none() {
        let rows = suites.iter_mut().map(|suite| &mut suite.rows);
        rows.for_each(|rows| rows.retain(|row| !row.slow));
    }
    if flags.no_peer {
        let rows = suites.iter_mut().flat_map(|suite| &mut suite.rows);
        rows.for_each(|row| row.peer = None);
    }
    Ok(suites)
}

/// Replaces the section of one suite and keeps the others.
fn write_report(workspace: &Workspace, suite: &Suite, run: &Run) -> Result<()> {
    let path = workspace.root().join(REPORT_PATH);
    // The file does not exist before the first run.
    let old = fs::read_to_string(&path).unwrap_or_default();
    let machine = report::machine(workspace)?;
    let python = match suite.peers().contains(&"python") {
        true => report::version(workspace, &measure::python(workspace)?)?,
        false => String::new(),
    };
    let section = report::section(suite, &machine, &python, run);
    let page = report::page(&old, &suites()?, &section);
    Drawn::of(&page)?.write(workspace.root())?;
    println!("wrote {REPORT_PATH} and its plots");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_and_rows_are_selected_by_name() {
        let size = |suite: Suite| (suite.name, suite.rows.len());
        let selected = |suites: &str, only: &str| -> Result<Vec<_>> {
            let flags = flags::Bench {
                suites: suites.parse().ok(),
                only: only.parse().ok(),
                no_peer: false,
                quick: false,
                plots: false,
            };
            Ok(select(&flags)?.into_iter().map(size).collect())
        };
        let all: Vec<_> = suites().unwrap().into_iter().map(size).collect();
        assert_eq!(selected("", "").unwrap(), all);
        assert_eq!(selected("all", "").unwrap(), all);
        let (state, local) = (("state".to_owned(), 1), ("local".to_owned(), 1));
        assert_eq!(selected("local", "").unwrap(), all[1..2]);
        assert_eq!(all[1].0, "local");
        let both = [state, local];
        assert_eq!(selected("", "state_write").unwrap(), both[..1]);
        assert_eq!(selected("", "local_read_py,state_write").unwrap(), both);
        for (suites, only) in [("", "nope"), ("nope", ""), ("local", "state_write")] {
            assert!(selected(suites, only).is_err(), "{suites} {only}");
        }
    }
}
