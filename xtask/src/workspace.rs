//! Where the repository and the cache are, and child processes that see both.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::metadata::Metadata;
use crate::process;

/// The repository that is worked on, and the directory that may be filled.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    cache: PathBuf,
}

impl Workspace {
    pub(crate) fn discover() -> Result<Self> {
        // Asked at run time first: two checkouts that share a target directory share this binary.
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

    /// A directory or file of the cache; nothing is created.
    pub(crate) fn cache(&self, relative: &str) -> PathBuf {
        self.cache.join(relative)
    }

    /// Where `cargo install` puts the tools that are not part of the toolchain.
    pub(crate) fn tools(&self) -> PathBuf {
        self.cache("tools")
    }

    /// A command that starts in the repository and finds the cached tools first.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        let mut command = Command::new(program);
        command
            .current_dir(&self.root)
            .env("PATH", self.search_path()?);
        Ok(command)
    }

    /// `cargo` with arguments; see [`Self::command`].
    pub(crate) fn cargo<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
    ) -> Result<Command> {
        let mut command = self.command("cargo")?;
        command.args(args);
        Ok(command)
    }

    /// Whether `program` would be found by [`Self::command`].
    pub(crate) fn has_program(&self, program: &str) -> Result<bool> {
        let path = self.search_path()?;
        Ok(env::split_paths(&path).any(|dir| dir.join(program).is_file()))
    }

    /// The members of the workspace as cargo sees them.
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

/// `$XTASK_CACHE`, else `$XDG_CACHE_HOME/agentbox`, else `~/.cache/agentbox`.
///
/// A relative path is taken from the current directory, because children run elsewhere.
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
