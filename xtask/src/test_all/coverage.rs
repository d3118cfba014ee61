//! Stage `coverage`: line coverage of crates that have a minimum.
//!
//! The tests are built with `-C instrument-coverage` and record the code they run. The
//! LLVM tools of the toolchain convert that into lines.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::metadata::Package;
use crate::test_all::cargo::{TestProgram, run_tests, seed};
use crate::test_all::{Ctx, Outcome};
use crate::tidy::is_test_source;
use crate::{process, table};

/// Directories of crates whose behaviour does not depend on the machine, so that tests
/// can reach every line.
const PURE_CRATES: &[&str] = &["backend-core", "backend-state", "hashline"];

/// The minimum line coverage of a pure crate.
const PURE_MIN_PERCENT: f64 = 95.0;

/// Compiles members of the workspace, but none of their dependencies, with
/// instrumentation.
const WRAPPER: &str = "#!/bin/sh\nexec \"$@\" -C instrument-coverage\n";

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let Some(tools) = ctx.workspace.llvm_tools()? else {
        return Ok(Outcome::Skipped(
            "llvm-tools is not installed; --provision installs it".to_owned(),
        ));
    };
    let directory = ctx.workspace.cache("coverage");
    // Counts of an earlier run must not be mixed with those of this run.
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    fs::create_dir_all(&directory)?;
    let programs = match test(ctx, &directory)? {
        Ok(programs) => programs,
        Err(failed) => return Ok(failed),
    };
    let counts = export(ctx, &tools, &directory, &programs)?;
    let crates = by_crate(&counts, ctx.workspace.root())?;
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

/// Runs the tests. Returns their programs, or the failure.
fn test(ctx: &Ctx, directory: &Path) -> Result<Result<Vec<PathBuf>, Outcome>> {
    let metadata = ctx.workspace.metadata()?;
    let is_pure = |package: &&Package| PURE_CRATES.iter().any(|name| package.dir().ends_with(name));
    let packages = metadata.packages.iter().filter(is_pure);
    let packages: Vec<_> = packages.map(|package| &package.name).collect();
    let wrapper = directory.join("rustc");
    fs::write(&wrapper, WRAPPER)?;
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    let cargo = |args: &[&str]| -> Result<Command> {
        let mut command = ctx
            .workspace
            .cargo(["test", "--all-features", "--lib", "--tests"])?;
        for package in &packages {
            command.args(["--package", package]);
        }
        command.args(args).arg("--target-dir");
        command.arg(ctx.workspace.cache("coverage-target"));
        command.env("RUSTC_WORKSPACE_WRAPPER", &wrapper);
        // One file per program, shared by its runs.
        command.env("LLVM_PROFILE_FILE", directory.join("%m.profraw"));
        seed(ctx, &mut command);
        Ok(command)
    };
    let run = run_tests(&mut cargo(&["--no-fail-fast"])?)?;
    match run.outcome() {
        Outcome::Passed(_) => {}
        failed => return Ok(Err(failed)),
    }
    let built = process::output(&mut cargo(&["--no-run", "--message-format", "json"])?)?;
    let programs = TestProgram::all(&built).into_iter();
    Ok(Ok(programs.map(|program| program.executable).collect()))
}

/// Exports the execution count of each line in lcov format.
fn export(ctx: &Ctx, tools: &Path, directory: &Path, programs: &[PathBuf]) -> Result<String> {
    let merged = directory.join("merged.profdata");
    let mut merge = ctx.workspace.command(tools.join("llvm-profdata"))?;
    merge.args(["merge", "--sparse", "--output"]).arg(&merged);
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "profraw")
        {
            merge.arg(path);
        }
    }
    process::run(&mut merge)?;
    let mut export = ctx.workspace.command(tools.join("llvm-cov"))?;
    export.args(["export", "--format=lcov", "--instr-profile"]);
    export.arg(merged);
    for program in programs {
        export.arg("--object").arg(program);
    }
    export.arg("--sources");
    let crates = ctx.workspace.root().join("crates");
    for name in PURE_CRATES {
        export.arg(crates.join(name).join("src"));
    }
    process::output(&mut export)
}

/// The number of covered lines and of all coverable lines.
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
            // Rounded down: 94.96 must not be shown as 95.
            Some(percent) => format!("{:.1} %", (percent * 10.0).floor() / 10.0),
            None => "no lines".to_owned(),
        }
    }
}

/// Sums up the files under `crates/NAME/src`. Test code is left out.
fn by_crate(lcov: &str, root: &Path) -> Result<BTreeMap<String, Lines>> {
    let mut crates: BTreeMap<String, Lines> = BTreeMap::new();
    let mut file: Option<(String, usize)> = None;
    for record in lcov.lines() {
        if let Some(path) = record.strip_prefix("SF:") {
            file = measured(Path::new(path), root)?;
        } else if let Some(count) = record.strip_prefix("DA:")
            && let Some((name, tests_from)) = &file
        {
            let (line, count) = count.split_once(',').context("llvm-cov wrote no lcov")?;
            if line.parse::<usize>()? < *tests_from {
                let lines = crates.entry(name.clone()).or_default();
                lines.coverable += 1;
                lines.covered += usize::from(count != "0");
            }
        }
    }
    Ok(crates)
}

/// Returns the crate of a source file, and the line where its tests begin.
fn measured(path: &Path, root: &Path) -> Result<Option<(String, usize)>> {
    let relative = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
    let parts: Vec<_> = relative.split('/').collect();
    let ["crates", name, "src", ..] = parts[..] else {
        return Ok(None);
    };
    if is_test_source(&relative) {
        return Ok(None);
    }
    let text = fs::read_to_string(path)
        .with_context(|| format!("cannot read the measured {}", path.display()))?;
    Ok(Some((name.to_owned(), tests_from(&text))))
}

/// Returns the line number where the tests of a file begin, which are at its end.
fn tests_from(source: &str) -> usize {
    let lines: Vec<_> = source.lines().collect();
    let begins = lines
        .windows(2)
        .position(|pair| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod "));
    begins.map_or(usize::MAX, |index| index + 1)
}

/// Returns the pure crates below the minimum. A crate without measurements counts as
/// below.
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

    const SOURCE: &str = "fn a() {}\nfn b() {}\n\n#[cfg(test)]\nmod tests {\n    fn t() {}\n}\n";

    #[test]
    fn sources_are_summed_by_crate_without_their_tests() {
        let root = std::env::temp_dir().join(format!("agentbox-coverage-{}", std::process::id()));
        let mut lcov = String::new();
        for file in [
            "crates/a/src/lib.rs",
            "crates/a/src/x_tests.rs",
            "crates/b/tests/it.rs",
        ] {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, SOURCE).unwrap();
            let path = path.display();
            lcov.push_str(&format!(
                "SF:{path}\nDA:1,7\nDA:2,0\nDA:6,1\nend_of_record\n"
            ));
        }
        let crates = by_crate(&lcov, &root);
        fs::remove_dir_all(&root).unwrap();
        let lines = Lines {
            covered: 1,
            coverable: 2,
        };
        assert_eq!(crates.unwrap(), BTreeMap::from([("a".to_owned(), lines)]));
    }

    #[test]
    fn tests_begin_where_their_module_does() {
        assert_eq!(tests_from(SOURCE), 4);
        assert_eq!(tests_from("#[cfg(test)]\nfn helper() {}\n"), usize::MAX);
    }

    #[test]
    fn a_pure_crate_needs_its_floor_and_a_measure() {
        let lines = |covered| Lines {
            covered,
            coverable: 1000,
        };
        let crates = BTreeMap::from([("a".to_owned(), lines(949)), ("b".to_owned(), lines(950))]);
        assert_eq!(below_floor(&crates, &["b"]), [""; 0]);
        let expected = ["a: 94.9 % < 95 %", "missing: no lines < 95 %"];
        assert_eq!(below_floor(&crates, &["a", "missing"]), expected);
        assert_eq!(total(&crates), "94.9 %");
    }

    #[test]
    fn share_is_rounded_down() {
        let share = |covered, coverable| Lines { covered, coverable }.share();
        assert_eq!(share(9496, 10_000), "94.9 %");
        assert_eq!(share(3, 3), "100.0 %");
    }
}
