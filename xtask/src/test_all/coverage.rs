//! Stage `coverage`: line coverage of the crates that have a floor. With `--full`, their
//! tests run here and not in stage `test` too.
//!
//! The tests are built with `-C instrument-coverage`, and each process writes down the
//! code it ran when it exits. The LLVM tools of the toolchain convert that into lines.
//! A line counts for the crate it is in, whichever crate's tests ran it. Processes that
//! are killed write nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::metadata::Package;
use crate::test_all::cargo::{TestProgram, run_tests, steady};
use crate::test_all::floors::{self, FLOORS};
use crate::test_all::stage::{Ctx, Outcome};
use crate::tidy::{is_test_source, lines_before_tests};
use crate::{process, table};

/// Compiles members of the workspace, but none of their dependencies, with
/// instrumentation. Bash hands on variables like `CARGO_BIN_EXE_a-b`; dash drops them.
const WRAPPER: &str = "#!/usr/bin/env bash\nexec \"$@\" -C instrument-coverage\n";

/// The target directory, in the cache.
const TARGET: &str = "coverage-target";

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let Some(tools) = ctx.workspace.llvm_tools()? else {
        return Ok(Outcome::Skipped(
            "llvm-tools is not installed: `rustup component add llvm-tools`; --provision does it"
                .to_owned(),
        ));
    };
    let packages = floors::packages(ctx)?;
    clean_other_checkout(ctx)?;
    let profiles = Profiles::prepare(ctx, &packages)?;
    let cargo = |args: &[&str]| cargo(ctx, &packages, &profiles.directory, args);
    let programs = TestProgram::build(cargo(&[])?)?;
    let run = run_tests(&mut cargo(&["--no-fail-fast"])?)?;
    let counts = export(ctx, &tools, &profiles, &programs)?;
    profiles.remove()?;
    let crates = by_crate(&counts, ctx.workspace.root())?;
    let rows: Vec<_> = FLOORS.iter().map(|floor| row(&crates, *floor)).collect();
    println!(
        "\n{}",
        table::render(["crate", "lines", "covered", "share", "floor"], &rows)
    );
    let short = below_floor(&crates, FLOORS);
    Ok(match run.outcome() {
        Outcome::Passed(tests) if short.is_empty() => {
            let note = format!("{} in {} crates", total(&crates), crates.len());
            Outcome::Passed(format!("{tests}; {note}"))
        }
        Outcome::Passed(_) => Outcome::Failed(short.join(", ")),
        failed => failed,
    })
}

/// Deletes programs that were built in another checkout with the same cache. Cargo takes them
/// for those of this one, but they name the files of the other.
fn clean_other_checkout(ctx: &Ctx) -> Result<()> {
    let target = ctx.workspace.cache(TARGET);
    let note = target.join("checkout");
    let root = ctx.workspace.root().to_string_lossy();
    if fs::read_to_string(&note).is_ok_and(|noted| noted == root) {
        return Ok(());
    }
    if target.exists() {
        let mut clean = ctx
            .workspace
            .cargo(["clean", "--workspace", "--target-dir"])?;
        process::run(clean.arg(&target))?;
    }
    fs::create_dir_all(&target)?;
    fs::write(note, &*root)?;
    Ok(())
}

/// Creates a command for the tests of `packages`. Their programs are kept apart from
/// others, so that neither are built anew each time.
fn cargo(ctx: &Ctx, packages: &[Package], directory: &Path, args: &[&str]) -> Result<Command> {
    let wrapper = ctx.workspace.cache("coverage-rustc");
    if fs::read_to_string(&wrapper).ok().as_deref() != Some(WRAPPER) {
        fs::write(&wrapper, WRAPPER)?;
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    }
    let options = ["test", "--all-features", "--lib", "--bins", "--tests"];
    let mut command = ctx.workspace.cargo(options)?;
    for package in packages {
        command.args(["--package", &package.name]);
    }
    command.args(args).arg("--target-dir");
    command.arg(ctx.workspace.cache(TARGET));
    command.env("RUSTC_WORKSPACE_WRAPPER", &wrapper);
    // One file per process: one that is killed while it writes spoils no other.
    command.env("LLVM_PROFILE_FILE", directory.join("%m-%p.profraw"));
    steady(ctx, &mut command);
    Ok(command)
}

/// The files in which the processes of the tests write down the code they ran.
#[derive(Debug)]
struct Profiles {
    directory: PathBuf,
    /// The directories that the tests are started in. A process whose environment was
    /// cleared writes there.
    strays: Vec<PathBuf>,
}

impl Profiles {
    /// Removes those of an earlier run, which must not be mixed with those of this run.
    fn prepare(ctx: &Ctx, packages: &[Package]) -> Result<Self> {
        let strays = packages.iter().map(|package| package.dir().to_owned());
        let profiles = Self {
            directory: ctx.workspace.cache("coverage"),
            strays: strays.collect(),
        };
        fs::create_dir_all(&profiles.directory)?;
        profiles.remove()?;
        Ok(profiles)
    }

    fn all(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for directory in self.strays.iter().chain([&self.directory]) {
            for entry in fs::read_dir(directory)? {
                let path = entry?.path();
                if path.extension().is_some_and(|found| found == "profraw") {
                    found.push(path);
                }
            }
        }
        Ok(found)
    }

    fn remove(&self) -> Result<()> {
        for path in self.all()? {
            fs::remove_file(path)?;
        }
        Ok(())
    }
}

/// Exports the execution count of each line in lcov format.
fn export(
    ctx: &Ctx,
    tools: &Path,
    profiles: &Profiles,
    programs: &[TestProgram],
) -> Result<String> {
    let (list, merged) = (
        profiles.directory.join("inputs"),
        profiles.directory.join("merged.profdata"),
    );
    let mut inputs = String::new();
    for path in profiles.all()? {
        writeln!(inputs, "{}", path.display())?;
    }
    fs::write(&list, inputs)?;
    let mut merge = ctx.workspace.command(tools.join("llvm-profdata"))?;
    // Fails only if no file can be read.
    merge.args(["merge", "--sparse", "--failure-mode=all", "--input-files"]);
    process::run(merge.arg(list).arg("--output").arg(&merged))?;
    let mut export = ctx.workspace.command(tools.join("llvm-cov"))?;
    export.args(["export", "--format=lcov", "--instr-profile"]);
    export.arg(merged);
    for program in programs {
        export.arg("--object").arg(&program.executable);
    }
    export.arg("--sources");
    let crates = ctx.workspace.root().join("crates");
    for (name, _) in FLOORS {
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
            && let Some((name, n_lines)) = &file
        {
            let (line, count) = count.split_once(',').context("llvm-cov wrote no lcov")?;
            if line.parse::<usize>()? <= *n_lines {
                let lines = crates.entry(name.clone()).or_default();
                lines.coverable += 1;
                lines.covered += usize::from(count != "0");
            }
        }
    }
    Ok(crates)
}

/// Returns the crate of a source file, and the number of lines before its tests.
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
    Ok(Some((name.to_owned(), lines_before_tests(&text).len())))
}

/// Returns the crates below their floors. A crate without measurements counts as below.
fn below_floor(crates: &BTreeMap<String, Lines>, floors: &[(&str, f64)]) -> Vec<String> {
    let shortfall = |(name, floor): &(&str, f64)| {
        let lines = crates.get(*name).copied().unwrap_or_default();
        let is_enough = lines.percent().is_some_and(|percent| percent >= *floor);
        (!is_enough).then(|| format!("{name}: {} < {floor} %", lines.share()))
    };
    floors.iter().filter_map(shortfall).collect()
}

fn total(crates: &BTreeMap<String, Lines>) -> String {
    let covered = crates.values().map(|lines| lines.covered).sum();
    let coverable = crates.values().map(|lines| lines.coverable).sum();
    Lines { covered, coverable }.share()
}

fn row(crates: &BTreeMap<String, Lines>, (name, floor): (&str, f64)) -> [String; 5] {
    let lines = crates.get(name).copied().unwrap_or_default();
    [
        name.to_owned(),
        lines.coverable.to_string(),
        lines.covered.to_string(),
        lines.share(),
        format!("{floor} %"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    const SOURCE: &str = "fn a() {}\nfn b() {}\n\n#[cfg(test)]\nmod tests {\n    fn t() {}\n}\n";

    #[test]
    fn sources_are_summed_by_crate_without_their_tests() {
        let root = Scratch::temporary("coverage").unwrap();
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
        let lines = Lines {
            covered: 1,
            coverable: 2,
        };
        assert_eq!(crates.unwrap(), BTreeMap::from([("a".to_owned(), lines)]));
    }

    #[test]
    fn a_crate_needs_its_floor_and_a_measure() {
        let lines = |covered| Lines {
            covered,
            coverable: 1000,
        };
        let crates = BTreeMap::from([("a".to_owned(), lines(949)), ("b".to_owned(), lines(950))]);
        let short = |names: &[&str], floor| {
            let floors: Vec<_> = names.iter().map(|name| (*name, floor)).collect();
            below_floor(&crates, &floors)
        };
        assert_eq!(short(&["b"], 95.0), [""; 0]);
        assert_eq!(short(&["a", "b"], 94.5), [""; 0]);
        let expected = ["a: 94.9 % < 95 %", "missing: no lines < 95 %"];
        assert_eq!(short(&["a", "missing"], 95.0), expected);
        let row = row(&crates, ("a", 95.0));
        assert_eq!(row, ["a", "1000", "949", "94.9 %", "95 %"]);
        assert_eq!(total(&crates), "94.9 %");
    }

    #[test]
    fn share_is_rounded_down() {
        let share = |covered, coverable| Lines { covered, coverable }.share();
        assert_eq!(share(9496, 10_000), "94.9 %");
        assert_eq!(share(3, 3), "100.0 %");
    }
}
