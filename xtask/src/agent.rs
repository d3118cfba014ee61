//! `cargo xtask agent`: builds the agent that is placed in sandboxes.
//!
//! It is linked statically, so that it runs in any image. It has its own target
//! directory, so that its flags do not cause other builds to start over.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::sealed::Sealed;
use crate::workspace::{Workspace, host_target};
use crate::{flags, process};

/// The package, its program, and its profile in `Cargo.toml`.
pub(crate) const PACKAGE: &str = "agentbox-sandbox-agent";
pub(crate) const PROGRAM: &str = "sandbox-agent";
const PROFILE: &str = "agent";

/// Maximum size of the program, because it is placed in every sandbox. The last 0.2 MB are
/// for the websocket of `--listen`: some places offer nothing else, and without it every
/// operation there takes many requests. It has 4.22 MB for x86-64.
const MAX_BYTES: u64 = 4_300_000;

/// No shared libraries, and no position-independent code: the relocation table is a
/// tenth of the file.
const FLAGS: &[&str] = &["-Ctarget-feature=+crt-static", "-Crelocation-model=static"];

/// Builds the agent, prints its path, and fails if it has become too large.
pub(crate) fn run(flags: &flags::Agent) -> Result<bool> {
    let workspace = Workspace::discover()?;
    let built = build(&workspace, flags.target.as_deref())?;
    let path = match &flags.output {
        Some(directory) => built.copy_to(directory)?,
        None => built.path.clone(),
    };
    println!("{}  {}", path.display(), built.size());
    built.check()?;
    Ok(true)
}

/// The built program.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) path: PathBuf,
    bytes: u64,
}

impl Built {
    /// Formats its size for people.
    pub(crate) fn size(&self) -> String {
        megabytes(self.bytes)
    }

    /// Fails if the program is too large.
    pub(crate) fn check(&self) -> Result<()> {
        if self.bytes > MAX_BYTES {
            bail!(
                "the agent has {}, more than the {} it may have; look at what was added with \
                 `cargo tree -p {PACKAGE} -e normal`",
                self.size(),
                megabytes(MAX_BYTES)
            );
        }
        Ok(())
    }

    /// Copies it to `directory`, which is created if it is missing.
    fn copy_to(&self, directory: &Path) -> Result<PathBuf> {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        let path = directory.join(PROGRAM);
        // A running program cannot be written to, but it can be replaced.
        let fresh = directory.join(format!(".{PROGRAM}-{}", std::process::id()));
        fs::copy(&self.path, &fresh)
            .and_then(|_| fs::rename(&fresh, &path))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

/// Formats a number of bytes for people.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{}.{:02} MB", bytes / 1_000_000, bytes / 10_000 % 100)
}

/// Builds the agent for `target`, or for this machine. Cargo does nothing if nothing
/// has changed.
pub(crate) fn build(workspace: &Workspace, target: Option<&str>) -> Result<Built> {
    let own = host_target(workspace)?;
    let target = target.unwrap_or(&own).to_owned();
    let directory = workspace.metadata()?.target_directory.join(PROFILE);
    let args = [
        "build",
        "--locked",
        "--package",
        PACKAGE,
        "--profile",
        PROFILE,
    ];
    let mut command = workspace.cargo(args)?;
    command.args(["--target", &target, "--target-dir"]);
    command.arg(&directory);
    Sealed::new(workspace)?.seal(&mut command, FLAGS);
    if let Some((variable, linker)) = own_linker(&target, &own)
        && env::var_os(&variable).is_none()
    {
        command.env(variable, linker);
    }
    process::run(&mut command).with_context(|| {
        format!(
            "the agent was not built; if its target is missing, run `rustup target add {target}`"
        )
    })?;
    let path = directory.join(&target).join(PROFILE).join(PROGRAM);
    let bytes = fs::metadata(&path)
        .with_context(|| format!("cargo built no {}", path.display()))?
        .len();
    Ok(Built { path, bytes })
}

/// Returns the variable that sets a target's linker, and Rust's own linker, if that is
/// enough: musl comes with the target, and the agent contains no C.
fn own_linker(target: &str, host: &str) -> Option<(String, &'static str)> {
    if target == host || !target.ends_with("-musl") {
        return None;
    }
    let name = target.to_uppercase().replace('-', "_");
    Some((format!("CARGO_TARGET_{name}_LINKER"), "rust-lld"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(bytes: u64) -> Built {
        Built {
            path: PathBuf::new(),
            bytes,
        }
    }

    #[test]
    fn the_size_has_a_limit() {
        assert_eq!(built(3_456_789).size(), "3.45 MB");
        assert_eq!(built(40_000).size(), "0.04 MB");
        assert!(built(MAX_BYTES).check().is_ok());
        let error = built(MAX_BYTES + 20_000).check().unwrap_err().to_string();
        assert!(error.contains("4.32 MB, more than the 4.30 MB"), "{error}");
    }

    #[test]
    fn only_another_machines_musl_needs_no_linker_of_c() {
        let host = "x86_64-unknown-linux-gnu";
        let (variable, linker) = own_linker("aarch64-unknown-linux-musl", host).unwrap();
        assert_eq!(variable, "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER");
        assert_eq!(linker, "rust-lld");
        assert_eq!(own_linker(host, host), None);
        assert_eq!(own_linker("aarch64-unknown-linux-gnu", host), None);
        assert_eq!(
            own_linker("x86_64-unknown-linux-musl", "x86_64-unknown-linux-musl"),
            None
        );
    }
}
