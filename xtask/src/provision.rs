//! Installs missing tools for the stages of `test-all`.
//!
//! Tools go to the cache, not to the user's own cargo directory. Only a missing C
//! compiler, Python, Git, Go, Node, Chromium, PostgreSQL, Docker, and containerd with what it needs
//! for pods are installed system-wide, and only by root on Debian.

use anyhow::{Context as _, Result, bail};

use crate::process;
use crate::workspace::{Workspace, llvm_major};

/// Everything that can be installed, in installation order.
const PROVISIONS: &[Provision] = &[
    tool("cc", Source::Apt("build-essential")),
    tool("c++", Source::Apt("build-essential")),
    // The system's Python: confined commands cannot run another one.
    tool("/usr/bin/python3", Source::Apt("python3")),
    tool("git", Source::Apt("git")),
    tool("go", Source::Apt("golang-go")),
    tool("node", Source::Apt("nodejs")),
    tool("npm", Source::Apt("npm")),
    tool("/usr/bin/chromium", Source::Apt("chromium")),
    tool("psql", Source::Apt("postgresql")),
    tool("pg_createcluster", Source::Apt("postgresql")),
    tool("docker", Source::Apt("docker.io")),
    tool("dockerd", Source::Apt("docker.io")),
    tool("containerd", Source::Apt("containerd")),
    tool("ctr", Source::Apt("containerd")),
    tool("runc", Source::Apt("runc")),
    tool(
        "/usr/lib/cni/bridge",
        Source::Apt("containernetworking-plugins"),
    ),
    tool("ip", Source::Apt("iproute2")),
    tool("debootstrap", Source::Apt("debootstrap")),
    tool("busybox", Source::Apt("busybox-static")),
    tool("cargo-clippy", Source::Component("clippy")),
    tool("cargo-fmt", Source::Component("rustfmt")),
    // It runs for a second, and optimizing it takes minutes.
    tool(
        "cargo-deny",
        Source::Cargo("cargo-deny", "0.20.2", &["--debug"]),
    ),
    tool(
        "cargo-semver-checks",
        Source::Cargo("cargo-semver-checks", "0.51.0", &["--debug"]),
    ),
    tool("mdbook", Source::Cargo("mdbook", "0.5.4", MDBOOK_SWITCHES)),
    tool("llvm-cov", Source::LlvmTools),
    tool("aarch64-unknown-linux-gnu", Source::Target),
    tool("x86_64-apple-darwin", Source::Target),
    tool("x86_64-pc-windows-gnu", Source::Target),
    tool("rg", Source::Cargo("ripgrep", RIPGREP_VERSION, &[])),
];

/// The version of ripgrep for benchmark comparisons.
pub(crate) const RIPGREP_VERSION: &str = "15.2.0";

/// It builds a book in a second, and is not asked to serve one.
const MDBOOK_SWITCHES: &[&str] = &["--debug", "--no-default-features", "--features", "search"];

/// Programs that every stage needs. Others are installed for the stages that name them.
const TOOLCHAIN: &[&str] = &["cc", "/usr/bin/python3", "cargo-clippy", "cargo-fmt"];

/// A program and its source.
#[derive(Debug)]
struct Provision {
    program: &'static str,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// A Debian package.
    Apt(&'static str),
    /// A component of the active rustup toolchain.
    Component(&'static str),
    /// The standard library of a target. `program` is the target's name.
    Target,
    /// The tools of rustc's LLVM: a toolchain component, else Debian's packages.
    LlvmTools,
    /// The crate of the program, its version, and flags for installing it.
    Cargo(&'static str, &'static str, &'static [&'static str]),
}

const fn tool(program: &'static str, source: Source) -> Provision {
    Provision { program, source }
}

/// Whether [`run`] can install `program`.
pub(crate) fn knows(program: &str) -> bool {
    PROVISIONS
        .iter()
        .any(|provision| provision.program == program)
}

/// Installs missing programs of `tools` and of the toolchain itself. Returns a summary.
pub(crate) fn run(workspace: &Workspace, tools: &[&str]) -> Result<String> {
    let mut installed = Vec::new();
    for provision in PROVISIONS
        .iter()
        .filter(|provision| provision.is_wanted(tools))
    {
        if !provision.is_present(workspace)? {
            println!("installing {}", provision.describe());
            provision
                .install(workspace)
                .with_context(|| format!("cannot install {}", provision.program))?;
            installed.push(provision.describe());
        }
    }
    Ok(match installed[..] {
        [] => "nothing was missing".to_owned(),
        _ => format!("installed {}", installed.join(", ")),
    })
}

impl Provision {
    fn is_wanted(&self, tools: &[&str]) -> bool {
        TOOLCHAIN.contains(&self.program) || tools.contains(&self.program)
    }

    fn describe(&self) -> String {
        match self.source {
            Source::Apt(package) => format!("{} ({package})", self.program),
            Source::Component(name) => name.to_owned(),
            Source::Target => format!("the target {}", self.program),
            Source::LlvmTools => "llvm-tools".to_owned(),
            Source::Cargo(package, version, _) => format!("{package} {version}"),
        }
    }

    fn is_present(&self, workspace: &Workspace) -> Result<bool> {
        match self.source {
            Source::Apt(_) => workspace.has_program(self.program),
            Source::Target => workspace.has_target(self.program),
            Source::LlvmTools => Ok(workspace.llvm_tools()?.is_some()),
            // The program is run, because rustup has proxies for missing components
            // too.
            Source::Component(_) => Ok(process::succeeds(
                workspace.command(self.program)?.arg("--version"),
            )),
            Source::Cargo(_, version, _) => {
                let program = workspace.tools().join("bin").join(self.program);
                if !program.is_file() {
                    return Ok(false);
                }
                let printed = process::output(workspace.command(program)?.arg("--version"))?;
                Ok(has_version(&printed, version))
            }
        }
    }

    fn install(&self, workspace: &Workspace) -> Result<()> {
        match self.source {
            Source::Apt(package) => apt_install(workspace, package),
            Source::Component(name) => rustup_add(workspace, "component", name),
            Source::Target => rustup_add(workspace, "target", self.program),
            Source::LlvmTools => {
                rustup_add(workspace, "component", "llvm-tools").or_else(|error| {
                    println!("{error:#}; trying Debian's packages");
                    apt_install(workspace, &format!("llvm-{}", llvm_major(workspace)?))
                })
            }
            Source::Cargo(package, version, switches) => {
                cargo_install(workspace, package, version, switches)
            }
        }
    }
}

fn apt_install(workspace: &Workspace, package: &str) -> Result<()> {
    let next_step = format!("run `apt-get install {package}` or its like");
    if !workspace.has_program("apt-get")? {
        bail!("there is no apt-get; {next_step}");
    }
    if process::output(workspace.command("id")?.arg("-u"))?.trim() != "0" {
        bail!("only root can install packages; {next_step}");
    }
    process::run(workspace.command("apt-get")?.arg("update"))?;
    let mut command = workspace.command("apt-get")?;
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        .args(["install", "--yes", package]);
    process::run(&mut command)
}

fn rustup_add(workspace: &Workspace, kind: &str, name: &str) -> Result<()> {
    if !workspace.has_program("rustup")? {
        bail!("there is no rustup; install {name} the way the toolchain was installed");
    }
    process::run(workspace.command("rustup")?.args([kind, "add", name]))
}

fn cargo_install(
    workspace: &Workspace,
    package: &str,
    version: &str,
    switches: &[&str],
) -> Result<()> {
    let mut command = workspace.cargo(["install", "--locked", "--root"])?;
    command
        .arg(workspace.tools())
        .arg(format!("{package}@{version}"))
        .args(switches);
    // Without this variable, cargo builds in a temporary directory.
    process::run(command.env_remove("CARGO_TARGET_DIR"))
}

/// Whether the first line of a `--version` output ends with `version`, or with a `v` and it.
fn has_version(printed: &str, version: &str) -> bool {
    let line = printed.lines().next().unwrap_or_default();
    let last = line.split_whitespace().last().unwrap_or_default();
    last.strip_prefix('v').unwrap_or(last) == version
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_compared_as_a_whole() {
        assert!(has_version("cargo-deny 0.20.2\n", "0.20.2"));
        assert!(has_version("mdbook v0.5.4\n", "0.5.4"));
        assert!(has_version("ripgrep 15.2.0\n\nfeatures:-pcre2\n", "15.2.0"));
        assert!(!has_version("cargo-deny 0.20.21\n", "0.20.2"));
        assert!(!has_version("", "0.20.2"));
    }

    #[test]
    fn only_named_tools_are_wanted_but_always_the_toolchain() {
        let wanted: Vec<_> = PROVISIONS
            .iter()
            .filter(|provision| provision.is_wanted(&["rg"]))
            .map(|provision| provision.program)
            .collect();
        assert_eq!(wanted, [TOOLCHAIN, &["rg"]].concat());
    }

    #[test]
    fn description_says_what_is_installed() {
        let describe = |program| {
            let provision = PROVISIONS
                .iter()
                .find(|provision| provision.program == program);
            provision.unwrap().describe()
        };
        assert_eq!(describe("cargo-deny"), "cargo-deny 0.20.2");
        assert_eq!(describe("rg"), format!("ripgrep {RIPGREP_VERSION}"));
        assert_eq!(describe("cargo-fmt"), "rustfmt");
        let target = "x86_64-apple-darwin";
        assert_eq!(describe(target), format!("the target {target}"));
        assert_eq!(describe("cc"), "cc (build-essential)");
    }
}
