//! A cargo project outside the workspace, with dependencies as written by a user.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::metadata::Package;
use crate::test_all::stage::Ctx;

/// A project to be written to the cache and built by cargo.
#[derive(Debug)]
pub(super) struct Project {
    /// The name of the directory and of the package.
    pub(super) name: String,
    /// The table `[dependencies]`, followed by further tables if needed.
    pub(super) list: String,
    pub(super) programs: Vec<Program>,
}

/// A program of a project.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) name: String,
    /// The path of its source in the project, which appears in compiler messages.
    pub(super) path: String,
    pub(super) source: String,
}

impl Project {
    pub(super) fn write(&self, ctx: &Ctx, own: &[&Package]) -> Result<()> {
        let project = ctx.workspace.cache("consumers").join(&self.name);
        let write = || {
            put(&project.join("Cargo.toml"), &self.manifest(own)?)?;
            for program in &self.programs {
                put(&project.join(&program.path), &program.source)?;
            }
            // The same versions as in the workspace. Cargo drops entries that are not
            // needed.
            let lock = ctx.workspace.root().join("Cargo.lock");
            fs::copy(lock, project.join("Cargo.lock"))?;
            anyhow::Ok(())
        };
        write().with_context(|| format!("cannot write {}", project.display()))
    }

    /// Creates a cargo command for the project.
    pub(super) fn cargo(&self, ctx: &Ctx, args: &[&str]) -> Result<Command> {
        let manifest = ctx.workspace.cache("consumers").join(&self.name);
        let mut command = ctx.workspace.cargo(args)?;
        command
            .arg("--quiet")
            .arg("--manifest-path")
            .arg(manifest.join("Cargo.toml"))
            // One target directory for all, because they share nearly every dependency.
            .env("CARGO_TARGET_DIR", ctx.workspace.cache("consumers-target"));
        Ok(command)
    }

    /// Returns the manifest. The list is used as it is, and our own crates come from
    /// the checkout.
    ///
    /// The empty `[workspace]` keeps the project out of any workspace above it.
    fn manifest(&self, own: &[&Package]) -> Result<String> {
        let Self { name, list, .. } = self;
        let table: toml::Table = list.parse().context("the list is not TOML")?;
        let is_named = |package: &&&Package| {
            let tables = table.values().filter_map(toml::Value::as_table);
            tables.into_iter().any(|it| it.contains_key(&package.name))
        };
        let patches = own.iter().filter(is_named).map(|package| {
            let dir = quoted(&package.dir().to_string_lossy());
            format!("{} = {{ path = {dir} }}\n", package.name)
        });
        let programs = self.programs.iter().map(|program| {
            let (name, path) = (quoted(&program.name), quoted(&program.path));
            format!("[[bin]]\nname = {name}\npath = {path}\n\n")
        });
        Ok(format!(
            "[package]\nname = \"consumer-{name}\"\nedition = \"2024\"\npublish = false\n\n\
             {list}\n[patch.crates-io]\n{}\n{}[lints.rust]\nwarnings = \"deny\"\n\n[workspace]\n",
            patches.collect::<String>(),
            programs.collect::<String>(),
        ))
    }
}

/// Quotes a string for TOML: a JSON string is also a TOML basic string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Writes a file unless it already has this content, because cargo rebuilds what is
/// newer.
fn put(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    Ok(fs::write(path, text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str) -> Package {
        let manifest = format!("/r/\"odd\"/{name}/Cargo.toml");
        let value = serde_json::json!({"name": name, "manifest_path": manifest});
        serde_json::from_value(value).unwrap()
    }

    fn project(list: &str) -> Project {
        let program = Program {
            name: "p".to_owned(),
            path: "docs/a.md/1.rs".to_owned(),
            source: String::new(),
        };
        Project {
            name: "x".to_owned(),
            list: list.to_owned(),
            programs: vec![program],
        }
    }

    #[test]
    fn the_list_is_kept_and_ours_come_from_the_checkout() {
        let list =
            "[dependencies]\na = \"0.1\"\ntokio = \"1\"\n\n[dev-dependencies]\nc = \"0.1\"\n";
        let own = ["a", "b", "c"].map(package);
        let text = project(list).manifest(&own.each_ref()).unwrap();
        assert!(text.contains(list), "{text}");
        let table: toml::Table = text.parse().unwrap();
        let patches = table["patch"]["crates-io"].as_table().unwrap();
        assert!(patches.keys().eq(["a", "c"]), "{text}");
        assert_eq!(patches["a"]["path"].as_str(), Some("/r/\"odd\"/a"));
        assert!(table["workspace"].as_table().unwrap().is_empty());
        assert_eq!(table["bin"][0]["path"].as_str(), Some("docs/a.md/1.rs"));
    }

    #[test]
    fn a_list_that_is_not_toml_is_refused() {
        let error = project("[dependencies]\na =\n").manifest(&[]).unwrap_err();
        assert_eq!(error.to_string(), "the list is not TOML");
    }
}
