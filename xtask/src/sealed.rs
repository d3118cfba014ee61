//! Builds that contain no trace of the local directory, home and settings.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::process;
use crate::workspace::{Workspace, cargo_home, rustc_commit};

/// The separator of flags in `CARGO_ENCODED_RUSTFLAGS`, which allows spaces in paths.
const SEPARATOR: &str = "\u{1f}";

/// The directories of this machine that rustc would write into a program, and their
/// replacements.
#[derive(Debug)]
pub(crate) struct Sealed {
    paths: Vec<(PathBuf, String)>,
}

impl Sealed {
    pub(crate) fn new(workspace: &Workspace) -> Result<Self> {
        let mut rustc = workspace.command("rustc")?;
        let sysroot = process::output(rustc.args(["--print", "sysroot"]))?;
        let commit = rustc_commit(workspace)?;
        let paths = vec![
            // The last match counts: the target directory may be below the root.
            (workspace.root().to_owned(), "/agentbox".to_owned()),
            (workspace.metadata()?.target_directory, "/target".to_owned()),
            (cargo_home()?, "/cargo".to_owned()),
            // If the sources of std are installed, its paths are those of this machine.
            (
                Path::new(sysroot.trim()).join("lib/rustlib/src/rust"),
                format!("/rustc/{commit}"),
            ),
        ];
        Ok(Self { paths })
    }

    /// Makes cargo build with these rustc flags and no others, and with the profiles of
    /// the manifest.
    pub(crate) fn seal<'c>(&self, command: &'c mut Command, flags: &[&str]) -> &'c mut Command {
        for (name, _) in env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"CARGO_PROFILE_") {
                command.env_remove(name);
            }
        }
        command
            .env("CARGO_ENCODED_RUSTFLAGS", self.rustflags(flags))
            .env("CARGO_INCREMENTAL", "0")
            // For the C code of dependencies, whose compiler writes directories too.
            .env("CFLAGS", self.cflags())
            .env_remove("RUSTFLAGS")
            .env_remove("RUSTC_BOOTSTRAP")
    }

    fn cflags(&self) -> String {
        let remapped = self
            .paths
            .iter()
            .map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display()));
        remapped.collect::<Vec<_>>().join(" ")
    }

    fn rustflags(&self, flags: &[&str]) -> String {
        let flags = flags.iter().map(|flag| (*flag).to_owned());
        let remapped = self
            .paths
            .iter()
            .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()));
        flags.chain(remapped).collect::<Vec<_>>().join(SEPARATOR)
    }

    /// Fails if a program contains one of the directories.
    pub(crate) fn check(&self, program: &[u8]) -> Result<()> {
        let text = String::from_utf8_lossy(program);
        for (from, to) in &self.paths {
            let found = format!("{}/", from.display());
            // If the directory equals its replacement, nothing can be detected.
            if from != Path::new(to) && text.contains(&found) {
                bail!("the program names {found}; look for it with `strings -n 8`");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> Sealed {
        let path = |from: &str, to: &str| (PathBuf::from(from), to.to_owned());
        Sealed {
            paths: vec![path("/some where", "/agentbox"), path("/cargo", "/cargo")],
        }
    }

    #[test]
    fn flags_hide_the_paths_and_nothing_else_counts() {
        let mut command = Command::new("cargo");
        sealed().seal(&mut command, &["-C", "x=y"]);
        let value = |name: &str| {
            let (_, value) = command.get_envs().find(|(key, _)| *key == name)?;
            value?.to_str()
        };
        assert_eq!(
            value("CARGO_ENCODED_RUSTFLAGS"),
            Some(
                "-C\u{1f}x=y\u{1f}--remap-path-prefix=/some where=/agentbox\
                 \u{1f}--remap-path-prefix=/cargo=/cargo"
            )
        );
        assert_eq!(value("CARGO_INCREMENTAL"), Some("0"));
        let removed = |name: &str| command.get_envs().any(|var| var == (name.as_ref(), None));
        assert!(removed("RUSTFLAGS") && removed("RUSTC_BOOTSTRAP"));
    }

    #[test]
    fn a_program_that_names_a_path_is_refused() {
        let error = sealed().check(b"\xff\0/some where/src/x.rs\0").unwrap_err();
        assert!(error.to_string().contains("names /some where/;"), "{error}");
        sealed()
            .check(b"\xff/agentbox/src/x.rs /cargo/registry /some wheres")
            .unwrap();
    }
}
