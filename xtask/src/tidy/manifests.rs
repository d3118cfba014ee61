//! Rules for the manifests of all members.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use crate::metadata::Metadata;
use crate::tidy::findings::Finding;

/// Keys of `[package]` whose value is inherited from the workspace.
const INHERITED: &[&str] = &["edition", "license", "rust-version", "version"];

/// The same for published packages.
const INHERITED_BY_PUBLISHED: &[&str] = &["include", "repository"];

/// The maximum on crates.io.
const MAX_KEYWORDS: usize = 5;

/// The category slugs of crates.io that are in use here. It does not show a crate under
/// unknown ones.
const CATEGORIES: &[&str] = &[
    "api-bindings",
    "asynchronous",
    "command-line-interface",
    "command-line-utilities",
    "concurrency",
    "config",
    "development-tools",
    "development-tools::testing",
    "filesystem",
    "network-programming",
    "os::unix-apis",
    "parser-implementations",
    "text-editors",
    "text-processing",
    "virtualization",
];

/// Dependency tables, at the top level and under `[target.*]`.
const DEPENDENCY_TABLES: &[&str] = &["build-dependencies", "dependencies", DEV];
const DEV: &str = "dev-dependencies";

/// The manifest of a member.
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

    fn is_published(&self) -> bool {
        self.package("publish").and_then(Value::as_bool) != Some(false)
    }
}

/// The members among the root manifest's dependencies, each with whether it has a
/// version.
#[derive(Debug)]
pub(super) struct Members(Vec<(String, bool)>);

impl Members {
    fn new(root: &Table) -> Self {
        let all = root.get("workspace").and_then(|it| it.get("dependencies"));
        let all = all.and_then(Value::as_table).into_iter().flatten();
        let own = all.filter(|(_, value)| value.get("path").is_some());
        Self(
            own.map(|(name, value)| (name.clone(), value.get("version").is_some()))
                .collect(),
        )
    }

    fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|(member, _)| member == name)
    }

    /// Checks that every member has a version, which published packages need.
    pub(super) fn check(&self) -> Vec<Finding> {
        let without = self.0.iter().filter(|(_, has_version)| !has_version);
        without
            .map(|(name, _)| {
                let message = format!("`{name}` needs a `version` in [workspace.dependencies]");
                Finding::error("Cargo.toml", message)
            })
            .collect()
    }
}

fn read_table(path: &Path) -> Result<Table> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.parse()
        .with_context(|| format!("cannot parse {}", path.display()))
}

/// Reads the root manifest for its members.
pub(super) fn read_members(root: &Path) -> Result<Members> {
    Ok(Members::new(&read_table(&root.join("Cargo.toml"))?))
}

/// Reads the manifests of all members.
pub(super) fn read(root: &Path, metadata: &Metadata) -> Result<Vec<Manifest>> {
    let read_one = |path: &Path| {
        let table = read_table(path)?;
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

/// Applies all rules to one manifest. `is_same` says whether two paths from the root of
/// the repository have the same content.
pub(super) fn check(
    manifest: &Manifest,
    members: &Members,
    exists: &dyn Fn(&str) -> bool,
    is_same: &dyn Fn(&str, &str) -> bool,
) -> Vec<Finding> {
    let mut found = check_inherited(manifest, members);
    if manifest.is_published() {
        found.extend(check_published(manifest, exists, is_same));
    }
    found
}

/// Rules for every member: lints, package keys and dependencies come from the
/// workspace.
fn check_inherited(manifest: &Manifest, members: &Members) -> Vec<Finding> {
    let mut messages = Vec::new();
    if !manifest.table.get("lints").is_some_and(is_inherited) {
        messages.push("`[lints] workspace = true` is missing".to_owned());
    }
    for key in INHERITED {
        if !manifest.package(key).is_some_and(is_inherited) {
            messages.push(format!("`{key}.workspace = true` is missing in [package]"));
        }
    }
    for (table, name, value) in dependencies(&manifest.table) {
        if table == DEV && manifest.is_published() && members.contains(name) {
            if value.get("path").is_none() || value.get("version").is_some() {
                // Cargo removes a dependency without a version from the package. With a
                // version, crates that test each other could not be published one after
                // the other.
                messages.push(format!(
                    "`{name}` in [{DEV}] is a member: give its `path` and nothing else"
                ));
            }
        } else if !is_inherited(value) {
            messages.push(format!("dependency `{name}` needs `workspace = true`"));
        }
    }
    messages
        .into_iter()
        .map(|message| Finding::error(&manifest.path(), message))
        .collect()
}

/// Rules for the public metadata of published members.
fn check_published(
    manifest: &Manifest,
    exists: &dyn Fn(&str) -> bool,
    is_same: &dyn Fn(&str, &str) -> bool,
) -> Vec<Finding> {
    let mut messages = Vec::new();
    for key in INHERITED_BY_PUBLISHED {
        if !manifest.package(key).is_some_and(is_inherited) {
            messages.push(format!("`{key}.workspace = true` is missing in [package]"));
        }
    }
    for key in ["description", "readme"] {
        let text = manifest.package(key).and_then(Value::as_str);
        if text.unwrap_or_default().trim().is_empty() {
            messages.push(format!("`{key}` is missing or empty"));
        }
    }
    match strings(manifest.package("keywords")).len() {
        1..=MAX_KEYWORDS => {}
        _ => messages.push(format!("`keywords` needs 1 to {MAX_KEYWORDS} words")),
    }
    let categories = strings(manifest.package("categories"));
    if categories.is_empty() {
        messages.push("`categories` is missing".to_owned());
    }
    for category in categories.iter().filter(|it| !CATEGORIES.contains(it)) {
        messages.push(format!(
            "category `{category}` is not in xtask/src/tidy/manifests.rs; see \
             https://crates.io/category_slugs and add it"
        ));
    }
    if manifest.table.contains_key("features") && !documents_all_features(manifest) {
        messages.push("`[package.metadata.docs.rs] all-features = true` is missing".to_owned());
    }
    let mut found: Vec<_> = messages
        .into_iter()
        .map(|message| Finding::error(&manifest.path(), message))
        .collect();
    let readme = format!("{}/README.md", manifest.dir);
    if !exists(&readme) {
        found.push(Finding::error(&readme, "the crate has no README.md"));
    }
    let licence = format!("{}/LICENSE", manifest.dir);
    if !is_same(&licence, "LICENSE") {
        let message = "not the licence: run `ln -sf ../../LICENSE` there";
        found.push(Finding::error(&licence, message));
    }
    found
}

fn documents_all_features(manifest: &Manifest) -> bool {
    let metadata = manifest.package("metadata");
    let docs = metadata.and_then(|it| it.get("docs")?.get("rs")?.get("all-features"));
    docs.and_then(Value::as_bool) == Some(true)
}

fn strings(value: Option<&Value>) -> Vec<&str> {
    let values = value.and_then(Value::as_array).into_iter().flatten();
    values.filter_map(Value::as_str).collect()
}

fn is_inherited(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

/// Returns the table, name and value of each dependency, including platform-specific
/// ones.
fn dependencies(table: &Table) -> impl Iterator<Item = (&'static str, &String, &Value)> {
    let targets = table.get("target").and_then(Value::as_table).into_iter();
    let targets = targets.flat_map(Table::values).filter_map(Value::as_table);
    std::iter::once(table).chain(targets).flat_map(|table| {
        DEPENDENCY_TABLES.iter().flat_map(|kind| {
            let all = table.get(*kind).and_then(Value::as_table);
            all.into_iter()
                .flatten()
                .map(|(name, value)| (*kind, name, value))
        })
    })
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
        rust-version.workspace = true
        license.workspace = true
        repository.workspace = true
        readme = "README.md"
        keywords = ["agent"]
        categories = ["filesystem"]
        include.workspace = true

        [lints]
        workspace = true

        [dependencies]
        bytes.workspace = true
        serde = { workspace = true, features = ["rc"] }
    "#;

    fn manifest(text: &str) -> Manifest {
        Manifest {
            dir: "crates/a".to_owned(),
            table: text.parse().unwrap(),
        }
    }

    fn members() -> Members {
        let root = r#"
            [workspace.dependencies]
            own = { path = "crates/own", version = "0.1.0" }
            bytes = "1"
        "#;
        Members::new(&root.parse().unwrap())
    }

    /// Returns the findings for a manifest whose files all exist.
    fn found(text: &str) -> Vec<String> {
        shown(&check(&manifest(text), &members(), &|_| true, &|_, _| true))
    }

    fn error(message: &str) -> String {
        format!("crates/a/Cargo.toml: error: {message}")
    }

    #[test]
    fn a_member_that_inherits_everything_is_fine() {
        assert_eq!(found(GOOD), [""; 0]);
    }

    #[test]
    fn own_values_are_refused() {
        let text = GOOD.replace("version.workspace = true", "version = \"1.0.0\"");
        let text = text.replace("workspace = true\n\n        [dep", "\n        [dep");
        let expected = [
            error("`[lints] workspace = true` is missing"),
            error("`rust-version.workspace = true` is missing in [package]"),
            error("`version.workspace = true` is missing in [package]"),
        ];
        assert_eq!(found(&text), expected);
    }

    #[test]
    fn every_kind_of_dependency_is_inherited() {
        let all_tables = "dependencies.x dev-dependencies.x target.'cfg(unix)'.dependencies.x \
            dependencies.own";
        for table in all_tables.split(' ') {
            let text = GOOD.replace("[dependencies]", "[build-dependencies]");
            let text = format!("{text}\n[{table}]\nversion = \"1\"\n");
            let name = table.rsplit('.').next().unwrap();
            let expected = [error(&format!(
                "dependency `{name}` needs `workspace = true`"
            ))];
            assert_eq!(found(&text), expected, "{table}");
        }
    }

    #[test]
    fn tests_name_members_by_path_alone() {
        let with = |value: &str| found(&format!("{GOOD}\n[dev-dependencies]\nown = {value}\n"));
        assert_eq!(with("{ path = '../own', features = ['f'] }"), [""; 0]);
        let expected = [error(
            "`own` in [dev-dependencies] is a member: give its `path` and nothing else",
        )];
        assert_eq!(with("{ workspace = true }"), expected);
        assert_eq!(with("{ path = '../own', version = '0.1.0' }"), expected);
    }

    #[test]
    fn members_have_a_version_for_packages() {
        assert_eq!(members().check(), []);
        let root = "[workspace.dependencies]\nown.path = 'crates/own'\n";
        let found = shown(&Members::new(&root.parse().unwrap()).check());
        let expected = "Cargo.toml: error: `own` needs a `version` in [workspace.dependencies]";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn a_published_crate_says_what_it_is() {
        let text = GOOD.replace("Does a thing", " ");
        let text = text.replace("[\"agent\"]", "['a', 'b', 'c', 'd', 'e', 'f']");
        let text = text.replace("\"filesystem\"", "\"files\"");
        let text = format!("{text}\n[features]\nf = []\n");
        let found = shown(&check(&manifest(&text), &members(), &|_| false, &|_, _| {
            false
        }));
        let expected = [
            error("`description` is missing or empty"),
            error("`keywords` needs 1 to 5 words"),
            error(
                "category `files` is not in xtask/src/tidy/manifests.rs; see \
                 https://crates.io/category_slugs and add it",
            ),
            error("`[package.metadata.docs.rs] all-features = true` is missing"),
            "crates/a/README.md: error: the crate has no README.md".to_owned(),
            "crates/a/LICENSE: error: not the licence: run `ln -sf ../../LICENSE` there".to_owned(),
        ];
        assert_eq!(found, expected);
        let text = text.replace("name = \"a\"", "name = \"a\"\npublish = false");
        let found = check(&manifest(&text), &members(), &|_| false, &|_, _| false);
        assert_eq!(found, []);
    }
}
