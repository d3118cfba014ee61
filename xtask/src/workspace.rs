//! The locations of the repository and the cache, and child processes that use them.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::metadata::Metadata;
use crate::process;

/// The repository, and the cache directory.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    cache: PathBuf,
}

impl Workspace {
    pub(crate) fn discover() -> Result<Self> {
        // The variable at run time takes precedence, because two checkouts that share a
        // target directory share this binary.
        let manifest_dir = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest_dir
            .parent()
            .context("the xtask crate has no parent directory")?;
        let cache = cache_dir(|name| env::var_os(name))?;
        Ok(Self {
            root: root.to_owned(),
            cache,
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns a path in the cache. Nothing is created.
    pub(crate) fn cache(&self, relative: &str) -> PathBuf {
        self.cache.join(relative)
    }

    /// Returns the directory where `cargo install` puts tools that are not part of the
    /// toolchain.
    pub(crate) fn tools(&self) -> PathBuf {
        self.cache("tools")
    }

    /// Creates a command that starts in the repository and finds the cached tools
    /// first.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        let mut command = Command::new(program);
        command
            .current_dir(&self.root)
            .env("PATH", self.search_path()?);
        Ok(command)
    }

    /// Creates a `cargo` command; see [`Self::command`].
    pub(crate) fn cargo<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
    ) -> Result<Command> {
        let mut command = self.command("cargo")?;
        command.args(args);
        for (name, _) in env::vars_os().filter(|(name, _)| is_of_package(name)) {
            command.env_remove(name);
        }
        Ok(command)
    }

    /// Whether [`Self::command`] would find `program`.
    pub(crate) fn has_program(&self, program: &str) -> Result<bool> {
        let path = self.search_path()?;
        Ok(env::split_paths(&path).any(|dir| dir.join(program).is_file()))
    }

    /// Whether the standard library for `target` is installed.
    pub(crate) fn has_target(&self, target: &str) -> Result<bool> {
        let args = ["--print", "target-libdir", "--target", target];
        let directory = process::output(self.command("rustc")?.args(args))?;
        Ok(Path::new(directory.trim()).is_dir())
    }

    /// Returns the directory of rustc's LLVM tools: the toolchain's own, else Debian's
    /// of the same version.
    pub(crate) fn llvm_tools(&self) -> Result<Option<PathBuf>> {
        let sysroot = process::output(self.command("rustc")?.args(["--print", "sysroot"]))?;
        let own = Path::new(sysroot.trim())
            .join("lib/rustlib")
            .join(host_target(self)?)
            .join("bin");
        let debian = PathBuf::from(format!("/usr/lib/llvm-{}/bin", llvm_major(self)?));
        Ok([own, debian]
            .into_iter()
            .find(|dir| dir.join("llvm-cov").is_file()))
    }

    /// Returns the members of the workspace as seen by cargo.
    pub(crate) fn metadata(&self) -> Result<Metadata> {
        let args = ["metadata", "--format-version", "1", "--no-deps"];
        let json = process::output(&mut self.cargo(args)?)?;
        serde_json::from_str(&json).context("cargo metadata printed something unexpected")
    }

    fn search_path(&self) -> Result<OsString> {
        let inherited = env::var_os("PATH").unwrap_or_default();
        let dirs = [self.tools().join("bin")]
            .into_iter()
            .chain(env::split_paths(&inherited));
        env::join_paths(dirs).context("the cache directory cannot be part of PATH")
    }
}

/// Returns the directory of cargo's registry and settings.
pub(crate) fn cargo_home() -> Result<PathBuf> {
    let named = env::var_os("CARGO_HOME").map(PathBuf::from);
    let usual = || Some(PathBuf::from(env::var_os("HOME")?).join(".cargo"));
    named.or_else(usual).context("set HOME or CARGO_HOME")
}

/// Returns the default target of rustc.
pub(crate) fn host_target(workspace: &Workspace) -> Result<String> {
    rustc_fact(workspace, "host")
}

/// Returns the commit that rustc was built from. The paths of the standard library
/// begin with it.
pub(crate) fn rustc_commit(workspace: &Workspace) -> Result<String> {
    rustc_fact(workspace, "commit-hash")
}

/// Returns the version of rustc, as in `1.95.0`.
pub(crate) fn rust_release(workspace: &Workspace) -> Result<String> {
    rustc_fact(workspace, "release")
}

/// Returns the major version of rustc's LLVM.
pub(crate) fn llvm_major(workspace: &Workspace) -> Result<String> {
    let version = rustc_fact(workspace, "LLVM version")?;
    Ok(version.split('.').next().unwrap_or_default().to_owned())
}

fn rustc_fact(workspace: &Workspace, name: &str) -> Result<String> {
    let text = process::output(workspace.command("rustc")?.arg("-vV"))?;
    fact(&text, name)
}

/// Returns the value after `name:` in the output of `rustc -vV`.
fn fact(text: &str, name: &str) -> Result<String> {
    let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(": ")?.to_owned());
    let found = text.lines().find_map(value);
    found.with_context(|| format!("rustc does not tell its {name}"))
}

/// Whether a variable is one that cargo sets for the program of a package, as it did for this
/// one. Build scripts that ask for such variables would run again, and all that depends on them
/// would be compiled again, whenever cargo is run by this program and then by hand.
fn is_of_package(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b"CARGO_PKG_") || name.starts_with(b"CARGO_MANIFEST_")
}

/// Returns `$XTASK_CACHE`, else `$XDG_CACHE_HOME/agentbox`, else `~/.cache/agentbox`.
///
/// A relative path is resolved against the current directory, because children run
/// elsewhere.
fn cache_dir(var: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf> {
    let var = |name| {
        var(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let dir = var("XTASK_CACHE")
        .or_else(|| var("XDG_CACHE_HOME").map(|dir| dir.join("agentbox")))
        .or_else(|| var("HOME").map(|dir| dir.join(".cache/agentbox")))
        .context("no cache directory: set XTASK_CACHE")?;
    std::path::absolute(dir).context("the cache directory has no absolute path")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache_for(vars: &[(&str, &str)]) -> Option<PathBuf> {
        let var = |name: &str| {
            let (_, value) = vars.iter().find(|(key, _)| *key == name)?;
            Some(OsString::from(value))
        };
        cache_dir(var).ok()
    }

    #[test]
    fn most_specific_cache_variable_wins() {
        let home = ("HOME", "/h");
        let xdg = ("XDG_CACHE_HOME", "/x");
        let own = ("XTASK_CACHE", "/own");
        assert_eq!(cache_for(&[home, xdg, own]), Some("/own".into()));
        assert_eq!(cache_for(&[home, xdg]), Some("/x/agentbox".into()));
        assert_eq!(cache_for(&[home]), Some("/h/.cache/agentbox".into()));
        assert_eq!(cache_for(&[]), None);
    }

    #[test]
    fn cargo_compiles_the_same_as_by_hand() {
        let workspace = Workspace::discover().unwrap();
        let cargo = workspace.cargo(["check"]).unwrap();
        let removed: Vec<_> = cargo
            .get_envs()
            .filter(|(_, value)| value.is_none())
            .collect();
        for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME"] {
            assert!(env::var_os(name).is_some(), "set for this test");
            assert!(
                removed.iter().any(|(removed, _)| *removed == name),
                "{name}"
            );
        }
    }

    #[test]
    fn rustc_tells_its_target_and_llvm() {
        let text =
            "rustc 1.95.0\nbinary: rustc\nhost: aarch64-unknown-linux-gnu\nLLVM version: 22.1.2\n";
        assert_eq!(fact(text, "host").unwrap(), "aarch64-unknown-linux-gnu");
        assert_eq!(fact(text, "LLVM version").unwrap(), "22.1.2");
        assert!(fact("rustc 1.95.0", "host").is_err());
    }

    #[test]
    fn empty_variable_counts_as_unset() {
        let vars = [("XTASK_CACHE", ""), ("HOME", "/h")];
        assert_eq!(cache_for(&vars), Some("/h/.cache/agentbox".into()));
    }

    #[test]
    fn relative_cache_becomes_absolute() {
        let dir = cache_for(&[("XTASK_CACHE", "cache")]).unwrap();
        assert!(dir.is_absolute() && dir.ends_with("cache"));
    }
}
