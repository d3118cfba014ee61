//! The figures of a section of `docs/benchmarks.md`, read from its table.

use std::collections::BTreeMap;

/// The figures of each row, by its id.
pub(super) type Figures = BTreeMap<String, Figure>;

/// The figures of one row: nanoseconds, bytes, or an amount of its unit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    pub(super) ours: f64,
    pub(super) theirs: Option<f64>,
    pub(super) ratio: Option<f64>,
    pub(super) shown_ratio: String,
    pub(super) is_missed: bool,
}

/// Reads the table of a section.
pub(super) fn figures(section: &str) -> Figures {
    let rows = section.lines().filter(|line| line.starts_with("| "));
    rows.filter_map(|line| {
        let [id, _, _, ours, theirs, ratio, _, met] = cells(line)?;
        let figure = Figure {
            ours: amount(&ours)?,
            theirs: amount(&theirs),
            ratio: ratio.strip_suffix('x').and_then(|ratio| ratio.parse().ok()),
            shown_ratio: ratio,
            is_missed: met == "NO",
        };
        Some((id, figure))
    })
    .collect()
}

/// Returns the cells of a line of a table. A `|` in a cell follows a backslash.
fn cells(line: &str) -> Option<[String; 8]> {
    let line = line.replace("\\|", "\u{0}");
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let cells = inner
        .split('|')
        .map(|cell| cell.trim().replace('\u{0}', "|"));
    cells.collect::<Vec<_>>().try_into().ok()
}

/// Reads a time, an amount of memory or of something else. The 90th percentile is left out.
fn amount(cell: &str) -> Option<f64> {
    let (median, _) = cell.split_once(" (").unwrap_or((cell, ""));
    let (value, unit) = median.split_once(' ')?;
    let factor = match unit {
        "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "MB" => 1e6,
        _ => 1.0,
    };
    Some(value.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_is_written() {
        let line =
            "| a | grep `x\\|y` | rg | 1.34 ms (p90 1.90 ms) | 202 ms | 150.7x | 0.91x | NO |";
        let read = figures(&format!("## T\n\n{line}\n"));
        let figure = &read["a"];
        assert_eq!(figure.theirs, Some(202e6));
        assert!((figure.ours - 1.34e6).abs() < 1e-3);
        assert_eq!((figure.ratio, figure.is_missed), (Some(150.7), true));
        assert_eq!(amount("64.0 MB"), Some(64e6));
        assert_eq!(amount("5.00 requests"), Some(5.0));
        assert_eq!(amount(""), None);
        assert!(figures("| row | workload |\n| --- | --- |\n").is_empty());
    }
}
