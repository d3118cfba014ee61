//! Tests of the report.

use super::*;
use crate::bench::suite::suites;

/// Reads a line of a benchmark for a row of `suite`.
fn compared(suite: &Suite, line: &str) -> Comparison {
    let mut comparison: Comparison = serde_json::from_str(line).unwrap();
    let mut rows = suite.rows.iter();
    let row = rows.find(|row| row.id == comparison.id);
    comparison.row = row.unwrap().clone();
    comparison
}

fn run(suite: &Suite, lines: &[&str]) -> Run {
    Run {
        comparisons: lines.iter().map(|line| compared(suite, line)).collect(),
        facts: vec!["Tree: small".to_owned()],
    }
}

fn section_of(suite: &Suite, run: &Run) -> String {
    let machine = ["Date: 2026-01-31", "CPU: Some CPU, 2 cores"].map(str::to_owned);
    section(suite, &machine, "Python 3.12.1", run)
}

#[test]
fn a_section_says_how_its_table_was_made() {
    let suites = suites().unwrap();
    let lines = [
        r#"{"id": "local_read_py", "ours": {"median": 1500, "p90": 2e3, "size": 50},
            "peer": {"median": 30000, "size": 50}, "rounds": 12}"#,
        r#"{"id": "local_glob_rs_rg", "ours": {"median": 1500, "size": 7},
            "peer": {"median": 750, "p90": 8e2, "size": 8}, "rounds": 9}"#,
        r#"{"id": "local_write_py", "ours": {"median": 1500}}"#,
        r#"{"id": "local_memory_big", "ours": {"median": 5040000, "p90": 1, "size": 1}}"#,
    ];
    let expected = "
## A local directory

- Date: 2026-01-31
- CPU: Some CPU, 2 cores
- Peers: pydantic-ai-backend 0.2.29 on Python 3.12.1, ripgrep 15.2.0, a bare tokio::process, a confined command without a view
- Tree: small

We and the peer are called by turns, each row in 9 to 12 rounds.
The workloads are described in [the benchmark](../crates/backend-local/benches/local.rs).

| row              | workload                                         | peer   | ours                  | theirs              | ratio | asked         | met |
| ---------------- | ------------------------------------------------ | ------ | --------------------- | ------------------- | ----- | ------------- | --- |
| local_read_py    | read a file of 50 lines                          | python | 1.50 µs (p90 2.00 µs) | 30.0 µs             | 20.0x | 3.00x         | yes |
| local_glob_rs_rg | glob `**/*.rs`                                   | rg     | 1.50 µs               | 750 ns (p90 800 ns) | 0.50x | 0.77x         | NO  |
| local_write_py   | write 1 KiB over a file                          | python | 1.50 µs               |                     |       |               |     |
| local_memory_big | memory above idle: grep a file of 2 GB, 200 hits |        | 5.0 MB                |                     |       | under 64.0 MB | yes |

The number of results differs in:

- `local_glob_rs_rg`: ours 7, rg 8
";
    let turns = run(&suites[1], &lines);
    assert_eq!(section_of(&suites[1], &turns), expected);
    assert_eq!(missed(&turns), ["local_glob_rs_rg"]);
    let apart = section_of(&suites[0], &Run::default());
    assert!(apart.contains("\n\nWe are measured first, then the peer.\nThe workloads"));
    assert!(!apart.contains("differs"));
    let composite = suites.iter().find(|suite| suite.name == "composite");
    let (composite, none) = (composite.unwrap(), composite.unwrap().peers().is_empty());
    assert!(none && !section_of(composite, &Run::default()).contains("peer."));
}

#[test]
fn target_is_met_from_its_ratio_on_and_below_its_limit() {
    let suites = suites().unwrap();
    let is_met = |id: &str, ours: f64, peer: Option<f64>| {
        let line = serde_json::json!({ "id": id, "ours": { "median": ours },
            "peer": peer.map(|median| serde_json::json!({ "median": median })) });
        compared(&suites[1], &line.to_string()).is_met()
    };
    assert_eq!(is_met("local_read_py", 1.0, Some(3.0)), Some(true));
    assert_eq!(is_met("local_read_py", 1.0, Some(2.99)), Some(false));
    assert_eq!(is_met("local_read_py", 1.0, None), None);
    assert_eq!(is_met("local_grep_self_rg", 100.0, Some(80.0)), Some(true));
    assert_eq!(is_met("local_grep_self_rg", 100.0, Some(79.9)), Some(false));
    assert_eq!(is_met("local_write_py", 1.0, Some(1.0)), None);
    assert_eq!(is_met("local_memory_big", 63e6, None), Some(true));
    assert_eq!(is_met("local_memory_big", 64e6, None), Some(false));
}

#[test]
fn times_have_three_digits() {
    let times = [0.5, 812.4, 1_234.0, 45_600.0, 7.5e6, 1.2e10].map(duration);
    let expected = [
        "0.50 ns", "812 ns", "1.23 µs", "45.6 µs", "7.50 ms", "12.0 s",
    ];
    assert_eq!(times, expected);
}

#[test]
fn speeds_and_amounts_are_shown_as_such() {
    let row = Row {
        mib: Some(64.0),
        under: Some(8e8),
        ..Row::default()
    };
    let comparison = Comparison {
        row,
        ours: Figure {
            median: 5e8,
            p90: Some(6.4e8),
            size: None,
        },
        ..Comparison::default()
    };
    let cells = comparison.cells();
    assert_eq!(cells[3], "128 MiB/s (p90 100 MiB/s)");
    assert_eq!((&*cells[6], &*cells[7]), ("over 80 MiB/s", "yes"));
    let row = Row {
        unit: Some("requests".to_owned()),
        ..Row::default()
    };
    assert_eq!(amount(&row, 6.125), "6.12 requests");
}

#[test]
fn a_page_keeps_the_sections_of_other_suites() {
    let suites = suites().unwrap();
    let section = |n: usize, text: &str| format!("{SECTION}{}\n\n{text}\n", suites[n].title);
    let put = |old: &str, section: &str| page(old, &suites, section);
    let local = section(1, "local");
    let first = put("# Something older\n", &local);
    assert_eq!(first, format!("{HEAD}{local}"));
    let both = put(&first, &section(0, "one"));
    assert_eq!(both, format!("{HEAD}{}{local}", section(0, "one")));
    let newer = put(&both, &section(0, "two"));
    assert_eq!(newer, format!("{HEAD}{}{local}", section(0, "two")));
    assert_eq!(put(&newer, &local), newer);
}
