//! Stage `dist`: tests the release archive in a container with a C library, a shell and
//! nothing else.
//!
//! The program in it is built like the tests. `cargo xtask dist --check` tests a real
//! archive.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use flate2::Compression;
use serde_json::{Value, json};

use crate::docker::Docker;
use crate::docker::daemon::{Daemon, Found};
use crate::docker::images::import;
use crate::scratch::{self, Scratch};
use crate::test_all::cargo::cargo;
use crate::test_all::stage::{Ctx, Outcome};
use crate::workspace::{Workspace, host_target};
use crate::{agent, dist, images, process};

/// The image that the archive is unpacked into.
const IMAGE: &str = "agentbox-test/dist:1";

/// The archive's directory in the image.
const PLACE: &str = "opt";

/// Timeout of the program in seconds. Only a hang takes this long.
const TIME_LIMIT: &str = "300";

/// The path where the program looks for the daemon's socket.
const SOCKET: &str = "/var/run/docker.sock";

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let workspace = &ctx.workspace;
    let daemon = match Daemon::find(workspace)? {
        Found::Daemon(daemon) => daemon,
        Found::Nothing(reason) => return Ok(Outcome::Skipped(reason)),
    };
    let place = workspace.cache("dist");
    scratch::empty(&place)?;
    let agents = place.join("agents");
    fs::create_dir_all(&agents)?;
    dist::pack_agent(&agent::build(workspace, None)?, &agents)?;
    let mut build = cargo(ctx, "build", &["--bin", dist::PROGRAM])?;
    process::run(build.env(dist::EMBED, &agents))?;
    let built = workspace.metadata()?.target_directory.join("debug");
    let program = place.join(dist::PROGRAM);
    // Most of it is debug information, and takes long to compress.
    let mut strip = workspace.command("strip")?;
    strip.arg("-o").arg(&program).arg(built.join(dist::PROGRAM));
    process::run(&mut strip)?;
    let release = dist::Release {
        program: &program,
        agents: &[host_target(workspace)?],
        level: Compression::fast(),
    };
    let archive = release.pack(workspace, &place)?;
    let tried = try_with(&Docker::new(workspace, &daemon), &archive)?;
    fs::remove_dir_all(&place)?;
    Ok(Outcome::Passed(format!("{tried}; {}", daemon.describe())))
}

/// Tests an archive of `cargo xtask dist`.
pub(crate) fn try_archive(archive: &Path) -> Result<bool> {
    let workspace = Workspace::discover()?;
    match Daemon::find(&workspace)? {
        Found::Daemon(daemon) => {
            let tried = try_with(&Docker::new(&workspace, &daemon), archive)?;
            println!("{}: {tried}", archive.display());
            Ok(true)
        }
        Found::Nothing(reason) => bail!("{reason}"),
    }
}

/// Tests an archive. Returns a summary of the tests.
fn try_with(docker: &Docker<'_>, archive: &Path) -> Result<String> {
    let before = docker.things()?;
    let bare = Bare::new(docker, archive)?;
    for (name, trial) in TRIALS {
        println!("--- {name}");
        trial(&bare).with_context(|| format!("in a bare container: {name}"))?;
    }
    drop(bare);
    let left = docker.things()?;
    let left: Vec<_> = left.difference(&before).map(String::as_str).collect();
    ensure!(left.is_empty(), "left behind: {}", left.join(", "));
    let names: Vec<_> = TRIALS.iter().map(|(name, _)| *name).collect();
    Ok(names.join(", "))
}

/// A test of the archive.
type Trial = fn(&Bare<'_>) -> Result<()>;

const TRIALS: &[(&str, Trial)] = &[
    ("checksums", |bare| bare.checksums()),
    ("the console", |bare| bare.console()),
    ("MCP", |bare| bare.mcp()),
    ("a container", |bare| bare.container()),
];

/// An image with the unpacked archive. It is removed on drop.
struct Bare<'d> {
    docker: &'d Docker<'d>,
    /// The top directory of the archive.
    directory: String,
}

impl<'d> Bare<'d> {
    fn new(docker: &'d Docker<'d>, archive: &Path) -> Result<Self> {
        let archive = archive
            .canonicalize()
            .with_context(|| format!("there is no {}", archive.display()))?;
        let name = archive.file_name().and_then(|name| name.to_str());
        let top = name.and_then(|name| name.strip_suffix(".tar.gz"));
        let top = top.context("the archive's name must end with .tar.gz")?;
        let mut sum = docker.workspace.command("sha256sum")?;
        sum.current_dir(archive.parent().context("no directory")?);
        process::run(sum.args(["--check", "--strict", &format!("{top}.tar.gz.sha256")]))?;
        let root = Scratch::temporary("dist")?;
        images::busybox(docker.workspace, &root)?;
        let place = root.join(PLACE);
        fs::create_dir(&place)?;
        let mut tar = docker.workspace.command("tar")?;
        tar.args(["--no-same-owner", "-xzf"]).arg(&archive);
        process::run(tar.arg("-C").arg(&place))?;
        let program = place.join(top).join(dist::PROGRAM);
        let needed = process::output(docker.workspace.command("ldd")?.arg(program))?;
        for library in libraries(&needed) {
            let copy = root.join(library.trim_start_matches('/'));
            fs::create_dir_all(copy.parent().context("no directory")?)?;
            fs::copy(library, copy).with_context(|| format!("cannot copy {library}"))?;
        }
        let bare = Self {
            docker,
            directory: format!("/{PLACE}/{top}"),
        };
        import(docker, &root, IMAGE)?;
        Ok(bare)
    }

    /// Creates a command that runs in a new container with an empty environment, with
    /// `options` for `docker run`.
    fn command(&self, options: &[&str], args: &[&str]) -> Result<Command> {
        let mut command =
            self.docker
                .command(&["run", "--rm", "--interactive", "--network", "none"])?;
        command.args(["--workdir", &self.directory]).args(options);
        command.args([IMAGE, "timeout", TIME_LIMIT]).args(args);
        Ok(command)
    }

    fn checksums(&self) -> Result<()> {
        process::run(&mut self.command(&[], &["sha256sum", "-c", "SHA256SUMS"])?)
    }

    /// Runs the first commands of a new user.
    fn console(&self) -> Result<()> {
        let input = "write a.txt \"hello\nworld\"\nread a.txt\nrun cat a.txt\n";
        let said = process::answer(self.command(&[], &["./agentbox"])?, input)?;
        for expected in ["2\tworld", "\nhello\nworld"] {
            ensure!(said.contains(expected), "it did not say {expected:?}");
        }
        Ok(())
    }

    fn mcp(&self) -> Result<()> {
        let args = ["./agentbox", "mcp", "--backend", "local:/root"];
        let mut client = Client::start(self.command(&[], &args)?)?;
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
                           "clientInfo": {"name": "xtask", "version": "1"}});
        let served = client.request("initialize", hello)?;
        ensure!(served["serverInfo"]["name"].is_string(), "it said {served}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        let listed = client.request("tools/list", json!({}))?;
        let tools = listed["tools"].as_array().context("no tools")?;
        for name in ["write_file", "read_file"] {
            let is_there = tools.iter().any(|tool| tool["name"] == name);
            ensure!(is_there, "there is no tool {name}");
        }
        let file = json!({"path": "a.txt", "content": "from a client\n"});
        client.call("write_file", file)?;
        let read = client.call("read_file", json!({"path": "a.txt"}))?;
        ensure!(read.contains("from a client"), "it read {read:?}");
        client.end()
    }

    /// Checks that the embedded agent is unpacked and serves the container.
    fn container(&self) -> Result<()> {
        let socket = self.docker.host.strip_prefix("unix://");
        let socket = socket.context("the daemon's socket cannot be bound; set DOCKER_HOST")?;
        let bind = format!("{socket}:{SOCKET}");
        let backend = format!("docker:{IMAGE}");
        let script = "pwd; cat /proc/[0-9]*/comm";
        let args = ["./agentbox", "run", "--backend", &backend, "--"];
        let args = [&args[..], &["sh", "-c", script]].concat();
        let said = process::answer(self.command(&["--volume", &bind], &args)?, "")?;
        for expected in ["/workspace", "sandbox-agent"] {
            // The kernel truncates process names.
            let is_there = said.lines().any(|line| line.starts_with(expected));
            ensure!(is_there, "it did not say {expected:?}");
        }
        Ok(())
    }
}

impl Drop for Bare<'_> {
    fn drop(&mut self) {
        let remove = self.docker.command(&["image", "rm", "--force", IMAGE]);
        if let Err(error) = remove.and_then(|mut remove| process::run(&mut remove)) {
            eprintln!("error: cannot remove {IMAGE}: {error:#}");
        }
    }
}

/// Returns the files that `ldd` lists.
fn libraries(printed: &str) -> impl Iterator<Item = &str> {
    let words = printed.lines().map(str::split_whitespace);
    words.filter_map(|mut words| words.find(|word| word.starts_with('/')))
}

/// A simple MCP client that sends one request after the other.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
}

impl Client {
    fn start(mut command: Command) -> Result<Self> {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.spawn().context("cannot start docker")?;
        let input = child.stdin.take().context("no input")?;
        let output = child.stdout.take().context("no output")?;
        Ok(Self {
            child,
            input,
            output: BufReader::new(output),
            last: 0,
        })
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        writeln!(self.input, "{message}").context("the server is gone")
    }

    /// Sends a request and returns the result.
    fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line)?;
            ensure!(read > 0, "the server ended before it answered {method}");
            let mut said: Value = serde_json::from_str(&line)
                .with_context(|| format!("the server printed {line:?}"))?;
            if said["id"] == id {
                ensure!(said["error"].is_null(), "{method}: {}", said["error"]);
                return Ok(said["result"].take());
            }
        }
    }

    /// Calls a tool and returns the text of its reply.
    fn call(&mut self, tool: &str, arguments: Value) -> Result<String> {
        let params = json!({"name": tool, "arguments": arguments});
        let reply = self.request("tools/call", params)?;
        ensure!(reply["isError"] != true, "{tool}: {reply}");
        let text = reply["content"][0]["text"].as_str();
        let text = text.with_context(|| format!("{tool}: {reply}"))?;
        println!("{tool}: {text}");
        Ok(text.to_owned())
    }

    /// Closes the input, which makes the server end.
    fn end(self) -> Result<()> {
        let Self {
            mut child, input, ..
        } = self;
        drop(input);
        let status = child.wait()?;
        ensure!(status.success(), "it ended with {status}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_ldd() {
        let printed = "\tlinux-vdso.so.1 (0x00007f7d075ae000)\n\
            \tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f7d0749d000)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f7d075b0000)\n";
        let found: Vec<_> = libraries(printed).collect();
        let expected = [
            "/lib/x86_64-linux-gnu/libm.so.6",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(found, expected);
    }
}
