//! The columns of `docs/capabilities.md`: a backend's capabilities, and the cases that run on
//! it.
//!
//! `UPDATE_CAPABILITIES=1` in the environment rewrites a column.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use backend_core::{BackendInfo, Containment};

use crate::CASES;
use crate::case::Case;
use crate::fixture::{Fixture, Need};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/capabilities.md");

/// A table: the labels of its rows, with the cell of one column.
type Cells = Vec<(String, String)>;

const NEEDS: [Need; 14] = [
    Need::Write,
    Need::Times,
    Need::SetTime,
    Need::Links,
    Need::Fifo,
    Need::RawName,
    Need::Modes,
    Need::Outside,
    Need::ReadOnly,
    Need::Commands,
    Need::Ports,
    Need::Watch,
    Need::Terminals,
    Need::Views,
];

/// Returns the column of each table for a fixture.
fn columns(fixture: &dyn Fixture) -> [Cells; 3] {
    let unmet = |case: &Case| {
        let mut needs = case.needs.iter().copied();
        needs.find(|need| !fixture.provides(*need))
    };
    let mut groups: Vec<(&str, usize, usize)> = Vec::new();
    let mut skipped: BTreeMap<String, usize> = BTreeMap::new();
    for case in CASES {
        if groups.last().is_none_or(|(group, ..)| *group != case.group) {
            groups.push((case.group, 0, 0));
        }
        let need = unmet(case);
        if let Some((_, run, all)) = groups.last_mut() {
            *run += usize::from(need.is_none());
            *all += 1;
        }
        if let Some(need) = need {
            *skipped.entry(need.to_string()).or_default() += 1;
        }
    }
    let sum = |of: fn(&(&str, usize, usize)) -> usize| groups.iter().map(of).sum();
    let all = ("all", sum(|group| group.1), sum(|group| group.2));
    let cell = |(group, run, all): &(&str, usize, usize)| {
        let of = if run == all {
            String::new()
        } else {
            format!(" of {all}")
        };
        ((*group).to_owned(), format!("{run}{of}"))
    };
    let reason = |need: Need| {
        let count = skipped.get(&need.to_string());
        let count = count.map_or(String::new(), ToString::to_string);
        (need.to_string(), count)
    };
    [
        capabilities(&fixture.backend().info()),
        groups.iter().chain([&all]).map(cell).collect(),
        NEEDS.into_iter().map(reason).collect(),
    ]
}

fn capabilities(info: &BackendInfo) -> Cells {
    let has = info.capabilities;
    let all = [
        ("writable", has.writable),
        ("links", has.links),
        ("modes", has.modes),
        ("times", has.times),
        ("durable", has.durable),
        ("commands", has.commands),
        ("ports", has.ports),
        ("watch", has.watch),
        ("terminals", has.terminals),
    ];
    let containment = match info.containment {
        Containment::NoCommands => "none",
        Containment::BestEffort => "best effort",
        Containment::Supervised => "supervised",
        Containment::Isolated => "isolated",
        _ => "other",
    };
    let cells = all.map(|(name, has)| (name, if has { "yes" } else { "" }));
    let cells = cells.into_iter().chain([("containment", containment)]);
    let cells = cells.chain([("enforcement", info.enforcement.as_str())]);
    let own = |(name, cell): (&str, &str)| (name.to_owned(), cell.to_owned());
    cells.map(own).collect()
}

/// Returns the cells of a line of a table.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim_start_matches('|').trim_end_matches('|');
    let cells = inner.split('|').map(|cell| cell.trim().replace('`', ""));
    cells.collect()
}

/// Returns the page with one column of each table that has it. Other cells of new rows are
/// empty.
fn updated(page: &str, column: &str, tables: &[Cells]) -> String {
    let mut text = String::new();
    let mut tables = tables.iter();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        let _ = writeln!(text, "{line}");
        let header = cells(line);
        let at = header.iter().position(|name| name == column);
        let Some((at, table)) = at
            .filter(|_| line.starts_with('|'))
            .and_then(|at| Some((at, tables.next()?)))
        else {
            continue;
        };
        let _ = writeln!(text, "{}", lines.next().unwrap_or_default());
        let mut old: BTreeMap<String, Vec<String>> = BTreeMap::new();
        while let Some(line) = lines.next_if(|line| line.starts_with('|')) {
            let mut cells = cells(line).into_iter();
            old.insert(cells.next().unwrap_or_default(), cells.collect());
        }
        for (label, cell) in table {
            let mut row = old.remove(label).unwrap_or_default();
            row.resize(header.len() - 1, String::new());
            if let Some(there) = row.get_mut(at - 1) {
                there.clone_from(cell);
            }
            let _ = writeln!(text, "| {label} | {} |", row.join(" | "));
        }
    }
    text
}

/// Checks the column of a backend in `docs/capabilities.md`.
///
/// # Panics
///
/// If it is not what the fixture's backend tells.
#[doc(hidden)]
#[expect(
    clippy::panic,
    clippy::disallowed_methods,
    reason = "this is how a test fails, and how its page is written"
)]
pub fn test_column(column: &str, fixture: &dyn Fixture) {
    let page = match std::fs::read_to_string(PAGE) {
        Ok(page) => page,
        Err(error) => panic!("{PAGE} cannot be read: {error}"),
    };
    let tables = columns(fixture);
    let current = updated(&page, column, &tables);
    if std::env::var_os("UPDATE_CAPABILITIES").is_some() {
        assert!(std::fs::write(PAGE, current).is_ok(), "{PAGE}");
        return;
    }
    let headers = page.lines().filter(|line| line.starts_with('|'));
    let named = headers.filter(|line| cells(line).iter().any(|name| name == column));
    assert_eq!(named.count(), tables.len(), "the tables with {column:?}");
    if page != current {
        panic!(
            "the column {column:?} of docs/capabilities.md is not current; run this test with \
             UPDATE_CAPABILITIES=1 and look at the change"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_replaced_and_the_others_stay() {
        let page =
            "# T\n\n| a | one | two |\n|---|---|---|\n| x | 1 | 2 |\n| old | 3 | 4 |\n\nend\n";
        let own = |label: &str, cell: &str| (label.to_owned(), cell.to_owned());
        let table = vec![own("x", "9"), own("new", "7")];
        let expected =
            "# T\n\n| a | one | two |\n|---|---|---|\n| x | 1 | 9 |\n| new |  | 7 |\n\nend\n";
        assert_eq!(updated(page, "two", &[table]), expected);
        assert_eq!(updated(page, "three", &[Vec::new()]), page);
    }
}
