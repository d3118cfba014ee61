//! `agentbox agent`: the program that runs in containers and makes calls fast.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use clap::Subcommand;
use sandbox_wire::agent::{AgentBinary, PROGRAM};

use crate::agent::INSTALL;
use crate::agent::storage::{self, VERSION};
use crate::app::App;
use crate::backend::agents;
use crate::backend::kind::Kind;
use crate::exit::{Failure, environment, usage};
use crate::output;
use crate::signals::{self, Interrupts};
use crate::system::{self, ProcessGroup};

/// The directory of its source, if this program was built beside it.
const SOURCE: Option<&str> = option_env!("SANDBOX_AGENT_SOURCE");

/// Its name on crates.io.
const PACKAGE: &str = "agentbox-sandbox-agent";

/// No shared libraries, which an image may lack, and no relocations.
const RUSTFLAGS: &str = "-C target-feature=+crt-static -C relocation-model=static";

/// The workspace's profile `agent`, for a source that does not define it.
const PROFILE: &[&str] = &[
    "profile.agent.inherits='release'",
    "profile.agent.opt-level='z'",
    "profile.agent.lto='fat'",
    "profile.agent.codegen-units=1",
    "profile.agent.strip=true",
    "profile.agent.panic='abort'",
];

/// Options of `agent`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Builds the agent with cargo, or takes a file, and puts it where this program
    /// finds it.
    Install(Install),
    /// Prints where the agents are that containers get.
    Where,
}

#[derive(Debug, clap::Args)]
struct Install {
    /// Takes this program instead of building one.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["source", "target"])]
    file: Option<PathBuf>,
    /// Builds this checkout; else the one that this program was built from, or the release of
    /// its version.
    #[arg(long, value_name = "DIRECTORY")]
    source: Option<PathBuf>,
    /// Builds for this target of rustc; Linux on this machine's processor unless given.
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Puts it there, as sandbox-agent; else where only this program looks.
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode, Failure> {
    match args.command {
        Action::Install(install) => {
            let path = Interrupts::watch()?.unless(install.run()).await??;
            output::print(&path.display().to_string())?;
        }
        Action::Where => {
            let is_used = |kind: Kind| app.spec.kind == kind;
            let agents = agents::find(is_used, &app.config.backends)?;
            if agents.is_empty() {
                return Err(environment!("no sandbox-agent is installed; run {INSTALL}"));
            }
            let lines = agents
                .iter()
                .map(|agent| format!("{}  {}\n", agent.arch(), agent.path().display()));
            output::print(&String::from_iter(lines))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Install {
    async fn run(&self) -> Result<PathBuf, Failure> {
        if let Some(file) = &self.file {
            return self.install_binary(&AgentBinary::new(file)?);
        }
        let temporary = tempfile::tempdir().map_err(|error| {
            environment!("no temporary directory: {error}; make room, or set TMPDIR")
        })?;
        signals::temporary(temporary.path());
        self.install_binary(&self.build(temporary.path()).await?)
    }

    async fn build(&self, directory: &Path) -> Result<AgentBinary, Failure> {
        let source = self.source()?;
        let cargo = cargo();
        let host = host(&cargo)?;
        let target = self.target.clone().unwrap_or_else(|| usual_target(&host));
        let from = source.as_deref().unwrap_or(Path::new("crates.io"));
        output::note(&format!(
            "agentbox: building {PROGRAM} {VERSION} for {target} from {}",
            from.display()
        ));
        let mut command = Command::new(&cargo);
        // Where we are, an agent may have selected another toolchain.
        command.current_dir("/");
        command.arg("install").args(package(source));
        for setting in PROFILE {
            command.args(["--config", setting]);
        }
        command
            .args(["--locked", "--no-track", "--profile", "agent"])
            .args(["--target", &target])
            .arg("--root")
            .arg(directory)
            .arg("--target-dir")
            .arg(directory.join("target"))
            .env("RUSTFLAGS", RUSTFLAGS)
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .stdin(Stdio::null())
            // Standard output carries only the path of the agent.
            .stdout(Stdio::null());
        if let Some(linker) = own_linker(&target, &host) {
            command.env(linker, "rust-lld");
        }
        let done = run_group(command).await;
        let done = done.map_err(|error| no_cargo(&cargo, &error))?;
        if !done.success() {
            return Err(environment!(
                "the agent was not built: see what cargo says above; where a static C library or \
                 a linker is missing, run rustup target add {cpu}-unknown-linux-musl and give \
                 --target {cpu}-unknown-linux-musl; or take one that was built elsewhere: \
                 {INSTALL} --file FILE",
                cpu = target.split('-').next().unwrap_or("x86_64")
            ));
        }
        Ok(AgentBinary::new(directory.join("bin").join(PROGRAM))?)
    }

    /// Returns the directory of the agent's package; `None` for the release.
    fn source(&self) -> Result<Option<PathBuf>, Failure> {
        let Some(given) = &self.source else {
            return source_of_build(SOURCE);
        };
        let inside = given.join("crates").join(PROGRAM);
        let named = given.ends_with(PROGRAM).then(|| given.clone());
        let mut candidates = [Some(inside), named].into_iter().flatten();
        let found = candidates.find(|path| is_package(path)).ok_or_else(|| {
            usage!(
                "{} is not a checkout of agentbox: it has no crates/{PROGRAM}; give its top directory",
                given.display()
            )
        })?;
        Ok(Some(std::path::absolute(&found).unwrap_or(found)))
    }

    /// Copies the agent to its destination.
    fn install_binary(&self, agent: &AgentBinary) -> Result<PathBuf, Failure> {
        check_version(agent)?;
        let (directory, name) = match &self.dir {
            Some(directory) => (directory.clone(), PROGRAM.to_owned()),
            None => {
                let usual = storage::directory();
                let usual = usual.ok_or_else(|| Failure::usage(storage::NO_DIRECTORY))?;
                (usual, storage::file_name(agent.arch()))
            }
        };
        // Not writable by the group or others, even with a loose umask.
        let written = system::make_directories(&directory, 0o755)
            .and_then(|()| File::open(agent.path()))
            .and_then(|mut content| storage::write_program(&directory, &name, &mut content));
        written.map_err(|error| {
            environment!(
                "the agent cannot be put into {}: {error}; give another directory with --dir",
                directory.display()
            )
        })
    }
}

/// Returns the target for containers: the host's, or Linux on the same processor.
fn usual_target(host: &str) -> String {
    let cpu = host.split('-').next().unwrap_or(host);
    if host.contains("-linux-") {
        host.to_owned()
    } else {
        format!("{cpu}-unknown-linux-musl")
    }
}

/// Returns the directory of the agent's package for a program built in `checkout`; for
/// one from crates.io there is none.
fn source_of_build(checkout: Option<&str>) -> Result<Option<PathBuf>, Failure> {
    match checkout.map(PathBuf::from) {
        // The release may differ from that checkout.
        Some(directory) if !is_package(&directory) => Err(usage!(
            "the checkout that this program was built from has no {} any more; give one \
             with --source DIRECTORY, or an agent with --file FILE",
            directory.display()
        )),
        source => Ok(source),
    }
}

/// Returns cargo's arguments for the package in a directory, or else for the release of
/// this program's version.
fn package(directory: Option<PathBuf>) -> [OsString; 2] {
    match directory {
        Some(directory) => ["--path".into(), directory.into()],
        None => [PACKAGE.into(), format!("--version={VERSION}").into()],
    }
}

fn is_package(directory: &Path) -> bool {
    directory.join("Cargo.toml").is_file()
}

/// Returns the variable that sets the linker for a target where Rust's own linker is
/// enough: musl comes with the target, and the agent has no C code.
fn own_linker(target: &str, host: &str) -> Option<String> {
    let name = target.to_uppercase().replace('-', "_");
    let variable = format!("CARGO_TARGET_{name}_LINKER");
    let is_enough = target != host && target.ends_with("-musl");
    (is_enough && system::variable(&variable).is_none()).then_some(variable)
}

/// Runs a command to its end. Dropping the future kills everything it started.
async fn run_group(mut command: Command) -> io::Result<ExitStatus> {
    ProcessGroup::lead(&mut command);
    let mut child = tokio::process::Command::from(command)
        .kill_on_drop(true)
        .spawn()?;
    let group = ProcessGroup::of(&child);
    let ended = child.wait().await;
    group.ended();
    ended
}

/// Refuses an agent of another version, if this machine can run it.
fn check_version(agent: &AgentBinary) -> Result<(), Failure> {
    // As images name it.
    let processor = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let here = (std::env::consts::OS, processor);
    if here != ("linux", agent.arch()) {
        let ((system, ours), theirs) = (here, agent.arch());
        output::note(&format!(
            "agentbox: it is for linux {theirs} and this machine is {system} {ours}: its version \
             is not checked"
        ));
        return Ok(());
    }
    let shown = agent.path().display();
    let asked = Command::new(agent.path())
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    let asked =
        asked.map_err(|error| usage!("{shown} cannot be run: {error}; take another file"))?;
    let said = String::from_utf8_lossy(&asked.stdout);
    if said.trim_end() != format!("{PROGRAM} {VERSION}") {
        return Err(usage!(
            "{shown} is not the agent of this version: it says {} and must say \
             '{PROGRAM} {VERSION}'; take one that was built with this program",
            backend_core::Quoted::new(said.trim_end())
        ));
    }
    Ok(())
}

/// Returns the cargo that started this program, or `cargo` from `PATH`.
fn cargo() -> OsString {
    system::variable("CARGO").unwrap_or_else(|| "cargo".into())
}

fn no_cargo(cargo: &OsStr, error: &std::io::Error) -> Failure {
    environment!(
        "{} cannot be started: {error}; install Rust, or take an agent that was built \
         elsewhere: {INSTALL} --file FILE",
        cargo.display()
    )
}

/// Returns cargo's default target.
fn host(cargo: &OsStr) -> Result<String, Failure> {
    let asked = Command::new(cargo).arg("-vV").current_dir("/").output();
    let asked = asked.map_err(|error| no_cargo(cargo, &error))?;
    let said = String::from_utf8_lossy(&asked.stdout);
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    let host =
        host.ok_or_else(|| Failure::environment("cargo does not name its host; give --target"))?;
    Ok(host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_linux() {
        for (host, target) in [
            ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-gnu"),
            ("aarch64-apple-darwin", "aarch64-unknown-linux-musl"),
            ("x86_64-pc-windows-gnu", "x86_64-unknown-linux-musl"),
        ] {
            assert_eq!(usual_target(host), target);
        }
    }

    #[test]
    fn only_a_foreign_musl_target_is_linked_by_rust_itself() {
        let host = "x86_64-unknown-linux-gnu";
        let variable = own_linker("aarch64-unknown-linux-musl", host);
        let wanted = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER";
        assert_eq!(variable.as_deref(), Some(wanted));
        assert_eq!(own_linker(host, host), None);
        assert_eq!(own_linker("aarch64-unknown-linux-gnu", host), None);
    }

    #[test]
    fn a_program_from_crates_io_gets_its_agent_there() {
        let release = source_of_build(None).unwrap();
        let version = format!("--version={VERSION}");
        assert_eq!(package(release), [PACKAGE, &version]);
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().to_str();
        let error = source_of_build(path).unwrap_err().to_string();
        assert!(error.contains("--source DIRECTORY"), "{error}");
        std::fs::write(temporary.path().join("Cargo.toml"), "").unwrap();
        let directory = source_of_build(path).unwrap();
        assert_eq!(package(directory)[0], "--path");
    }

    #[test]
    fn the_profile_is_that_of_the_workspace() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
        let root: toml::Table = std::fs::read_to_string(root).unwrap().parse().unwrap();
        let mut theirs = root["profile"]["agent"].as_table().unwrap().clone();
        // These make searches a little faster; a package from elsewhere has no such
        // list.
        theirs.remove("package");
        let ours: toml::Table = PROFILE.join("\n").parse().unwrap();
        assert_eq!(ours["profile"]["agent"].as_table().unwrap(), &theirs);
    }
}
