//! Stages that consist of one or two cargo commands.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::Result;
use serde::Deserialize;

use crate::api::{self, Compared};
use crate::metadata::Package;
use crate::process;
use crate::test_all::floors;
use crate::test_all::stage::{Ctx, Outcome};

/// The longest text in bytes about one failed test in the table. All of its output is
/// further up.
const MAX_FAILURE_LEN: usize = 500;

/// Creates a command for a subcommand on all packages with all features.
///
/// Cargo unifies features over the selected packages. Selecting different packages
/// would rebuild their dependencies.
pub(super) fn cargo(ctx: &Ctx, subcommand: &str, args: &[&str]) -> Result<Command> {
    let mut command = ctx.workspace.cargo([subcommand])?;
    command.args(["--workspace", "--all-features"]).args(args);
    Ok(command)
}

pub(super) fn fmt(ctx: &Ctx) -> Result<Outcome> {
    process::run(&mut ctx.workspace.cargo(["fmt", "--all", "--check"])?)?;
    Ok(Outcome::Passed(String::new()))
}

pub(super) fn clippy(ctx: &Ctx) -> Result<Outcome> {
    let args = ["--all-targets", "--", "-D", "warnings"];
    process::run(&mut cargo(ctx, "clippy", &args)?)?;
    Ok(Outcome::Passed(String::new()))
}

pub(super) fn doc(ctx: &Ctx) -> Result<Outcome> {
    let mut command = cargo(ctx, "doc", &["--no-deps"])?;
    process::run(command.env("RUSTDOCFLAGS", "-D warnings"))?;
    Ok(Outcome::Passed(String::new()))
}

pub(super) fn api(ctx: &Ctx) -> Result<Outcome> {
    Ok(match api::compare(&ctx.workspace, false)? {
        Compared::Unable(reason) => Outcome::Skipped(reason),
        Compared::Done { libraries, changed } if changed.is_empty() => {
            Outcome::Passed(format!("{libraries} libraries"))
        }
        Compared::Done { changed, .. } => Outcome::Failed(format!(
            "{}: if that is meant, run `cargo xtask api --fix`",
            changed.join(", ")
        )),
    })
}

/// Advisories are left out, because a run must not depend on downloading their
/// database.
pub(super) fn deny(ctx: &Ctx) -> Result<Outcome> {
    process::run(
        &mut ctx
            .workspace
            .cargo(["deny", "check", "licenses", "bans", "sources"])?,
    )?;
    Ok(Outcome::Passed(
        "without advisories: `cargo deny check advisories`".to_owned(),
    ))
}

/// Runs all tests except doc tests, and except those that stage `coverage` runs. All of
/// them are built, because stages that follow run a few of each.
pub(super) fn test(ctx: &Ctx) -> Result<Outcome> {
    let mut others = Vec::new();
    if ctx.is_full && ctx.workspace.llvm_tools()?.is_some() {
        others = floors::packages(ctx)?;
    }
    let programs = TestProgram::build(cargo(ctx, "test", &["--lib", "--bins", "--tests"])?)?;
    let mut run = TestRun::default();
    for program in programs {
        if !others.iter().any(|package| program.is_of(package)) {
            let mut command = program.command(ctx)?;
            steady(ctx, &mut command);
            run = run.and(run_tests(&mut command)?);
        }
    }
    Ok(match run.outcome() {
        Outcome::Passed(note) if !others.is_empty() => Outcome::Passed(format!(
            "{note}; those of {} crates are in coverage",
            others.len()
        )),
        outcome => outcome,
    })
}

/// Sets the number of test threads, and makes property tests use the same cases each
/// time, so that they fail because of a change and not by chance. `--random` lets them
/// try new ones.
pub(super) fn steady(ctx: &Ctx, command: &mut Command) {
    // Many tests wait for processes and deadlines: one for each processor leaves them idle.
    let threads = thread::available_parallelism().map_or(1, usize::from) * 2;
    command.env("RUST_TEST_THREADS", threads.to_string());
    if !ctx.is_random {
        command.env("PROPTEST_RNG_SEED", "1");
    }
    if ctx.is_full {
        // Of each of two kinds of schedules, in the tests of sessions.
        command.env("SESSION_MODEL_STEPS", "50000");
    }
}

pub(super) fn doctest(ctx: &Ctx) -> Result<Outcome> {
    let mut command = cargo(ctx, "test", &["--no-fail-fast", "--doc"])?;
    Ok(run_tests(&mut command)?.outcome())
}

pub(super) fn run_tests(command: &mut Command) -> Result<TestRun> {
    run_labelled_tests(command, "")
}

/// Does the same, with a label before each line that is shown.
pub(super) fn run_labelled_tests(command: &mut Command, label: &str) -> Result<TestRun> {
    let mut run = TestRun::default();
    let is_success = process::run_observed(command, label, |line| run.read(line))?;
    Ok(TestRun { is_success, ..run })
}

/// Beginning of a line with which a test says why it does nothing here.
const LEFT_OUT: &str = "left out: ";

/// The result of `cargo test`.
#[derive(Debug)]
pub(super) struct TestRun {
    is_success: bool,
    counts: Counts,
    /// Why tests did nothing, although they count as passed. One reason for each test.
    left_out: Vec<String>,
    /// The name of each failed test with the beginning of its output, on one line.
    failures: Vec<String>,
    /// Whether the last line belongs to the last failure.
    is_in_failure: bool,
}

/// A test program built by cargo.
#[derive(Debug, Deserialize)]
pub(super) struct TestProgram {
    pub(super) executable: PathBuf,
    manifest_path: PathBuf,
    profile: Profile,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

impl TestProgram {
    /// Builds the test programs that a `cargo test` command would run.
    pub(super) fn build(mut command: Command) -> Result<Vec<Self>> {
        command.args(["--no-run", "--message-format", "json-render-diagnostics"]);
        process::output(&mut command).map(|messages| Self::all(&messages))
    }

    /// Parses the messages of cargo.
    fn all(messages: &str) -> Vec<Self> {
        let read = |line| serde_json::from_str::<Self>(line).ok();
        let programs = messages.lines().filter_map(read);
        // Programs that tests start are built as well.
        programs.filter(|program| program.profile.test).collect()
    }

    /// Returns the name of the package's directory.
    pub(super) fn package(&self) -> &str {
        let directory = self.manifest_path.parent().and_then(Path::file_name);
        directory.and_then(OsStr::to_str).unwrap_or_default()
    }

    fn is_of(&self, package: &Package) -> bool {
        self.manifest_path == package.manifest_path
    }

    /// Creates a command that starts the program in the same directory as cargo would.
    pub(super) fn command(&self, ctx: &Ctx) -> Result<Command> {
        let mut command = ctx.workspace.command(&self.executable)?;
        if let Some(package) = self.manifest_path.parent() {
            command.current_dir(package);
        }
        Ok(command)
    }

    /// Returns the modules whose names begin with `prefix` and that have ignored tests.
    pub(super) fn ignored_modules(&self, ctx: &Ctx, prefix: &str) -> Result<BTreeSet<String>> {
        let mut list = self.command(ctx)?;
        list.args(["--list", "--ignored", "--format", "terse"]);
        Ok(modules(&process::output(&mut list)?, prefix))
    }
}

/// Returns the modules whose names begin with `prefix`, from a list of tests.
fn modules(tests: &str, prefix: &str) -> BTreeSet<String> {
    let modules = tests.lines().filter_map(|test| test.split_once("::"));
    let modules = modules.map(|(module, _)| module);
    modules
        .filter(|module| module.starts_with(prefix))
        .map(str::to_owned)
        .collect()
}

impl Default for TestRun {
    fn default() -> Self {
        Self {
            is_success: true,
            counts: Counts::default(),
            left_out: Vec::new(),
            failures: Vec::new(),
            is_in_failure: false,
        }
    }
}

impl TestRun {
    /// Reads one line that a test program printed.
    fn read(&mut self, line: &str) {
        let header = line.strip_prefix("---- ");
        if let Some(name) = header.and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.failures.push(name.to_owned());
            self.is_in_failure = true;
        } else if line == "failures:" {
            self.is_in_failure = false;
        } else if let Some(reason) = line.strip_prefix(LEFT_OUT) {
            self.left_out.push(reason.to_owned());
        } else if let Some(more) = Counts::parse(line) {
            self.counts += more;
        } else if let (true, Some(failure)) = (self.is_in_failure, self.failures.last_mut())
            && !line.is_empty()
            && failure.len() + line.len() < MAX_FAILURE_LEN
        {
            failure.push_str(" / ");
            failure.push_str(line);
        }
    }

    /// Combines two runs.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.is_success &= other.is_success;
        self.counts += other.counts;
        self.left_out.extend(other.left_out);
        self.failures.extend(other.failures);
        self
    }

    /// Returns the outcome. A run without a single executed test does not pass.
    pub(super) fn outcome(self) -> Outcome {
        let Self {
            is_success,
            counts,
            left_out,
            failures,
            ..
        } = self;
        match (is_success, counts) {
            (true, Counts { passed: 0, .. }) => {
                Outcome::Failed(format!("no test was executed; {counts}"))
            }
            (true, _) if left_out.is_empty() => Outcome::Passed(counts.to_string()),
            (true, _) => {
                let number = left_out.len();
                let reasons = Vec::from_iter(BTreeSet::from_iter(left_out));
                let reasons = reasons.join("; ");
                Outcome::Passed(format!(
                    "{counts}; {number} passed but did nothing: {reasons}"
                ))
            }
            // A build failed, or a test binary died before printing its counts.
            (false, Counts { failed: 0, .. }) => Outcome::Failed(format!("cargo failed; {counts}")),
            (false, _) => Outcome::Failed(format!("{counts}: {}", failures.join("; "))),
        }
    }
}

/// The sum over several test binaries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    ignored: usize,
}

impl Counts {
    /// Parses the last line of a test binary's output.
    fn parse(line: &str) -> Option<Self> {
        let (_, fields) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let count = |name: &str| {
            let field = fields
                .split("; ")
                .find_map(|field| field.strip_suffix(name))?;
            field.trim().parse().ok()
        };
        Some(Self {
            passed: count("passed")?,
            failed: count("failed")?,
            ignored: count("ignored")?,
        })
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed", self.passed)?;
        if self.failed > 0 {
            write!(f, ", {} failed", self.failed)?;
        }
        if self.ignored > 0 {
            write!(f, ", {} ignored", self.ignored)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_names_the_test_programs_it_built() {
        let message = |executable: &str, test: bool| {
            let profile = format!(r#""profile": {{"test": {test}}}"#);
            format!(
                r#"{{"executable": {executable}, "manifest_path": "/p/Cargo.toml", {profile}}}"#
            )
        };
        let test = message(r#""/t/it-1""#, true);
        let started = message(r#""/t/program""#, false);
        let library = message("null", true);
        let built = format!("{test}\n{started}\n{library}\nno message\n");
        let programs = TestProgram::all(&built);
        let [program] = &programs[..] else {
            panic!("{programs:?}");
        };
        assert_eq!(program.executable, Path::new("/t/it-1"));
        assert_eq!(program.package(), "p");
    }

    #[test]
    fn modules_are_those_with_the_prefix() {
        let tests = "docker_a::one: test\ndocker_a::b::two: test\ncontainer::c: test\nd: test\n";
        assert_eq!(Vec::from_iter(modules(tests, "docker_")), ["docker_a"]);
    }

    const OK: &str = "test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 2 filtered out; finished in 0.01s";
    const FAILED: &str = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s";

    fn outcome(is_success: bool, passed: usize, failed: usize, ignored: usize) -> Outcome {
        TestRun {
            is_success,
            counts: Counts {
                passed,
                failed,
                ignored,
            },
            ..TestRun::default()
        }
        .outcome()
    }

    #[test]
    fn result_lines_add_up() {
        let mut counts = Counts::parse(OK).unwrap();
        assert_eq!(
            counts,
            Counts {
                passed: 12,
                failed: 0,
                ignored: 3
            }
        );
        counts += Counts::parse(FAILED).unwrap();
        assert_eq!(
            counts,
            Counts {
                passed: 13,
                failed: 2,
                ignored: 3
            }
        );
        assert_eq!(counts.to_string(), "13 passed, 2 failed, 3 ignored");
    }

    #[test]
    fn other_lines_are_not_results() {
        for line in [
            "",
            "test a ... ok",
            "running 3 tests",
            "test result: ok. nothing",
        ] {
            assert_eq!(Counts::parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_run_without_tests_fails() {
        assert_eq!(
            outcome(true, 0, 0, 2),
            Outcome::Failed("no test was executed; 0 passed, 2 ignored".to_owned())
        );
        assert_eq!(
            outcome(true, 1, 0, 0),
            Outcome::Passed("1 passed".to_owned())
        );
    }

    #[test]
    fn cargo_decides_over_the_counts() {
        let failed = Outcome::Failed("cargo failed; 5 passed".to_owned());
        assert_eq!(outcome(false, 5, 0, 0), failed);
        let failed = Outcome::Failed("5 passed, 1 failed: ".to_owned());
        assert_eq!(outcome(false, 5, 1, 0), failed);
    }

    #[test]
    fn tests_that_did_nothing_are_told_apart() {
        let mut run = TestRun::default();
        for line in [
            "left out: no b",
            OK,
            "left out: no a",
            "left out: no b",
            "ok",
        ] {
            run.read(line);
        }
        let expected = "12 passed, 3 ignored; 3 passed but did nothing: no a; no b";
        assert_eq!(run.outcome(), Outcome::Passed(expected.to_owned()));
    }

    #[test]
    fn failed_tests_are_named_with_what_they_printed() {
        let printed = "test a::b ... FAILED\n\nfailures:\n\n---- a::b stdout ----\n\n\
            thread 'a::b' panicked at src/a.rs:1:2:\nno\n---- c stdout ----\nc\n\n\n\
            failures:\n    a::b\n    c\n\n";
        let mut run = TestRun::default();
        printed.lines().for_each(|line| run.read(line));
        run.read(FAILED);
        run.is_success = false;
        let expected = "1 passed, 2 failed: a::b / thread 'a::b' panicked at src/a.rs:1:2: / no; \
            c / c";
        assert_eq!(run.outcome(), Outcome::Failed(expected.to_owned()));
    }
}
