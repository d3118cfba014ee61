//! [`Runtime`]: a named description of an image's content.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The working directory in an image whose runtime does not set one.
pub const WORK_DIR: &str = "/workspace";

/// A named environment: an image used as it is, or a base image with additions.
///
/// ```
/// use sandbox_runtime::{PackageManager, Runtime};
///
/// let ready = Runtime::builtin("python-datascience")?;
/// assert_eq!(ready.base_image.as_deref(), Some("python:3.12-slim"));
///
/// let own = Runtime::on_base("reports", "python:3.12-slim")
///     .with_package(PackageManager::Apt, "poppler-utils")
///     .with_package(PackageManager::Pip, "pandas>=2,<3")
///     .with_env("TZ", "UTC")
///     .with_run_as_uid(1000);
/// own.validate()?;
/// # Ok::<(), backend_core::Error>(())
/// ```
///
/// In TOML every field is a key of the same name, and unknown keys are rejected; see
/// [`Runtimes::from_toml`](crate::Runtimes::from_toml).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Runtime {
    /// The name: small letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Its purpose, for people. It does not affect the build.
    pub description: String,
    /// An image to use as it is.
    pub image: Option<String>,
    /// An image to build on.
    pub base_image: Option<String>,
    /// Packages installed on top of the base image.
    pub packages: Packages,
    /// Shell commands run as root before packages are installed, each by
    /// `/bin/sh -c`.
    pub setup_commands: Vec<String>,
    /// Environment variables for commands.
    pub env_vars: BTreeMap<String, String>,
    /// The working directory. `/workspace` by default.
    pub work_dir: String,
    /// Whether an image that was built before is reused. On by default.
    pub cache_image: bool,
    /// The unprivileged user to run as. It gets a home directory and, if the base image
    /// has Python, a writable virtual environment.
    pub run_as_uid: Option<u32>,
}

impl Default for Runtime {
    fn default() -> Self {
        Self {
            name: String::new(),
            description: String::new(),
            image: None,
            base_image: None,
            packages: Packages::default(),
            setup_commands: Vec::new(),
            env_vars: BTreeMap::new(),
            work_dir: WORK_DIR.to_owned(),
            cache_image: true,
            run_as_uid: None,
        }
    }
}

/// Packages, grouped by package manager. Version pins and ranges are passed on as
/// written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Packages {
    /// Debian packages: `jq`, `jq=1.6*`, `jq/bookworm-backports`.
    pub apt: Vec<String>,
    /// Python packages: `numpy`, `uvicorn[standard]>=0.30,<1`.
    pub pip: Vec<String>,
    /// Node packages, installed in the working directory: `tsx`, `@types/react@^18`.
    pub npm: Vec<String>,
    /// Programs built by Cargo into `/usr/local/bin`: `just`, `just@1.40.0`.
    pub cargo: Vec<String>,
}

/// A package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PackageManager {
    /// The package manager of Debian and Ubuntu.
    Apt,
    /// The package manager of Python.
    Pip,
    /// The package manager of Node.
    Npm,
    /// The package manager of Rust.
    Cargo,
}

impl PackageManager {
    /// All package managers, in the order in which they run: system libraries come
    /// first.
    pub const ALL: [Self; 4] = [Self::Apt, Self::Pip, Self::Npm, Self::Cargo];

    /// Returns its name, as a key in TOML.
    pub fn name(self) -> &'static str {
        match self {
            Self::Apt => "apt",
            Self::Pip => "pip",
            Self::Npm => "npm",
            Self::Cargo => "cargo",
        }
    }
}

impl fmt::Display for PackageManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Packages {
    /// Returns the packages of one manager.
    pub fn of(&self, manager: PackageManager) -> &[String] {
        match manager {
            PackageManager::Apt => &self.apt,
            PackageManager::Pip => &self.pip,
            PackageManager::Npm => &self.npm,
            PackageManager::Cargo => &self.cargo,
        }
    }

    /// Returns the packages of one manager for modification.
    pub fn of_mut(&mut self, manager: PackageManager) -> &mut Vec<String> {
        match manager {
            PackageManager::Apt => &mut self.apt,
            PackageManager::Pip => &mut self.pip,
            PackageManager::Npm => &mut self.npm,
            PackageManager::Cargo => &mut self.cargo,
        }
    }

    /// Whether there are no packages.
    pub fn is_empty(&self) -> bool {
        PackageManager::ALL
            .iter()
            .all(|manager| self.of(*manager).is_empty())
    }
}

impl Runtime {
    /// Creates a runtime that uses an image as it is.
    pub fn from_image(name: impl Into<String>, image: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            image: Some(image.into()),
            ..Self::default()
        }
    }

    /// Creates a runtime that builds on a base image.
    pub fn on_base(name: impl Into<String>, base_image: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            base_image: Some(base_image.into()),
            ..Self::default()
        }
    }

    backend_core::setters! {
        /// Sets the description.
        fn with_description(self, description: impl Into<String>) {
            self.description = description.into();
        }

        /// Adds a package.
        fn with_package(self, manager: PackageManager, package: impl Into<String>) {
            self.packages.of_mut(manager).push(package.into());
        }

        /// Adds a command that runs before packages are installed.
        fn with_setup_command(self, command: impl Into<String>) {
            self.setup_commands.push(command.into());
        }

        /// Sets an environment variable for commands.
        fn with_env(self, name: impl Into<String>, value: impl Into<String>) {
            self.env_vars.insert(name.into(), value.into());
        }

        /// Sets the working directory.
        fn with_work_dir(self, work_dir: impl Into<String>) { self.work_dir = work_dir.into() }

        /// Sets whether an image that was built before is reused.
        fn with_cache_image(self, cache_image: bool) { self.cache_image = cache_image }

        /// Sets the user to run as.
        fn with_run_as_uid(self, uid: u32) { self.run_as_uid = Some(uid) }
    }
}
