//! Tests of the comparison.

use super::*;
use crate::bench::suite::suites;

fn compared<T>(
    id: &str,
    json: &str,
    no_peer: bool,
    read: impl Fn(Comparison<'_>) -> T,
) -> Result<T> {
    let suites = suites()?;
    let mut rows = suites.iter().flat_map(|suite| &suite.rows);
    let row = rows.find(|row| row.id == id).unwrap();
    compare(row, &[serde_json::from_str(json).unwrap()], no_peer).map(read)
}

#[test]
fn a_line_becomes_a_comparison() {
    let json = r#"{"id": "local_read_py", "rounds": 9,
                   "ours": {"median": 5, "p90": 6, "size": 50},
                   "peer": {"median": 20, "p90": 30, "size": 51}}"#;
    let theirs = Figure {
        median: 20.0,
        p90: Some(30.0),
        size: Some(51),
    };
    compared("local_read_py", json, false, |comparison| {
        assert_eq!(comparison.ours.median, 5.0);
        assert_eq!(comparison.ours.size, Some(50));
        assert_eq!(comparison.peer, Ok(theirs));
        assert_eq!(comparison.rounds, Some(9));
        assert_eq!(comparison.is_met(), Some(true));
    })
    .unwrap();
}

#[test]
fn memory_is_what_lies_above_idle() {
    let json = r#"{"id": "local_memory_big", "hits": 200,
                   "idle_bytes": 4000000, "peak_bytes": 9000000}"#;
    compared("local_memory_big", json, false, |comparison| {
        assert_eq!(comparison.ours.median, 5e6);
        assert_eq!(comparison.ours.size, Some(200));
        assert_eq!(comparison.peer, Err(""));
        assert_eq!(comparison.is_met(), Some(true));
    })
    .unwrap();
}

#[test]
fn what_is_missing_is_told() {
    let json = r#"{"id": "local_read_py", "error": "no peer",
                   "ours": {"median": 5, "p90": 6, "size": 50}}"#;
    let peer = |id, no_peer| compared(id, json, no_peer, |comparison| comparison.peer);
    assert_eq!(peer("local_read_py", true).unwrap(), Err("not measured"));
    assert_eq!(peer("local_read_py", false).unwrap(), Err("not available"));
    let json = r#"{"id": "local_read_py", "error": "there is no such row"}"#;
    let error = |id| compared(id, json, false, |_| ()).unwrap_err().to_string();
    assert!(error("local_read_py").ends_with("there is no such row"));
    assert!(error("local_edit_py").ends_with("was not measured"));
}

#[test]
fn median_is_read_from_the_estimates() {
    let json = r#"{"mean": {"point_estimate": 9.0, "standard_error": 0.1},
                   "median": {"confidence_interval": {"confidence_level": 0.95,
                   "lower_bound": 7.0, "upper_bound": 8.0},
                   "point_estimate": 7.5, "standard_error": 0.1}}"#;
    assert_eq!(median(json), Some(7.5));
    assert_eq!(median("{}"), None);
}

#[test]
fn filter_matches_whole_ids() {
    let suites = suites().unwrap();
    let rows: Vec<_> = suites[0].rows.iter().take(2).collect();
    assert_eq!(filter(&rows), "^(state_write|state_ls_20k)$");
}
