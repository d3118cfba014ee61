//! Our side: runs a criterion target and reads its medians.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::bench::Times;
use crate::bench::suite::{Row, Suite};
use crate::process;
use crate::workspace::Workspace;

/// Runs the benchmarks of `rows` and returns their medians.
pub(super) fn measure(workspace: &Workspace, suite: &Suite, rows: &[&Row]) -> Result<Times> {
    let home = workspace.metadata()?.target_directory.join("criterion");
    for row in rows {
        forget(&home, row.id)?;
    }
    let mut command = workspace.cargo(["bench", "--package", suite.package])?;
    command
        .args(["--bench", suite.bench, "--", &filter(rows)])
        .env("CRITERION_HOME", &home);
    process::run(&mut command)?;
    rows.iter()
        .map(|row| Ok((row.id.to_owned(), median(&home, row.id)?)))
        .collect()
}

/// Removes the result of an earlier run, so that it is not mistaken for a new one.
fn forget(home: &Path, id: &str) -> Result<()> {
    let path = home.join(id);
    if path.exists() {
        fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

/// Returns a regular expression for exactly these ids.
fn filter(rows: &[&Row]) -> String {
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    format!("^({})$", ids.join("|"))
}

fn median(home: &Path, id: &str) -> Result<f64> {
    let path = home.join(id).join("new/estimates.json");
    let json = fs::read_to_string(&path).with_context(|| format!("no benchmark `{id}` was run"))?;
    parse_median(&json).with_context(|| format!("cannot parse {}", path.display()))
}

fn parse_median(json: &str) -> serde_json::Result<f64> {
    let estimates: Estimates = serde_json::from_str(json)?;
    Ok(estimates.median.point_estimate)
}

/// The used part of criterion's `estimates.json`. Times are in nanoseconds.
#[derive(Debug, Deserialize)]
struct Estimates {
    median: Estimate,
}

#[derive(Debug, Deserialize)]
struct Estimate {
    point_estimate: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::suite::STATE;

    #[test]
    fn median_is_read_from_the_estimates() {
        let json = r#"{"mean": {"point_estimate": 9.0, "standard_error": 0.1},
                       "median": {"confidence_interval": {"confidence_level": 0.95,
                       "lower_bound": 7.0, "upper_bound": 8.0},
                       "point_estimate": 7.5, "standard_error": 0.1}}"#;
        assert_eq!(parse_median(json).unwrap(), 7.5);
        assert!(parse_median("{}").is_err());
    }

    #[test]
    fn filter_matches_whole_ids() {
        let rows: Vec<_> = STATE.rows.iter().take(2).collect();
        assert_eq!(filter(&rows), "^(state_write|state_ls_20k)$");
    }
}
