//! A temporary directory for each test, and the program in it.

pub(crate) mod containers;
#[cfg(all(feature = "daytona", target_os = "linux"))]
pub(crate) mod hosted;
pub(crate) mod pages;
#[cfg(feature = "k8s")]
pub(crate) mod pods;
pub(crate) mod sessions;
pub(crate) mod terminal;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A directory in which the program runs, with an empty home.
pub(crate) struct TestDir {
    directory: TempDir,
}

/// The outcome of the program.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl ProgramOutput {
    pub(crate) fn new(output: Output) -> Self {
        Self {
            code: output.status.code().expect("ended by a signal"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).expect("standard output holds nothing but JSON")
    }

    /// Checks that the error is one line that includes `about`.
    #[track_caller]
    pub(crate) fn complains(&self, about: &str) {
        assert!(self.err.starts_with("error: "), "{}", self.err);
        assert!(self.err.contains(about), "{}", self.err);
        assert_eq!(self.err.lines().count(), 1, "{}", self.err);
        assert_eq!(self.out, "");
    }
}

impl TestDir {
    pub(crate) fn new() -> Self {
        let directory = TempDir::with_prefix("agentbox-test-").unwrap();
        std::fs::create_dir(directory.path().join("home")).unwrap();
        Self { directory }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Returns the program's command, with only `PATH` from this test's environment.
    #[expect(
        clippy::disallowed_methods,
        reason = "the program and its commands need to find others"
    )]
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentbox"));
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> ProgramOutput {
        ProgramOutput::new(self.command(arguments).output().unwrap())
    }

    pub(crate) fn run_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> ProgramOutput {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        ProgramOutput::new(command.output().unwrap())
    }

    pub(crate) fn run_input(&self, arguments: &[&str], input: &str) -> ProgramOutput {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        ProgramOutput::new(child.wait_with_output().unwrap())
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().unwrap()
    }
}

/// Returns the command of a script in which `"$0" "$@"` is a program with its arguments.
pub(crate) fn in_script(program: &Command, script: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(program.get_program());
    shell.args(program.get_args()).env_clear();
    let variables = program.get_envs();
    shell.envs(variables.filter_map(|(name, value)| Some((name, value?))));
    shell.current_dir(program.get_current_dir().unwrap());
    shell
}

/// Returns a variable that names what a test with containers needs.
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set; run `cargo xtask test-all`, which sets it"))
}

/// Returns the command of a console that asks before it runs commands.
pub(crate) fn console(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agentbox"));
    command
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .env("AGENTBOX_OPTIONS_REQUIRE_EXECUTE_APPROVAL", "true");
    command
}

/// Returns the sorted names in a directory.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().into_string().unwrap()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}
