//! Embeds agents built by `cargo xtask dist`. Without them, records the path of their
//! source.
#![allow(
    clippy::disallowed_methods,
    reason = "cargo tells a build script by variables"
)]

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// The variable that names a directory with `ARCH.gz` for each agent.
const AGENTS: &str = "AGENTBOX_EMBED_AGENTS";

/// The linker script that puts functions together.
const ORDER: &str = "data/order.ld";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={AGENTS}");
    let has = |feature: &str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    // `backend-local` needs Linux, and is optional there.
    println!("cargo::rustc-check-cfg=cfg(local)");
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if is_linux && has("LOCAL") {
        println!("cargo::rustc-cfg=local");
    }
    // Containers of this machine, of a cluster, or of a service.
    println!("cargo::rustc-check-cfg=cfg(containers)");
    if has("DAYTONA") || has("DOCKER") || has("K8S") {
        println!("cargo::rustc-cfg=containers");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    for argument in link_arguments(&out) {
        println!("cargo::rustc-link-arg-bins={argument}");
    }
    let table = match env::var_os(AGENTS).filter(|directory| !directory.is_empty()) {
        Some(directory) => embed(Path::new(&directory), &out)?,
        None => {
            remember_source();
            "[]".to_owned()
        }
    };
    fs::write(out.join("agents.rs"), format!("&{table}"))
}

/// Returns what the linker of a release is asked for, as far as it can do it.
///
/// - Relocations in the packed form are 0.6 MB smaller, and less to keep in memory. The
///   GNU C Library reads it since 2.36, and the program needs the version it was built with
///   anyway.
/// - Functions of which several have the same code are stored once.
/// - Functions that run before a server answers are put together. The kernel maps 64 KiB
///   around each address that is used, so a server would have most of the program in memory.
fn link_arguments(out: &Path) -> Vec<String> {
    println!("cargo::rerun-if-changed={ORDER}");
    let is = |name, value: &str| env::var(name).is_ok_and(|found| found == value);
    let is_native = env::var_os("HOST").is_some_and(|host| env::var_os("TARGET") == Some(host));
    let is_glibc = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if !is_glibc || !is_native || !is("PROFILE", "release") {
        return Vec::new();
    }
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut arguments = vec![
        "-Wl,--icf=all".to_owned(),
        format!("-Wl,-T,{}", own.join(ORDER).display()),
    ];
    if has_packed_relocations() {
        arguments.push("-Wl,-z,pack-relative-relocs".to_owned());
    }
    arguments.retain(|argument| links(out, argument));
    arguments
}

fn has_packed_relocations() -> bool {
    let mut getconf = Command::new("getconf");
    let Ok(found) = getconf.arg("GNU_LIBC_VERSION").output() else {
        return false;
    };
    let version = String::from_utf8_lossy(&found.stdout);
    let version = version.trim().strip_prefix("glibc 2.");
    version.and_then(|minor| minor.parse().ok()) >= Some(36)
}

/// Whether the linker that will link the program links an empty one with this argument.
fn links(out: &Path, argument: &str) -> bool {
    let program = out.join("empty.rs");
    let Some(rustc) = env::var_os("RUSTC") else {
        return false;
    };
    if fs::write(&program, "fn main() {}").is_err() {
        return false;
    }
    let mut command = Command::new(rustc);
    command.args(["--edition", "2024", "-o"]);
    command.arg(out.join("empty")).arg(program);
    command.arg(format!("-Clink-arg={argument}"));
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = OsString::from("-Clinker=");
        option.push(linker);
        command.arg(option);
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    command.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    command.output().is_ok_and(|linked| linked.status.success())
}

/// Copies the agents to where the program includes them from.
fn embed(directory: &Path, out: &Path) -> io::Result<String> {
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut table = "[".to_owned();
    let mut found: Vec<_> = fs::read_dir(directory)?.collect::<Result<_, _>>()?;
    found.sort_unstable_by_key(fs::DirEntry::file_name);
    for entry in found {
        let name = entry.file_name();
        let Some(arch) = name.to_str().and_then(|name| name.strip_suffix(".gz")) else {
            continue;
        };
        println!("cargo::rerun-if-changed={}", entry.path().display());
        fs::copy(entry.path(), out.join(&name))?;
        let place = format!("concat!(env!(\"OUT_DIR\"), \"/{arch}.gz\")");
        let _ = write!(table, "({arch:?}, include_bytes!({place}).as_slice()),");
    }
    table.push(']');
    Ok(table)
}

/// Records the source of the agent. A program built from a checkout can build its agent
/// from there; one built from its package has no such directory beside it.
fn remember_source() {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let agent = own.with_file_name("sandbox-agent");
    if agent.join("Cargo.toml").is_file() {
        // `cargo run` passes it on to the program, which takes `AGENTBOX_…` for settings.
        println!("cargo::rustc-env=SANDBOX_AGENT_SOURCE={}", agent.display());
    }
}
