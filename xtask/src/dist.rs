//! `cargo xtask dist`: the program as it is shipped, with the agents in it.
//!
//! Everything is built in a target directory of its own, with this machine's paths
//! kept out, and ends up below `target/dist`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::workspace::{Workspace, host_target};
use crate::{agent, flags, process};

/// The package, and its program.
const PACKAGE: &str = "agentbox-cli";
const PROGRAM: &str = "agentbox";

/// Names the directory of agents to the build script of [`PACKAGE`].
pub(crate) const EMBED: &str = "AGENTBOX_EMBED_AGENTS";

/// The processors that sandboxes may have, as images and as rustc name them.
const PROCESSORS: &[(&str, &str)] = &[("amd64", "x86_64"), ("arm64", "aarch64")];

/// Builds the agents and the program with them.
pub(crate) fn run(flags: &flags::Dist) -> Result<bool> {
    let workspace = Workspace::discover()?;
    let host = host_target(&workspace)?;
    let target = workspace.metadata()?.target_directory;
    let output = flags.output.clone().unwrap_or_else(|| target.join("dist"));
    let agents = output.join("agents");
    if agents.exists() {
        fs::remove_dir_all(&agents)?;
    }
    fs::create_dir_all(&agents).with_context(|| format!("cannot make {}", agents.display()))?;
    for (arch, cpu) in PROCESSORS {
        match choose(&workspace, cpu, &host)? {
            Ok(chosen) => embed(&workspace, arch, &chosen, &agents)?,
            Err(reason) => println!("no agent for {arch}: {reason}"),
        }
    }
    let program = build(&workspace, flags, &target, &agents)?;
    let place = output.join(format!("{PROGRAM}-{}-{host}", env!("CARGO_PKG_VERSION")));
    fs::create_dir_all(&place)?;
    let shipped = place.join(PROGRAM);
    fs::copy(&program, &shipped).with_context(|| format!("cannot write {}", shipped.display()))?;
    fs::copy(workspace.root().join("LICENSE"), place.join("LICENSE"))?;
    println!("{}  {}", shipped.display(), size(&shipped)?);
    Ok(true)
}

/// The target to build the agent of a processor for; the reason if there is none.
fn choose(workspace: &Workspace, cpu: &str, host: &str) -> Result<Result<String, String>> {
    if host.starts_with(&format!("{cpu}-")) {
        return Ok(Ok(host.to_owned()));
    }
    let [musl, gnu] = ["musl", "gnu"].map(|libc| format!("{cpu}-unknown-linux-{libc}"));
    let linker = format!("{cpu}-linux-gnu-gcc");
    if is_installed(workspace, &musl)? {
        // Rust's own linker is enough for it.
        return Ok(Ok(musl));
    }
    if is_installed(workspace, &gnu)?
        && process::succeeds(workspace.command(&linker)?.arg("--version"))
    {
        return Ok(Ok(gnu));
    }
    Ok(Err(format!(
        "its target is not installed; run `rustup target add {musl}`"
    )))
}

/// Whether the toolchain has a target's standard library.
fn is_installed(workspace: &Workspace, target: &str) -> Result<bool> {
    let mut rustc = workspace.command("rustc")?;
    let place = process::output(rustc.args(["--print", "target-libdir", "--target", target]))?;
    Ok(Path::new(place.trim()).is_dir())
}

fn embed(workspace: &Workspace, arch: &str, target: &str, agents: &Path) -> Result<()> {
    let built = agent::build(workspace, Some(target))?;
    built.check()?;
    let packed = pack_as(&built, arch, agents)?;
    println!(
        "agent for {arch} ({target})  {}, {} compressed",
        built.size(),
        size(&packed)?
    );
    Ok(())
}

/// Compresses an agent for this machine's processor into a directory for [`EMBED`].
pub(crate) fn pack(built: &agent::Built, agents: &Path) -> Result<()> {
    let own = PROCESSORS
        .iter()
        .find(|(_, cpu)| *cpu == std::env::consts::ARCH);
    let (arch, _) = own.context("no sandbox has this machine's processor")?;
    pack_as(built, arch, agents).map(drop)
}

fn pack_as(built: &agent::Built, arch: &str, agents: &Path) -> Result<PathBuf> {
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
    target: &Path,
    agents: &Path,
) -> Result<PathBuf> {
    let (profile, directory) = match flags.dev {
        true => ("dev", "debug"),
        false => ("release", "release"),
    };
    let place = target.join("dist-build");
    let mut command = workspace.cargo(["build", "--locked", "--package", PACKAGE])?;
    command
        .args(["--profile", profile, "--target-dir"])
        .arg(&place)
        .env(EMBED, agents)
        .env("RUSTFLAGS", agent::remapped(workspace.root()).join(" "))
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("CARGO_INCREMENTAL", "0");
    process::run(&mut command).context("the program was not built")?;
    Ok(place.join(directory).join(PROGRAM))
}

fn size(path: &Path) -> Result<String> {
    Ok(agent::megabytes(fs::metadata(path)?.len()))
}
