//! Stage `consumers`: projects outside the workspace use the published crates.
//!
//! Inside the workspace, cargo unifies the features of all members, so a manifest with
//! a missing feature still builds. A project with a single dependency sees what a user
//! of that crate alone would see; with `--full` there is one for each crate. One with a few dependencies shows how they work
//! together without the rest. Code in Markdown is compiled as a reader would paste it,
//! and some programs are also run.

mod programs;
mod project;
mod snippets;

use anyhow::Result;

use self::project::{Program, Project};
use crate::metadata::Package;
use crate::process;
use crate::test_all::stage::{Ctx, Outcome};

/// Crates that are used together without our other crates, and a program that uses
/// them.
const TOGETHER: &[(&[&str], &str)] = &[(
    &["backend-state", "console-tools"],
    "fn main() -> Result<(), console_tools::BuildError> {\n    \
     let files = backend_state::StateBackend::new();\n    \
     console_tools::Toolset::builder(std::sync::Arc::new(files)).build().map(drop)\n}\n",
)];

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let metadata = ctx.workspace.metadata()?;
    let own: Vec<_> = metadata
        .packages
        .iter()
        .filter(|package| package.is_published_library())
        .collect();
    if own.is_empty() {
        return Ok(Outcome::Skipped("no crate is published".to_owned()));
    }
    // Each builds the dependencies with other features: minutes, for `--full`.
    let alone: &[_] = if ctx.is_full { &own } else { &[] };
    let projects = alone.iter().map(|package| self::alone(package));
    let together = TOGETHER.iter().map(|(names, body)| using(names, body));
    let mut failed = Vec::new();
    for project in projects.chain(together) {
        if let Err(error) = check(ctx, &own, &project) {
            eprintln!("error: {} does not build alone: {error:#}", project.name);
            failed.push(project.name);
        }
    }
    if let Err(error) = programs::run(ctx, &own) {
        eprintln!("error: {error:#}");
        failed.push("programs".to_owned());
    }
    let (n_snippets, bad_snippets) = snippets::check(ctx, &own)?;
    failed.extend(bad_snippets);
    let failed: Vec<_> = failed.iter().map(String::as_str).collect();
    let note = format!(
        "{} crates alone, {} sets, {} programs, {n_snippets} blocks in Markdown",
        alone.len(),
        TOGETHER.len(),
        programs::MAINS.len()
    );
    Ok(Outcome::unless_failed(&failed, note))
}

fn alone(package: &Package) -> Project {
    let library = package.library().unwrap_or_default();
    using(
        &[&package.name],
        &format!("use {library} as _;\n\nfn main() {{}}\n"),
    )
}

/// A project with one program and only these dependencies.
fn using(names: &[&str], source: &str) -> Project {
    let dependencies = names.iter().map(|name| format!("{name} = \"*\"\n"));
    let dependencies: String = dependencies.collect();
    Project {
        name: names.join("-and-"),
        list: format!("[dependencies]\n{dependencies}"),
        programs: vec![Program {
            name: "main".to_owned(),
            path: "main.rs".to_owned(),
            source: source.to_owned(),
        }],
    }
}

fn check(ctx: &Ctx, own: &[&Package], project: &Project) -> Result<()> {
    project.write(ctx, own)?;
    process::run(&mut project.cargo(ctx, &["check"])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_alone_is_the_only_dependency_and_used_by_its_library_name() {
        let json = r#"{"name": "a-b", "manifest_path": "/r/b/Cargo.toml",
                       "targets": [{"name": "b", "kind": ["lib"]}]}"#;
        let project = alone(&serde_json::from_str(json).unwrap());
        assert_eq!(project.list, "[dependencies]\na-b = \"*\"\n");
        assert_eq!(project.programs[0].source, "use b as _;\n\nfn main() {}\n");
    }
}
