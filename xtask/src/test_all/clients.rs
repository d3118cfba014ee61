//! Stage `clients`: the program, used by third-party MCP clients.
//!
//! The official Python and TypeScript SDKs of MCP and the protocol's conformance suite
//! are installed into the cache. With `--full`, agent frameworks with scripted models
//! are too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::packages::{install_once, venv};
use crate::process;
use crate::scratch::Scratch;
use crate::test_all::cargo::cargo;
use crate::test_all::stage::{Ctx, Outcome};

/// The conformance suite on npm, and the version of Node that it needs.
const CONFORMANCE: [&str; 2] = ["@modelcontextprotocol/conformance@0.1.16", "node@22.23.3"];

/// Timeout of a client. Only a hang takes this long.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// A test with a client.
type Trial = fn(&Clients<'_>) -> Result<()>;

/// The tests, with the name that is shown on failure.
const TRIALS: &[(&str, Trial)] = &[
    ("the console, piped", |clients| clients.console()),
    ("README's snippet", |clients| clients.readme()),
    ("Python SDK", |clients| clients.session(clients.python())),
    ("TypeScript SDK", |clients| clients.session(clients.node())),
    ("conversation, Python SDK", |clients| {
        clients.replay(clients.python(), None)
    }),
    ("conversation, TypeScript SDK", |clients| {
        clients.replay(clients.node(), None)
    }),
    ("three mounts, Python SDK", |clients| clients.mounts()),
    ("conformance suite", |clients| clients.conformance()),
];

/// Tests for `--full` only, because they need many packages.
const FRAMEWORKS: &[(&str, Trial)] = &[
    ("a model behind pydantic-ai", |clients| {
        clients.model("pydantic-ai")
    }),
    ("the agent of docs/from-pydantic-ai.md", |clients| {
        clients.ten_lines()
    }),
    ("a model behind LangChain", |clients| {
        clients.model("langchain")
    }),
];

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let clients = Clients::prepare(ctx)?;
    let mut failed = Vec::new();
    let frameworks = if ctx.is_full { FRAMEWORKS } else { &[] };
    for (name, trial) in TRIALS.iter().chain(frameworks) {
        println!("--- {name}");
        if let Err(error) = trial(&clients) {
            eprintln!("error: {name}: {error:#}");
            failed.push(*name);
        }
    }
    let note = format!("{} trials", TRIALS.len() + frameworks.len());
    Ok(Outcome::unless_failed(&failed, note))
}

/// Containers or pods for the conversation.
#[derive(Clone, Copy)]
pub(super) struct Sandboxes<'a> {
    /// The backend: `docker` or `k8s`.
    pub(super) backend: &'a str,
    pub(super) agent: &'a Path,
    pub(super) image: &'a str,
    /// Makes a command reach them.
    pub(super) reach: &'a dyn Fn(Command) -> Result<Command>,
}

/// Runs the conversation in sandboxes, through both SDKs. The stages `docker` and `k8s`
/// call it.
pub(super) fn converse_in(ctx: &Ctx, sandboxes: Sandboxes<'_>) -> Result<()> {
    let clients = Clients::prepare(ctx)?;
    for (name, sdk) in [("Python", clients.python()), ("TypeScript", clients.node())] {
        let what = format!("conversation on {}, {name} SDK", sandboxes.backend);
        println!("--- {what}");
        clients.replay(sdk, Some(sandboxes)).context(what)?;
    }
    Ok(())
}

/// The programs and environments of the clients.
struct Clients<'c> {
    ctx: &'c Ctx,
    /// The `agentbox` program.
    agentbox: PathBuf,
    /// Directory of programs for tests only.
    examples: PathBuf,
    venv: PathBuf,
    npm: PathBuf,
}

/// An interpreter, the extension of its scripts, and its working directory.
struct Sdk {
    program: PathBuf,
    extension: &'static str,
    directory: PathBuf,
}

impl<'c> Clients<'c> {
    fn prepare(ctx: &'c Ctx) -> Result<Self> {
        let workspace = &ctx.workspace;
        let scripts = workspace.root().join("crates/console-mcp/tests/clients");
        let requirements = fs::read_to_string(scripts.join("requirements.txt"))?;
        let venv = venv(&ctx.workspace, "clients-venv", &requirements)?;
        let npm = npm(ctx, &scripts.join("package.json"))?;
        // Alone, as a new user builds it: without the features that other packages
        // enable.
        let mut alone = workspace.cargo(["check", "--package", "agentbox-cli", "--target-dir"])?;
        process::run(alone.arg(workspace.cache("consumers-target")))?;
        process::run(&mut cargo(ctx, "build", &["--bins", "--examples"])?)?;
        let target = workspace.metadata()?.target_directory;
        Ok(Self {
            ctx,
            agentbox: target.join("debug/agentbox"),
            examples: target.join("debug/examples"),
            venv,
            npm,
        })
    }

    fn python(&self) -> Sdk {
        Sdk {
            program: self.venv.join("bin/python"),
            extension: "py",
            directory: self.npm.clone(),
        }
    }

    fn node(&self) -> Sdk {
        Sdk {
            program: "node".into(),
            extension: "mjs",
            directory: self.npm.clone(),
        }
    }

    fn script(&self, of: &str, name: &str) -> PathBuf {
        let crates = self.ctx.workspace.root().join("crates");
        crates.join(of).join("tests/clients").join(name)
    }

    fn command(&self, program: impl AsRef<Path>) -> Result<Command> {
        let mut command = self.ctx.workspace.command(program.as_ref())?;
        command.current_dir(&self.npm);
        Ok(command)
    }

    /// Runs the first commands of a new user, with input from a pipe.
    fn console(&self) -> Result<()> {
        let directory = Scratch::at(self.ctx.workspace.cache("clients"))?;
        let mut run = self.ctx.workspace.command(&self.agentbox)?;
        run.current_dir(&*directory);
        let input = "write a.txt \"hello\nworld\"\nread a.txt\nrun echo it runs\n";
        let text = process::answer(run, input)?;
        for expected in ["2\tworld", "it runs"] {
            ensure!(text.contains(expected), "it did not say {expected:?}");
        }
        let file = directory.join("agentbox-workspace/a.txt");
        let written = fs::read_to_string(&file)
            .with_context(|| format!("{} was not written", file.display()))?;
        ensure!(written == "hello\nworld", "it wrote {written:?}");
        Ok(())
    }

    /// Runs a Python script with the program, and the file of the repository that it reads.
    fn script_of(&self, python: PathBuf, script: &str, file: Option<&str>) -> Result<()> {
        let mut command = self.command(python)?;
        command.arg("-B").arg(self.script("agentbox", script));
        command.args(file.map(|file| self.ctx.workspace.root().join(file)));
        process::run_limited(command.arg(&self.agentbox), TIME_LIMIT)
    }

    /// Runs the README's snippet for users of the Python SDK and others.
    fn readme(&self) -> Result<()> {
        self.script_of(self.python().program, "readme.py", Some("README.md"))
    }

    /// Tests directories that are readable, writable or need approval.
    fn mounts(&self) -> Result<()> {
        self.script_of(self.python().program, "mounts.py", None)
    }

    /// Returns Python with a framework. Each has its own environment, because they need
    /// different versions of the same libraries.
    fn framework(&self, name: &str) -> Result<PathBuf> {
        let requirements = self.script("agentbox", &format!("{name}.txt"));
        let requirements = fs::read_to_string(requirements)?;
        let name = format!("clients-{name}");
        Ok(venv(&self.ctx.workspace, &name, &requirements)?.join("bin/python"))
    }

    /// Checks the tools as seen by a model behind a framework.
    fn model(&self, framework: &str) -> Result<()> {
        let script = format!("model_{}.py", framework.replace('-', "_"));
        self.script_of(self.framework(framework)?, &script, None)
    }

    /// Runs the example agent in the documentation for users of the Python libraries,
    /// and the one that the program prints.
    fn ten_lines(&self) -> Result<()> {
        let file = Some("docs/from-pydantic-ai.md");
        self.script_of(self.framework("pydantic-ai")?, "from_python.py", file)
    }

    /// Tests tools, pictures, cancellation, questions, roots and resources, over pipes
    /// and HTTP.
    fn session(&self, sdk: Sdk) -> Result<()> {
        let script = format!("client.{}", sdk.extension);
        let agentbox = self.agentbox.display();
        let http = self.examples.join("stdio");
        let mut command = self.command(sdk.program)?;
        command.current_dir(sdk.directory);
        command.arg(self.script("console-mcp", &script));
        command.args([
            "--server",
            &format!("{agentbox} mcp --backend local:{{dir}}"),
        ]);
        let asking = format!("{agentbox} mcp --backend local:{{dir}} --permissions default");
        command.args(["--asking", &asking]);
        let structured = format!("{agentbox} mcp --backend local:{{dir}} --structured");
        command.args(["--structured", &structured]);
        let http = format!("{} {{dir}} --http 127.0.0.1:0", http.display());
        process::run_limited(command.args(["--http", &http]), TIME_LIMIT)
    }

    /// Replays the scripted conversation and compares it byte by byte.
    fn replay(&self, sdk: Sdk, sandboxes: Option<Sandboxes<'_>>) -> Result<()> {
        let script = format!("replay.{}", sdk.extension);
        let mut command = self.command(self.examples.join("replay"))?;
        if let Some(sandboxes) = sandboxes {
            command.env("SANDBOX_AGENT", sandboxes.agent);
            let backend = format!("--{}", sandboxes.backend);
            command.args([&*backend, sandboxes.image]);
        }
        command.current_dir(sdk.directory).arg(sdk.program);
        command.arg(self.script("agentbox", &script));
        command.arg(&self.agentbox);
        if let Some(sandboxes) = sandboxes {
            command = (sandboxes.reach)(command)?;
        }
        process::run_limited(&mut command, TIME_LIMIT)
    }

    /// Runs the conformance suite against a server with the tools that it expects.
    fn conformance(&self) -> Result<()> {
        let server = Listening::start(self.command(self.examples.join("conformance"))?)?;
        let programs = self.npm.join("node_modules/.bin");
        let mut command = self.command(programs.join("node"))?;
        command.arg(programs.join("conformance"));
        command.args(["server", "--url", &server.url, "--suite", "all"]);
        command.arg("--expected-failures");
        command.arg(self.script("console-mcp", "conformance.yml"));
        process::run_limited(&mut command, TIME_LIMIT)
    }
}

/// Creates a directory with the packages in `package` and the conformance suite, once.
fn npm(ctx: &Ctx, package: &Path) -> Result<PathBuf> {
    let wanted = format!(
        "{}{}\n",
        fs::read_to_string(package)?,
        CONFORMANCE.join(" ")
    );
    let directory = ctx.workspace.cache("clients-npm");
    install_once(&directory, &wanted, || {
        fs::copy(package, directory.join("package.json"))?;
        let mut install = ctx.workspace.command("npm")?;
        install.current_dir(&directory);
        install.args(["install", "--no-audit", "--no-fund", "--save-exact"]);
        process::run(install.args(CONFORMANCE))
    })?;
    Ok(directory)
}

/// A server that prints its address. It is killed on drop.
struct Listening {
    child: std::process::Child,
    url: String,
}

impl Listening {
    fn start(mut command: Command) -> Result<Self> {
        use std::io::{BufRead as _, BufReader};

        command.arg("127.0.0.1:0").stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start the server")?;
        let stderr = child.stderr.take().context("the server has no output")?;
        let mut started = Self {
            child,
            url: String::new(),
        };
        for line in BufReader::new(stderr).lines() {
            let line = line?;
            if line.starts_with("http") {
                started.url = line;
                return Ok(started);
            }
        }
        bail!("the server ended before it listened")
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // It may already have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
