//! Stage `coverage`: line coverage per crate, with a floor for the pure ones.
//!
//! cargo-tarpaulin is used with its ptrace engine because that needs no extra
//! toolchain component.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::test_all::cargo::PROPERTY_SEED;
use crate::test_all::{Ctx, Outcome};
use crate::tidy::is_test_source;
use crate::{process, table};

/// Crates whose behaviour does not depend on the machine, so that tests can reach every line.
///
/// `permissions` is not among them: some of its lines are reached only by tests on a real
/// directory, which are called `local_…` and are not traced. It is shown without a floor.
const PURE_CRATES: &[&str] = &["backend-core", "backend-state", "hashline"];

/// The least share of lines that the tests of a pure crate reach.
const PURE_MIN_PERCENT: f64 = 95.0;

/// A property test is silent for long, and being traced slows it down.
const TEST_TIMEOUT_SECONDS: &str = "600";

/// Packages that are not measured even with `--slow`: `examples` and `xtask` are no part of the
/// product, and the processes that the others start and kill must not be traced.
const NOT_TRACED: &[&str] = &[
    "agentbox",
    "backend-composite",
    "backend-docker",
    "backend-local",
    "backend-sync",
    "console-mcp",
    "console-rig",
    "console-testkit",
    "console-tools",
    "examples",
    "mounts",
    "sandbox-agent",
    "sandbox-wire",
    "xtask",
];

/// Tests that repeat what others reach anyway, and take minutes while traced, or
/// start processes.
const NOT_TRACED_TESTS: &[&str] = &[
    "each_defect_fails_exactly_the_cases_it_should",
    "a_million_files_work",
    "a_swapped_link_changes_nothing",
    "local_",
];

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let report = measure(ctx)?;
    let crates = by_crate(&report.files, ctx.workspace.root());
    let rows: Vec<_> = crates
        .iter()
        .map(|(name, lines)| row(name, *lines))
        .collect();
    println!(
        "\n{}",
        table::render(["crate", "lines", "covered", "share", "floor"], &rows)
    );
    let short = below_floor(&crates, PURE_CRATES);
    Ok(if short.is_empty() {
        Outcome::Passed(format!("{} in {} crates", total(&crates), crates.len()))
    } else {
        Outcome::Failed(short.join(", "))
    })
}

fn measure(ctx: &Ctx) -> Result<Report> {
    let output = ctx.workspace.cache("coverage");
    let mut command = ctx
        .workspace
        .cargo(["tarpaulin", "--engine", "ptrace", "--all-features"])?;
    select(ctx.slow, &mut command);
    // For cargo the unit tests are part of `--tests`; naming `--lib` too would run them twice.
    command.arg("--tests");
    command.args(["--timeout", TEST_TIMEOUT_SECONDS]);
    // Traced code is compiled with other flags: its own directory keeps both builds warm.
    command
        .arg("--skip-clean")
        .arg("--target-dir")
        .arg(ctx.workspace.cache("coverage-target"));
    command.args(["--out", "Json", "--output-dir"]).arg(&output);
    command.arg("--");
    for test in NOT_TRACED_TESTS {
        command.args(["--skip", test]);
    }
    // A report of an earlier run must not be taken for this one's.
    fs::create_dir_all(&output)?;
    let path = output.join("tarpaulin-report.json");
    if path.exists() {
        fs::remove_file(&path)?;
    }
    command.env(PROPERTY_SEED.0, PROPERTY_SEED.1);
    process::run(&mut command)?;
    let json = fs::read_to_string(&path)
        .with_context(|| format!("cargo-tarpaulin wrote no {}", path.display()))?;
    serde_json::from_str(&json).context("cargo-tarpaulin wrote an unknown kind of report")
}

/// The crates with a floor, or all that can be traced: their tests take minutes to build for it.
fn select(slow: bool, command: &mut Command) {
    if !slow {
        for package in PURE_CRATES {
            command.args(["--package", package, "--include-files"]);
            command.arg(format!("crates/{package}/src/*"));
        }
        return;
    }
    command.args(["--workspace", "--include-files", "crates/*/src/*"]);
    for package in NOT_TRACED {
        command.args(["--exclude", package, "--exclude-files"]);
        command.arg(format!("crates/{package}/*"));
    }
}

/// What cargo-tarpaulin writes as JSON.
#[derive(Debug, Deserialize)]
struct Report {
    files: Vec<FileCoverage>,
}

#[derive(Debug, Deserialize)]
struct FileCoverage {
    /// The components of the absolute path.
    path: Vec<String>,
    covered: usize,
    coverable: usize,
}

/// Lines that tests reach, out of those they could reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Lines {
    covered: usize,
    coverable: usize,
}

impl Lines {
    /// `None` if there is nothing to cover.
    fn percent(self) -> Option<f64> {
        let Self { covered, coverable } = self;
        (coverable > 0).then(|| 100.0 * covered as f64 / coverable as f64)
    }

    fn share(self) -> String {
        match self.percent() {
            // Rounded down: 94.96 must not be shown as having reached 95.
            Some(percent) => format!("{:.1} %", (percent * 10.0).floor() / 10.0),
            None => "no lines".to_owned(),
        }
    }
}

/// Sums the files under `crates/NAME/src`; what exists for tests is not code to cover.
fn by_crate(files: &[FileCoverage], root: &Path) -> BTreeMap<String, Lines> {
    let mut crates: BTreeMap<String, Lines> = BTreeMap::new();
    for file in files {
        let path: PathBuf = file.path.iter().collect();
        let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
        let parts: Vec<_> = relative.split('/').collect();
        if let ["crates", name, "src", ..] = parts[..]
            && !is_test_source(&relative)
        {
            let lines = crates.entry(name.to_owned()).or_default();
            lines.covered += file.covered;
            lines.coverable += file.coverable;
        }
    }
    crates
}

/// The pure crates under their floor; one that was not measured counts as under it.
fn below_floor(crates: &BTreeMap<String, Lines>, pure: &[&str]) -> Vec<String> {
    let shortfall = |name: &&str| {
        let lines = crates.get(*name).copied().unwrap_or_default();
        let is_enough = lines
            .percent()
            .is_some_and(|percent| percent >= PURE_MIN_PERCENT);
        (!is_enough).then(|| format!("{name}: {} < {PURE_MIN_PERCENT} %", lines.share()))
    };
    pure.iter().filter_map(shortfall).collect()
}

fn total(crates: &BTreeMap<String, Lines>) -> String {
    let covered = crates.values().map(|lines| lines.covered).sum();
    let coverable = crates.values().map(|lines| lines.coverable).sum();
    Lines { covered, coverable }.share()
}

fn row(name: &str, lines: Lines) -> [String; 5] {
    let floor = if PURE_CRATES.contains(&name) {
        format!("{PURE_MIN_PERCENT} %")
    } else {
        String::new()
    };
    let Lines { covered, coverable } = lines;
    [
        name.to_owned(),
        coverable.to_string(),
        covered.to_string(),
        lines.share(),
        floor,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{"files": [
        {"path": ["/", "r", "crates", "a", "src", "lib.rs"], "content": "", "traces": [], "covered": 7, "coverable": 8},
        {"path": ["/", "r", "crates", "a", "src", "x", "y.rs"], "content": "", "traces": [], "covered": 12, "coverable": 12},
        {"path": ["/", "r", "crates", "a", "tests", "it.rs"], "content": "", "traces": [], "covered": 9, "coverable": 9},
        {"path": ["/", "r", "crates", "a", "src", "x_tests.rs"], "content": "", "traces": [], "covered": 1, "coverable": 9},
        {"path": ["/", "r", "xtask", "src", "main.rs"], "content": "", "traces": [], "covered": 0, "coverable": 9},
        {"path": ["/", "r", "crates", "b", "src", "lib.rs"], "content": "", "traces": [], "covered": 0, "coverable": 0}
    ], "coverage": 1.0, "covered": 28, "coverable": 38}"#;

    fn crates() -> BTreeMap<String, Lines> {
        let report: Report = serde_json::from_str(REPORT).unwrap();
        by_crate(&report.files, Path::new("/r"))
    }

    #[test]
    fn sources_are_summed_by_crate() {
        let expected = [
            (
                "a".to_owned(),
                Lines {
                    covered: 19,
                    coverable: 20,
                },
            ),
            (
                "b".to_owned(),
                Lines {
                    covered: 0,
                    coverable: 0,
                },
            ),
        ];
        assert_eq!(crates(), BTreeMap::from(expected));
        assert_eq!(total(&crates()), "95.0 %");
    }

    #[test]
    fn a_pure_crate_needs_its_floor() {
        assert_eq!(below_floor(&crates(), &["a"]), [""; 0]);
        let lines = Lines {
            covered: 949,
            coverable: 1000,
        };
        let crates = BTreeMap::from([("a".to_owned(), lines)]);
        assert_eq!(below_floor(&crates, &["a"]), ["a: 94.9 % < 95 %"]);
    }

    #[test]
    fn a_pure_crate_without_a_measure_is_below_its_floor() {
        let expected = ["b: no lines < 95 %", "missing: no lines < 95 %"];
        assert_eq!(below_floor(&crates(), &["b", "missing"]), expected);
    }

    #[test]
    fn share_is_rounded_down() {
        assert_eq!(
            Lines {
                covered: 9496,
                coverable: 10_000
            }
            .share(),
            "94.9 %"
        );
        assert_eq!(
            Lines {
                covered: 3,
                coverable: 3
            }
            .share(),
            "100.0 %"
        );
    }
}
