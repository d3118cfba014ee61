//! Stage `daytona`: hosted sandboxes, on a stand-in for the service.
//!
//! The stand-in is itself tested with real clients first: with Daytona's own end-to-end
//! suite, which the go command downloads with the sources of the last open release, and
//! with a recent release of the official SDK. Tests of our crates that need the agent are
//! in modules `daytona_*` and are marked as ignored.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::agent;
use crate::packages::venv;
use crate::process;
use crate::scratch::Scratch;
use crate::test_all::cargo::{TestProgram, TestRun, cargo, run_tests};
use crate::test_all::stage::{Ctx, Outcome};
use crate::workspace::Workspace;

/// The last open release, and its end-to-end suite.
const MODULE: &str = "github.com/daytonaio/daytona@v0.190.0";
const SUITE: &str = "libs/sdk-python/tests/test_e2e.py";

/// Tests of the suite that need what the stand-in does not have: the internet, language
/// servers, the code interpreter, and builds of images.
const LEFT_OUT: &str = "not (clone or git or branch or add_files or commit or lsp \
    or run_code or context or declarative_image_build)";

/// The number of tests of the suite that must pass: none is skipped.
const EXPECTED: &str = "73 passed";

/// Timeout of a client. Only a hang takes this long.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// Beginning of the names of modules whose tests need the agent.
const MODULES: &str = "daytona_";

/// A test with a client.
type Trial = fn(&Clients<'_>) -> Result<()>;

/// The tests, with the name that is shown on failure.
const TRIALS: &[(&str, Trial)] = &[
    ("Daytona's own suite", |clients| clients.suite()),
    ("SDK", |clients| clients.sdk()),
];

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let suite = match download(&ctx.workspace) {
        Ok(suite) => suite,
        Err(error) => {
            return Ok(Outcome::Skipped(format!(
                "the suite is not there: {error:#}"
            )));
        }
    };
    // The stand-in is built for its own tests.
    let programs = TestProgram::build(cargo(ctx, "test", &["--test", "it"])?)?;
    let target = ctx.workspace.metadata()?.target_directory;
    let clients = Clients {
        workspace: &ctx.workspace,
        suite,
        program: target.join("debug/daytona-standin"),
        scripts: ctx
            .workspace
            .root()
            .join("crates/daytona-testkit/tests/clients"),
    };
    let mut failed = Vec::new();
    for (name, trial) in TRIALS {
        println!("--- {name}");
        if let Err(error) = trial(&clients) {
            eprintln!("error: {name}: {error:#}");
            failed.push(*name);
        }
    }
    if !failed.is_empty() {
        return Ok(Outcome::unless_failed(&failed, String::new()));
    }
    Ok(match tests(ctx, &programs)?.outcome() {
        Outcome::Passed(note) => Outcome::Passed(format!("{note}; {EXPECTED} in Daytona's suite")),
        outcome => outcome,
    })
}

/// Runs the tests that need the agent.
fn tests(ctx: &Ctx, programs: &[TestProgram]) -> Result<TestRun> {
    let agent = agent::build(&ctx.workspace, None)?;
    let mut run = TestRun::default();
    for program in programs {
        for module in program.ignored_modules(ctx, MODULES)? {
            let mut command = program.command(ctx)?;
            command.args(["--ignored", &format!("{module}::")]);
            command.env("SANDBOX_AGENT", &agent.path);
            run = run.and(run_tests(&mut command)?);
        }
    }
    Ok(run)
}

/// The answer of `go mod download`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    dir: PathBuf,
}

/// Downloads the sources of the release into the cache. Returns the path of the suite.
fn download(workspace: &Workspace) -> Result<PathBuf> {
    let cache = workspace.cache("daytona-go");
    fs::create_dir_all(&cache)?;
    let mut go = workspace.command("go")?;
    go.args(["mod", "download", "-json", MODULE]);
    // Outside of any module. Its files can be removed like others.
    go.current_dir(&cache);
    go.env("GOMODCACHE", &cache).env("GOFLAGS", "-modcacherw");
    let printed = process::output(&mut go)?;
    let downloaded: Downloaded = serde_json::from_str(&printed).context("go printed no JSON")?;
    let suite = downloaded.dir.join(SUITE);
    ensure!(suite.is_file(), "{} is not there", suite.display());
    Ok(suite)
}

/// Clients of the stand-in.
struct Clients<'c> {
    workspace: &'c Workspace,
    /// Daytona's own suite.
    suite: PathBuf,
    /// The stand-in.
    program: PathBuf,
    /// The directory of our scripts.
    scripts: PathBuf,
}

impl Clients<'_> {
    /// Returns Python with the packages of a file.
    fn python(&self, name: &str) -> Result<PathBuf> {
        let requirements = fs::read_to_string(self.scripts.join(name).with_extension("txt"))?;
        let venv = venv(self.workspace, &format!("daytona-{name}"), &requirements)?;
        Ok(venv.join("bin/python"))
    }

    /// Runs Daytona's own suite, all of whose selected tests must pass.
    fn suite(&self) -> Result<()> {
        let python = self.python("suite")?;
        let directory = Scratch::at(self.workspace.cache("daytona-suite-run"))?;
        fs::copy(&self.suite, directory.join("test_e2e.py"))?;
        let standin = Standin::start(self.workspace, &self.program)?;
        let mut pytest = self.workspace.command(python)?;
        standin.set_variables(&mut pytest);
        pytest.args(["-B", "-m", "pytest", "-p", "no:cacheprovider"]);
        pytest.args(["--timeout=120", "--tb=short", "-k", LEFT_OUT, "test_e2e.py"]);
        let mut last = String::new();
        let read = |line: &str| last = line.to_owned();
        let passed = process::run_observed(pytest.current_dir(&*directory), "", read)?;
        ensure!(passed && last.contains(EXPECTED), "it ended with {last:?}");
        standin.end()
    }

    /// Runs our script with a recent release of the SDK.
    fn sdk(&self) -> Result<()> {
        let python = self.python("sdk")?;
        let standin = Standin::start(self.workspace, &self.program)?;
        let mut script = self.workspace.command(python)?;
        standin.set_variables(&mut script);
        script.arg("-B").arg(self.scripts.join("sdk.py"));
        process::run_limited(&mut script, TIME_LIMIT)?;
        standin.end()
    }
}

/// A running stand-in, which ends when its input does.
struct Standin {
    child: Child,
    input: Option<ChildStdin>,
    /// The variables that name it to clients.
    variables: Vec<(String, String)>,
}

impl Standin {
    fn start(workspace: &Workspace, program: &Path) -> Result<Self> {
        let mut command = workspace.command(program)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the stand-in")?;
        let output = child.stdout.take().context("no output")?;
        let mut lines = BufReader::new(output).lines();
        let variables: Result<_> = (0..2).map(|_| variable(&mut lines)).collect();
        Ok(Self {
            input: child.stdin.take(),
            variables: variables?,
            child,
        })
    }

    fn set_variables(&self, command: &mut Command) {
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
    }

    /// Ends it, and checks that it was still well.
    fn end(mut self) -> Result<()> {
        drop(self.input.take());
        let status = self.child.wait()?;
        ensure!(status.success(), "the stand-in ended with {status}");
        Ok(())
    }
}

impl Drop for Standin {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// Reads a line such as `NAME=value`.
fn variable(lines: &mut Lines<BufReader<ChildStdout>>) -> Result<(String, String)> {
    let line = lines.next().context("it said nothing")??;
    let (name, value) = line.split_once('=').context("it named no variable")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_says_where_the_sources_are() {
        let printed = r#"{"Path": "p", "Version": "v1", "Dir": "/c/p@v1", "Sum": "h1:"}"#;
        let downloaded: Downloaded = serde_json::from_str(printed).unwrap();
        assert_eq!(downloaded.dir, Path::new("/c/p@v1"));
    }
}
