//! The parts of `cargo metadata` that the commands use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// `cargo metadata --no-deps`: the members of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) target_directory: PathBuf,
}

/// A member of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) version: String,
    pub(crate) manifest_path: PathBuf,
    #[serde(default)]
    pub(crate) dependencies: Vec<Dependency>,
    #[serde(default)]
    pub(crate) targets: Vec<Target>,
    #[serde(default)]
    pub(crate) features: BTreeMap<String, Vec<String>>,
    /// The registries it may be published to: `None` is any of them, an empty list is
    /// none.
    #[serde(default)]
    pub(crate) publish: Option<Vec<String>>,
}

impl Package {
    /// Returns the directory of the manifest.
    pub(crate) fn dir(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new("."))
    }

    /// Returns the library's name in code, which can differ from the package's name.
    pub(crate) fn library(&self) -> Option<&str> {
        self.targets_of("lib").next()
    }

    /// Whether it is published.
    pub(crate) fn is_published(&self) -> bool {
        let registries = self.publish.as_ref();
        registries.is_none_or(|registries| !registries.is_empty())
    }

    /// Whether it is published and has a library.
    pub(crate) fn is_published_library(&self) -> bool {
        self.is_published() && self.library().is_some()
    }

    /// Returns the names of the targets of one kind, such as `example`.
    pub(crate) fn targets_of(&self, kind: &str) -> impl Iterator<Item = &str> {
        self.targets
            .iter()
            .filter(move |target| target.kind.iter().any(|k| k == kind))
            .map(|target| target.name.as_str())
    }
}

/// A dependency as declared in the manifest.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for a normal dependency.
    #[serde(default)]
    pub(crate) kind: Option<DependencyKind>,
}

/// The kind of a dependency that is not a normal one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DependencyKind {
    Dev,
    Build,
}

/// A build target of a package.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(json: &str) -> Package {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn reads_what_cargo_prints() {
        let package = package(
            r#"{"name": "a", "manifest_path": "/r/crates/a/Cargo.toml", "publish": null,
                "dependencies": [{"name": "b", "kind": null, "req": "^1"},
                                 {"name": "c", "kind": "dev"}, {"name": "d", "kind": "build"}],
                "targets": [{"name": "a", "kind": ["lib"]}, {"name": "demo", "kind": ["example"]}]}"#,
        );
        let kinds: Vec<_> = package.dependencies.iter().map(|d| d.kind).collect();
        assert_eq!(
            kinds,
            [None, Some(DependencyKind::Dev), Some(DependencyKind::Build)]
        );
        assert_eq!(package.targets_of("example").collect::<Vec<_>>(), ["demo"]);
        assert_eq!(package.dir(), Path::new("/r/crates/a"));
        assert!(package.is_published_library());
    }

    #[test]
    fn a_private_package_or_one_without_a_library_is_not_published() {
        let private = r#"{"name": "a", "manifest_path": "/a/Cargo.toml", "publish": [],
                          "targets": [{"name": "a", "kind": ["lib"]}]}"#;
        let binary = r#"{"name": "a", "manifest_path": "/a/Cargo.toml",
                         "targets": [{"name": "a", "kind": ["bin"]}]}"#;
        assert!(!package(private).is_published_library());
        assert!(!package(binary).is_published_library());
    }
}
