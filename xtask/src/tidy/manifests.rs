//! What the manifest of every member has in common with the others.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use crate::metadata::Metadata;
use crate::tidy::findings::Finding;

/// Keys of `[package]` whose value the workspace decides.
const INHERITED: &[&str] = &["edition", "license", "version"];

/// Tables of dependencies, at the top and under `[target.*]`.
const DEPENDENCY_TABLES: &[&str] = &["build-dependencies", "dependencies", "dev-dependencies"];

/// The manifest of one member.
#[derive(Debug)]
pub(super) struct Manifest {
    /// The member's directory from the root of the repository.
    dir: String,
    table: Table,
}

impl Manifest {
    fn path(&self) -> String {
        format!("{}/Cargo.toml", self.dir)
    }

    fn package(&self, key: &str) -> Option<&Value> {
        self.table.get("package")?.get(key)
    }
}

/// Reads the manifests of all members.
pub(super) fn read(root: &Path, metadata: &Metadata) -> Result<Vec<Manifest>> {
    let read_one = |path: &Path| {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let table = text
            .parse()
            .with_context(|| format!("cannot parse {}", path.display()))?;
        let dir = path.parent().unwrap_or(path);
        let dir = dir
            .strip_prefix(root)
            .unwrap_or(dir)
            .to_string_lossy()
            .into_owned();
        Ok(Manifest { dir, table })
    };
    metadata
        .packages
        .iter()
        .map(|package| read_one(&package.manifest_path))
        .collect()
}

/// All rules for one manifest; `exists` is asked with paths from the root of the repository.
pub(super) fn check(manifest: &Manifest, exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut found = check_inherited(manifest);
    found.extend(check_published(manifest, exists));
    found
}

/// Every member: lints, package keys and dependencies come from the workspace.
fn check_inherited(manifest: &Manifest) -> Vec<Finding> {
    let mut messages = Vec::new();
    if !manifest.table.get("lints").is_some_and(is_inherited) {
        messages.push("`[lints] workspace = true` is missing".to_owned());
    }
    for key in INHERITED {
        if !manifest.package(key).is_some_and(is_inherited) {
            messages.push(format!("`{key}.workspace = true` is missing in [package]"));
        }
    }
    for (name, value) in dependencies(&manifest.table) {
        if !is_inherited(value) {
            messages.push(format!("dependency `{name}` needs `workspace = true`"));
        }
    }
    messages
        .into_iter()
        .map(|message| Finding::error(&manifest.path(), message))
        .collect()
}

/// The crates under `crates/`: they are what others get to see.
fn check_published(manifest: &Manifest, exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut found = Vec::new();
    if !manifest.dir.starts_with("crates/") {
        return found;
    }
    let description = manifest
        .package("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if description.trim().is_empty() {
        found.push(Finding::error(
            &manifest.path(),
            "`description` is missing or empty",
        ));
    }
    let readme = format!("{}/README.md", manifest.dir);
    if !exists(&readme) {
        found.push(Finding::error(&readme, "the crate has no README.md"));
    }
    found
}

fn is_inherited(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

/// All dependencies of a manifest, those for one platform included.
fn dependencies(table: &Table) -> impl Iterator<Item = (&String, &Value)> {
    let targets = table.get("target").and_then(Value::as_table).into_iter();
    let targets = targets.flat_map(Table::values).filter_map(Value::as_table);
    std::iter::once(table)
        .chain(targets)
        .flat_map(|table| DEPENDENCY_TABLES.iter().filter_map(|name| table.get(*name)))
        .filter_map(Value::as_table)
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::findings::shown;

    const GOOD: &str = r#"
        [package]
        name = "a"
        description = "Does a thing"
        version.workspace = true
        edition.workspace = true
        license.workspace = true

        [lints]
        workspace = true

        [dependencies]
        bytes.workspace = true
        serde = { workspace = true, features = ["rc"] }
    "#;

    fn manifest(dir: &str, text: &str) -> Manifest {
        Manifest {
            dir: dir.to_owned(),
            table: text.parse().unwrap(),
        }
    }

    #[test]
    fn a_member_that_inherits_everything_is_fine() {
        let exists = |path: &str| path == "crates/a/README.md";
        assert_eq!(check(&manifest("crates/a", GOOD), &exists), []);
    }

    #[test]
    fn own_values_are_refused() {
        let text = GOOD.replace("version.workspace = true", "version = \"1.0.0\"");
        let text = text.replace("workspace = true\n\n        [dep", "\n        [dep");
        let expected = [
            "a/Cargo.toml: error: `[lints] workspace = true` is missing",
            "a/Cargo.toml: error: `version.workspace = true` is missing in [package]",
        ];
        assert_eq!(shown(&check(&manifest("a", &text), &|_| false)), expected);
    }

    #[test]
    fn every_kind_of_dependency_is_inherited() {
        for table in [
            "dependencies.x",
            "dev-dependencies.x",
            "target.'cfg(unix)'.dependencies.x",
        ] {
            let text = GOOD.replace("[dependencies]", "[build-dependencies]");
            let text = format!("{text}\n[{table}]\nversion = \"1\"\n");
            let expected = ["a/Cargo.toml: error: dependency `x` needs `workspace = true`"];
            assert_eq!(
                shown(&check(&manifest("a", &text), &|_| false)),
                expected,
                "{table}"
            );
        }
    }

    #[test]
    fn a_published_crate_says_what_it_is() {
        let text = GOOD.replace("Does a thing", " ");
        let expected = [
            "crates/a/Cargo.toml: error: `description` is missing or empty",
            "crates/a/README.md: error: the crate has no README.md",
        ];
        assert_eq!(
            shown(&check(&manifest("crates/a", &text), &|_| false)),
            expected
        );
        assert_eq!(check(&manifest("xtask", &text), &|_| false), []);
    }
}
