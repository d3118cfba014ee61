//! Stage `consumers`: each published crate is built by a project outside the workspace.
//!
//! Inside the workspace cargo unifies the features of all members, so a
//! manifest that forgets one still builds. A project with a single dependency
//! sees what a user of that crate alone would see.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::metadata::Package;
use crate::process;
use crate::test_all::{Ctx, Outcome};

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let metadata = ctx.workspace.metadata()?;
    let crates = ctx.workspace.root().join("crates");
    let packages: Vec<_> = metadata
        .packages
        .iter()
        .filter(|package| package.dir().starts_with(&crates) && package.is_published_library())
        .collect();
    if packages.is_empty() {
        return Ok(Outcome::Skipped("no crate is published".to_owned()));
    }
    let mut failed = Vec::new();
    for package in &packages {
        if let Err(error) = check(ctx, package) {
            eprintln!("error: {error:#}");
            failed.push(package.name.as_str());
        }
    }
    let note = format!("{} crates", packages.len());
    Ok(Outcome::unless_failed(&failed, note))
}

fn check(ctx: &Ctx, package: &Package) -> Result<()> {
    let project = ctx.workspace.cache("consumers").join(&package.name);
    write_project(&project, package, &ctx.workspace.root().join("Cargo.lock"))
        .with_context(|| format!("cannot write {}", project.display()))?;
    let mut command = ctx
        .workspace
        .cargo(["check", "--quiet", "--manifest-path"])?;
    // One target directory for all: they share nearly every dependency.
    command
        .arg(project.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", ctx.workspace.cache("consumers-target"));
    process::run(&mut command).with_context(|| format!("{} does not build alone", package.name))
}

fn write_project(project: &Path, package: &Package, lock: &Path) -> Result<()> {
    fs::create_dir_all(project.join("src"))?;
    fs::write(
        project.join("Cargo.toml"),
        manifest(&package.name, package.dir()),
    )?;
    fs::write(project.join("src/lib.rs"), source(&package.name))?;
    // The same versions as in the workspace; cargo drops the entries that are not needed.
    fs::copy(lock, project.join("Cargo.lock"))?;
    Ok(())
}

/// The empty `[workspace]` keeps the project out of any workspace above it.
fn manifest(name: &str, dir: &Path) -> String {
    // A JSON string is also a TOML basic string, whatever the path contains.
    let dir = serde_json::Value::from(dir.to_string_lossy());
    format!(
        "[package]\nname = \"consumer-of-{name}\"\nedition = \"2024\"\npublish = false\n\n\
         [dependencies]\n{name} = {{ path = {dir} }}\n\n[workspace]\n"
    )
}

fn source(name: &str) -> String {
    format!(
        "//! Uses `{name}` and nothing else.\n\nuse {} as _;\n",
        name.replace('-', "_")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_depends_on_one_crate_and_on_no_workspace() {
        let text = manifest("backend-core", Path::new("/r/\"odd\"/backend-core"));
        let table: toml::Table = text.parse().unwrap();
        let dependencies = table["dependencies"].as_table().unwrap();
        assert_eq!(dependencies.len(), 1);
        assert_eq!(
            dependencies["backend-core"]["path"].as_str(),
            Some("/r/\"odd\"/backend-core")
        );
        assert!(table["workspace"].as_table().unwrap().is_empty());
    }

    #[test]
    fn the_source_uses_the_crate() {
        assert!(source("backend-core").ends_with("use backend_core as _;\n"));
    }
}
