//! `cargo xtask dist`: builds a release archive, reproducible byte for byte from a
//! commit.
//!
//! Everything is built in a separate target directory, without this machine's paths,
//! and ends up below `target/dist`.

mod archive;
mod image;
mod licences;

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::cluster::Cluster;
use crate::dist::archive::Member;
pub(crate) use crate::dist::image::name as agent_image_name;
use crate::dist::licences::Built;
use crate::scratch::{self, Scratch};
use crate::sealed::Sealed;
use crate::workspace::{Workspace, host_target};
use crate::{agent, flags, process};

/// The package, and its program.
const PACKAGE: &str = "agentbox-cli";
pub(crate) const PROGRAM: &str = "agentbox";

/// The features of the program in a release, besides the default ones.
const FEATURES: &str = "daytona,k8s";

/// The profile of a release in `Cargo.toml`, and its directory below the target's.
const PROFILE: &str = "dist";

/// The variable that passes the directory of agents to the build script of [`PACKAGE`].
pub(crate) const EMBED: &str = "AGENTBOX_EMBED_AGENTS";

/// The variable that sets the time of the archive's files, in seconds since 1970.
const TIME: &str = "SOURCE_DATE_EPOCH";

/// The architectures of sandboxes, as named by images and by rustc.
const PROCESSORS: &[(&str, &str)] = &[("amd64", "x86_64"), ("arm64", "aarch64")];

/// The shells that have completions, and the file name that each expects.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "agentbox.bash"),
    ("elvish", "agentbox.elv"),
    ("fish", "agentbox.fish"),
    ("powershell", "_agentbox.ps1"),
    ("zsh", "_agentbox"),
];

/// Builds the agents and the program and packs everything.
pub(crate) fn run(flags: &flags::Dist) -> Result<bool> {
    let workspace = Workspace::discover()?;
    let host = host_target(&workspace)?;
    let target = workspace.metadata()?.target_directory;
    let output = flags.output.clone().unwrap_or_else(|| target.join("dist"));
    let agents = output.join("agents");
    scratch::empty(&agents)?;
    let mut embedded = Vec::new();
    for (arch, cpu) in PROCESSORS {
        match choose(&workspace, cpu, &host)? {
            Ok(chosen) => {
                embed(&workspace, arch, &chosen, &agents, &output)?;
                embedded.push(chosen);
            }
            Err(reason) => println!("no agent for {arch}: {reason}"),
        }
    }
    let program = build(&workspace, flags, &host, &target, &agents)?;
    let release = Release {
        program: &program,
        agents: &embedded,
        level: Compression::best(),
    };
    let archive = release.pack(&workspace, &output)?;
    println!("{}  {}", archive.display(), size(&archive)?);
    let mut git = workspace.command("git")?;
    if !process::succeeds(git.args(["diff", "--quiet", "HEAD"])) {
        println!("it was not made from a commit, so it cannot be made again from one");
    }
    Ok(true)
}

/// Returns the target to build an architecture's agent for, or the reason if there is
/// none.
fn choose(workspace: &Workspace, cpu: &str, host: &str) -> Result<Result<String, String>> {
    if host.starts_with(&format!("{cpu}-")) {
        return Ok(Ok(host.to_owned()));
    }
    let [musl, gnu] = ["musl", "gnu"].map(|libc| format!("{cpu}-unknown-linux-{libc}"));
    let linker = format!("{cpu}-linux-gnu-gcc");
    if workspace.has_target(&musl)? {
        // Rust's own linker is sufficient for it.
        return Ok(Ok(musl));
    }
    if workspace.has_target(&gnu)?
        && process::succeeds(workspace.command(&linker)?.arg("--version"))
    {
        return Ok(Ok(gnu));
    }
    Ok(Err(format!(
        "its target is not installed; run `rustup target add {musl}`"
    )))
}

fn embed(
    workspace: &Workspace,
    arch: &str,
    target: &str,
    agents: &Path,
    output: &Path,
) -> Result<()> {
    let built = agent::build(workspace, Some(target))?;
    built.check()?;
    let program = fs::read(&built.path)?;
    Sealed::new(workspace)?.check(&program)?;
    let name = image::file_name(arch);
    write_with_sum(output, &name, &image::pack(&program, arch)?)?;
    let packed = pack_agent_as(&built, arch, agents)?;
    println!(
        "agent for {arch} ({target})  {}, {} compressed",
        built.size(),
        size(&packed)?
    );
    Ok(())
}

/// Returns this machine's architecture, as images name it.
fn own_architecture() -> Result<&'static str> {
    let own = PROCESSORS.iter().find(|(_, cpu)| *cpu == env::consts::ARCH);
    let (arch, _) = own.context("no sandbox has this machine's processor")?;
    Ok(arch)
}

/// Compresses an agent for this machine's architecture into a directory for [`EMBED`].
pub(crate) fn pack_agent(built: &agent::Built, agents: &Path) -> Result<()> {
    pack_agent_as(built, own_architecture()?, agents).map(drop)
}

/// Loads an agent for this machine's architecture into a cluster, as the image
/// [`agent_image_name`], which is returned.
pub(crate) fn load_agent_image(built: &agent::Built, cluster: &Cluster<'_>) -> Result<String> {
    let packed = image::pack(&fs::read(&built.path)?, own_architecture()?)?;
    let scratch = Scratch::temporary("agent-image")?;
    let archive = scratch.join("agent.tar");
    fs::write(&archive, packed)?;
    cluster.load_image(&archive)?;
    Ok(agent_image_name())
}

fn pack_agent_as(built: &agent::Built, arch: &str, agents: &Path) -> Result<PathBuf> {
    let packed = agents.join(format!("{arch}.gz"));
    compress(&built.path, &packed).with_context(|| format!("cannot write {}", packed.display()))?;
    Ok(packed)
}

fn compress(from: &Path, to: &Path) -> io::Result<()> {
    let mut packed = GzEncoder::new(File::create(to)?, Compression::best());
    io::copy(&mut File::open(from)?, &mut packed)?;
    packed.finish()?.sync_all()
}

fn build(
    workspace: &Workspace,
    flags: &flags::Dist,
    host: &str,
    target: &Path,
    agents: &Path,
) -> Result<PathBuf> {
    let (profile, directory) = if flags.dev {
        ("dev", "debug")
    } else {
        (PROFILE, PROFILE)
    };
    let place = target.join("dist-build");
    let sealed = Sealed::new(workspace)?;
    let mut command = workspace.cargo(["build", "--locked", "--package", PACKAGE])?;
    command
        .args(["--features", FEATURES, "--profile", profile])
        .args(["--target", host, "--target-dir"])
        .arg(&place)
        .env(EMBED, agents);
    process::run(sealed.seal(&mut command, &[])).context("the program was not built")?;
    let program = place.join(host).join(directory).join(PROGRAM);
    sealed.check(&fs::read(&program)?)?;
    Ok(program)
}

/// The inputs of an archive.
#[derive(Debug)]
pub(crate) struct Release<'a> {
    pub(crate) program: &'a Path,
    /// The targets of the embedded agents.
    pub(crate) agents: &'a [String],
    pub(crate) level: Compression,
}

impl Release<'_> {
    /// Packs the program and everything that is shipped with it into a directory.
    pub(crate) fn pack(&self, workspace: &Workspace, output: &Path) -> Result<PathBuf> {
        let host = host_target(workspace)?;
        let own = Built {
            package: PACKAGE,
            features: FEATURES,
            target: &host,
        };
        let agents = self.agents.iter().map(|target| Built {
            package: agent::PACKAGE,
            features: "",
            target,
        });
        let built: Vec<_> = std::iter::once(own).chain(agents).collect();
        let licences = licences::collect(workspace, &built)?;
        let mut members = vec![
            Member::program(PROGRAM, fs::read(self.program)?),
            Member::file("LICENSE", fs::read(workspace.root().join("LICENSE"))?),
            Member::file("README.md", readme(workspace)?),
            Member::file("THIRD-PARTY-LICENSES", licences),
        ];
        members.extend(standard_library(workspace)?);
        members.extend(generated(self.program, output)?);
        let top = format!("{PROGRAM}-{}-{host}", env!("CARGO_PKG_VERSION"));
        let packed = archive::pack(&top, members, time(workspace)?, self.level)?;
        write_with_sum(output, &format!("{top}.tar.gz"), &packed)
    }
}

/// Writes a file, and its checksum beside it.
fn write_with_sum(directory: &Path, name: &str, content: &[u8]) -> Result<PathBuf> {
    let path = directory.join(name);
    fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
    let sum = directory.join(format!("{name}.sha256"));
    fs::write(sum, archive::sum(content, name))?;
    Ok(path)
}

/// Returns the program's README, with links to the repository.
fn readme(workspace: &Workspace) -> Result<String> {
    let text = fs::read_to_string(workspace.root().join("crates/agentbox/README.md"))?;
    let repository = env!("CARGO_PKG_REPOSITORY");
    let tree = format!("]({repository}/blob/v{}/", env!("CARGO_PKG_VERSION"));
    Ok(text.replace("](../../", &tree))
}

/// Returns the notices of Rust's standard library, if the toolchain includes them.
fn standard_library(workspace: &Workspace) -> Result<Option<Member>> {
    let mut rustc = workspace.command("rustc")?;
    let sysroot = process::output(rustc.args(["--print", "sysroot"]))?;
    let notices = Path::new(sysroot.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    if !notices.is_file() {
        println!("this toolchain has no notices of the standard library; rustup's have");
        return Ok(None);
    }
    let name = "THIRD-PARTY-LICENSES-rust.html";
    Ok(Some(Member::file(name, fs::read(notices)?)))
}

/// Returns the files that the program generates itself.
fn generated(program: &Path, output: &Path) -> Result<Vec<Member>> {
    // The environment must not affect the output.
    let command = || {
        let mut command = Command::new(program);
        command.env_clear();
        command
    };
    let mut members = Vec::new();
    for (shell, file) in COMPLETIONS {
        let script = process::output(command().args(["completions", shell]))?;
        members.push(Member::file(format!("completions/{file}"), script));
    }
    let pages = Scratch::at(output.join("man"))?;
    process::output(command().arg("man").arg(&*pages))?;
    for page in fs::read_dir(&*pages)? {
        let page = page?;
        let name = page.file_name().to_string_lossy().into_owned();
        members.push(Member::file(
            format!("man/man1/{name}"),
            fs::read(page.path())?,
        ));
    }
    Ok(members)
}

/// Returns the time of the files: the value of [`TIME`], else the time of the commit.
fn time(workspace: &Workspace) -> Result<u64> {
    let said = match env::var(TIME) {
        Ok(time) => time,
        Err(_) => {
            let mut git = workspace.command("git")?;
            process::output(git.args(["log", "-1", "--format=%ct"]))
                .with_context(|| format!("no commit to take the time from; set {TIME}"))?
        }
    };
    said.trim()
        .parse()
        .with_context(|| format!("{TIME} must be seconds since 1970, not {said:?}"))
}

fn size(path: &Path) -> Result<String> {
    Ok(agent::megabytes(fs::metadata(path)?.len()))
}
