//! The results of the stages: the table and the counts below it.

use std::fmt;
use std::time::Duration;

use crate::table;
use crate::test_all::stage::Outcome;

/// The result of one stage.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) outcome: Outcome,
    pub(super) wall: Duration,
    /// CPU time of all processes that were started and have ended. It does not include
    /// work that a daemon does for a stage, such as in containers.
    pub(super) cpu: Duration,
}

impl Entry {
    /// Returns an entry for a stage that has done nothing yet.
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            outcome: Outcome::Passed(String::new()),
            wall: Duration::ZERO,
            cpu: Duration::ZERO,
        }
    }

    /// Parses the row of a stage in the table that another process printed.
    pub(super) fn parse(name: &'static str, row: &str) -> Option<Self> {
        let cells = row.strip_prefix("| ")?.strip_suffix(" |")?;
        let mut cells = cells.splitn(5, " | ").map(str::trim);
        let mut next = || cells.next();
        if next()? != name {
            return None;
        }
        let result = next()?;
        let mut time = || {
            let seconds = next()?.strip_suffix(" s")?.parse().ok()?;
            Some(Duration::from_secs_f64(seconds))
        };
        let (wall, cpu) = (time()?, time()?);
        let note = next()?.to_owned();
        let outcome = match result {
            "ok" => Outcome::Passed(note),
            "skipped" => Outcome::Skipped(note),
            _ => Outcome::Failed(note),
        };
        Some(Self {
            name,
            outcome,
            wall,
            cpu,
        })
    }

    fn row(&self) -> [String; 5] {
        let (result, note) = match &self.outcome {
            Outcome::Passed(note) => ("ok", note),
            Outcome::Failed(note) => ("FAILED", note),
            Outcome::Skipped(note) => ("skipped", note),
        };
        [
            self.name.to_owned(),
            result.to_owned(),
            seconds(self.wall),
            seconds(self.cpu),
            note.clone(),
        ]
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn minutes(time: Duration) -> String {
    format!("{:.1} min", time.as_secs_f64() / 60.0)
}

/// All results so far. Its `Display` is the end of a run's output.
#[derive(Debug, Default)]
pub(super) struct Report {
    entries: Vec<Entry>,
    /// The time from the start to the end: less than the sum where stages overlap.
    pub(super) wall: Duration,
}

impl Report {
    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    pub(super) fn is_success(&self) -> bool {
        self.count(|outcome| matches!(outcome, Outcome::Failed(_))) == 0
    }

    fn count(&self, is_counted: fn(&Outcome) -> bool) -> usize {
        self.entries
            .iter()
            .filter(|entry| is_counted(&entry.outcome))
            .count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<_> = self.entries.iter().map(Entry::row).collect();
        writeln!(
            f,
            "{}",
            table::render(["stage", "result", "wall", "cpu", "note"], &rows)
        )?;
        let cpu = self.entries.iter().map(|entry| entry.cpu).sum();
        let wall = minutes(self.wall);
        writeln!(f, "time: {wall} wall, {} cpu", minutes(cpu))?;
        let passed = self.count(|outcome| matches!(outcome, Outcome::Passed(_)));
        let failed = self.count(|outcome| matches!(outcome, Outcome::Failed(_)));
        let skipped = self.count(|outcome| matches!(outcome, Outcome::Skipped(_)));
        write!(
            f,
            "stages: {passed} passed, {failed} failed, {skipped} skipped"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcomes: &[Outcome]) -> Report {
        let mut report = Report::default();
        for outcome in outcomes {
            let wall = Duration::from_millis(1250);
            report.push(Entry {
                outcome: outcome.clone(),
                wall,
                cpu: 2 * wall,
                ..Entry::new("test")
            });
            report.wall += wall;
        }
        report
    }

    #[test]
    fn ends_with_the_table_and_the_counts() {
        let passed = Outcome::Passed("172 passed".to_owned());
        let failed = Outcome::Failed("clippy".to_owned());
        let skipped = Outcome::Skipped("no fuzz".to_owned());
        let expected = "\
| stage | result  | wall  | cpu   | note       |
| ----- | ------- | ----- | ----- | ---------- |
| test  | ok      | 1.2 s | 2.5 s | 172 passed |
| test  | FAILED  | 1.2 s | 2.5 s | clippy     |
| test  | skipped | 1.2 s | 2.5 s | no fuzz    |

time: 0.1 min wall, 0.1 min cpu
stages: 1 passed, 1 failed, 1 skipped";
        assert_eq!(report(&[passed, failed, skipped]).to_string(), expected);
    }

    #[test]
    fn a_printed_row_is_parsed() {
        let failed = Outcome::Failed("a | b".to_owned());
        let skipped = Outcome::Skipped(String::new());
        for outcome in [Outcome::Passed("3 run".to_owned()), failed, skipped] {
            let table = report(std::slice::from_ref(&outcome)).to_string();
            let find = |name| table.lines().find_map(|row| Entry::parse(name, row));
            let entry = find("test").unwrap();
            assert_eq!(entry.outcome, outcome);
            assert_eq!(entry.cpu, Duration::from_millis(2500));
            assert!(find("tes").is_none());
        }
    }

    #[test]
    fn only_a_failure_is_no_success() {
        let passed = Outcome::Passed(String::new());
        let skipped = Outcome::Skipped(String::new());
        assert!(report(&[passed, skipped]).is_success());
        assert!(!report(&[Outcome::Failed(String::new())]).is_success());
    }
}
