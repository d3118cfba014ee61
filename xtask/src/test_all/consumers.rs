//! Stage `consumers`: each published crate is built by a project outside the workspace.
//!
//! Inside the workspace cargo unifies the features of all members, so a
//! manifest that forgets one still builds. A project with a single dependency
//! sees what a user of that crate alone would see, and one with a few what they
//! are to each other without the rest. Some programs are run, too.

mod programs;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::metadata::Package;
use crate::process;
use crate::test_all::{Ctx, Outcome};

/// Crates that are used together and with no other of ours, and what is done with them.
const TOGETHER: &[(&[&str], &str)] = &[(
    &["backend-state", "console-tools"],
    "pub fn tools() -> Result<console_tools::Toolset, console_tools::BuildError> {\n    \
     let files = backend_state::StateBackend::new();\n    \
     console_tools::Toolset::builder(std::sync::Arc::new(files)).build()\n}\n",
)];

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
    let alone = packages.iter().map(|package| (vec![*package], ""));
    let find = |name: &str| packages.iter().find(|package| package.name == name);
    let together = TOGETHER.iter().map(|(names, body)| {
        let all: Vec<_> = names
            .iter()
            .filter_map(|name| find(name))
            .copied()
            .collect();
        (all, *body)
    });
    let mut failed = Vec::new();
    for (packages, body) in alone.chain(together) {
        if let Err(error) = check(ctx, &packages, body) {
            eprintln!("error: {error:#}");
            failed.push(joined(&packages));
        }
    }
    let needed = ["backend-core", "backend-local"]
        .into_iter()
        .filter_map(find);
    let needed: Vec<_> = needed.map(|it| (it.name.as_str(), it.dir())).collect();
    if let Err(error) = programs::run(ctx, &needed) {
        eprintln!("error: {error:#}");
        failed.push("programs".to_owned());
    }
    let failed: Vec<_> = failed.iter().map(String::as_str).collect();
    let note = format!(
        "{} crates, {} sets, {} programs",
        packages.len(),
        TOGETHER.len(),
        programs::MAINS.len()
    );
    Ok(Outcome::unless_failed(&failed, note))
}

fn joined(packages: &[&Package]) -> String {
    let names: Vec<_> = packages.iter().map(|package| &*package.name).collect();
    names.join("-and-")
}

fn check(ctx: &Ctx, packages: &[&Package], body: &str) -> Result<()> {
    let name = joined(packages);
    let project = ctx.workspace.cache("consumers").join(&name);
    let lock = ctx.workspace.root().join("Cargo.lock");
    write_project(&project, packages, body, &lock)
        .with_context(|| format!("cannot write {}", project.display()))?;
    let mut command = ctx
        .workspace
        .cargo(["check", "--quiet", "--manifest-path"])?;
    // One target directory for all: they share nearly every dependency.
    command
        .arg(project.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", ctx.workspace.cache("consumers-target"));
    process::run(&mut command).with_context(|| format!("{name} does not build alone"))
}

fn write_project(project: &Path, packages: &[&Package], body: &str, lock: &Path) -> Result<()> {
    fs::create_dir_all(project.join("src"))?;
    let crates: Vec<_> = packages
        .iter()
        .map(|package| (package.name.as_str(), package.dir()))
        .collect();
    fs::write(
        project.join("Cargo.toml"),
        manifest(&joined(packages), &crates),
    )?;
    let libraries: Vec<_> = packages.iter().filter_map(|it| it.library()).collect();
    fs::write(project.join("src/lib.rs"), source(&libraries, body))?;
    // The same versions as in the workspace; cargo drops the entries that are not needed.
    fs::copy(lock, project.join("Cargo.lock"))?;
    Ok(())
}

/// The empty `[workspace]` keeps the project out of any workspace above it.
fn manifest(name: &str, crates: &[(&str, &Path)]) -> String {
    let dependency = |(name, dir): &(&str, &Path)| {
        // A JSON string is also a TOML basic string, whatever the path contains.
        let dir = serde_json::Value::from(dir.to_string_lossy());
        format!("{name} = {{ path = {dir} }}\n")
    };
    let dependencies: String = crates.iter().map(dependency).collect();
    format!(
        "[package]\nname = \"consumer-of-{name}\"\nedition = \"2024\"\npublish = false\n\n\
         [dependencies]\n{dependencies}\n[workspace]\n"
    )
}

fn source(names: &[&str], body: &str) -> String {
    let uses = names.iter().map(|name| format!("use {name} as _;\n"));
    let uses: String = uses.collect();
    let names = names.join("` and `");
    format!("//! Uses `{names}` and nothing else.\n\n{uses}\n{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_depends_on_one_crate_and_on_no_workspace() {
        let dir = Path::new("/r/\"odd\"/backend-core");
        let text = manifest("backend-core", &[("backend-core", dir)]);
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
    fn the_source_uses_the_crates() {
        let alone = source(&["backend_core"], "");
        assert!(alone.ends_with("use backend_core as _;\n\n"), "{alone}");
        let together = source(&["a_b", "c"], "fn f() {}\n");
        assert!(together.ends_with("use a_b as _;\nuse c as _;\n\nfn f() {}\n"));
        assert!(together.starts_with("//! Uses `a_b` and `c` and"));
    }

    #[test]
    fn crates_that_are_used_together_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        for name in TOGETHER.iter().flat_map(|(names, _)| *names) {
            assert!(root.join(name).is_dir(), "{name}");
        }
    }
}
