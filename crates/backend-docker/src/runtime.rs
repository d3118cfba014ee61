//! [`Runtime`]: what an image must have in it, by name.

mod builtin;
mod check;
mod read;
mod registry;

use std::collections::BTreeMap;
use std::fmt;

use backend_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

pub(crate) use check::config;
pub use registry::Runtimes;

/// Where work is done in an image whose runtime does not say.
pub const WORK_DIR: &str = "/workspace";

/// A named environment: an image as it is, or a base image and what is added.
///
/// ```
/// use backend_docker::{PackageManager, Runtime};
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
/// In TOML every field is a key of the same name, and nothing else is accepted;
/// see [`Runtimes::from_toml`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Runtime {
    /// Its name: small letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// What it is for, for people. Never decides what is built.
    pub description: String,
    /// An image to use as it is.
    pub image: Option<String>,
    /// An image to build upon.
    pub base_image: Option<String>,
    /// What is installed upon the base image.
    pub packages: Packages,
    /// Shell commands run as root before packages are installed, each by
    /// `/bin/sh -c`.
    pub setup_commands: Vec<String>,
    /// Variables that commands see.
    pub env_vars: BTreeMap<String, String>,
    /// Where work is done in it. `/workspace` unless said otherwise.
    pub work_dir: String,
    /// Whether an image that was built before is used again. On by default.
    pub cache_image: bool,
    /// The unprivileged user to run as, with a home and, where the base has
    /// Python, a virtual environment it may write.
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

/// Packages by the program that installs them. Version pins and ranges are kept
/// as they are written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Packages {
    /// Debian packages: `jq`, `jq=1.6*`, `jq/bookworm-backports`.
    pub apt: Vec<String>,
    /// Python packages: `numpy`, `uvicorn[standard]>=0.30,<1`.
    pub pip: Vec<String>,
    /// Node packages, installed in the work directory: `tsx`, `@types/react@^18`.
    pub npm: Vec<String>,
    /// Programs built by Cargo into `/usr/local/bin`: `just`, `just@1.40.0`.
    pub cargo: Vec<String>,
}

/// What installs a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PackageManager {
    /// Debian's and Ubuntu's.
    Apt,
    /// Python's.
    Pip,
    /// Node's.
    Npm,
    /// Rust's.
    Cargo,
}

impl PackageManager {
    /// All of them, in the order in which they run: system libraries come first.
    pub const ALL: [Self; 4] = [Self::Apt, Self::Pip, Self::Npm, Self::Cargo];

    /// Its name as a key of TOML.
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
    /// One manager's packages.
    pub fn of(&self, manager: PackageManager) -> &[String] {
        match manager {
            PackageManager::Apt => &self.apt,
            PackageManager::Pip => &self.pip,
            PackageManager::Npm => &self.npm,
            PackageManager::Cargo => &self.cargo,
        }
    }

    /// One manager's packages, to be changed.
    pub fn of_mut(&mut self, manager: PackageManager) -> &mut Vec<String> {
        match manager {
            PackageManager::Apt => &mut self.apt,
            PackageManager::Pip => &mut self.pip,
            PackageManager::Npm => &mut self.npm,
            PackageManager::Cargo => &mut self.cargo,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        PackageManager::ALL
            .iter()
            .all(|manager| self.of(*manager).is_empty())
    }
}

impl Runtime {
    /// One of [the built-in runtimes](Runtimes::builtin_names).
    ///
    /// # Errors
    ///
    /// `Config` that lists the known names, for another.
    pub fn builtin(name: &str) -> Result<Self> {
        builtin::get(name).ok_or_else(|| unknown(name, builtin::names()))
    }

    /// An image as it is.
    #[must_use]
    pub fn from_image(name: impl Into<String>, image: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            image: Some(image.into()),
            ..Self::default()
        }
    }

    /// A base image, to which things are added.
    #[must_use]
    pub fn on_base(name: impl Into<String>, base_image: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            base_image: Some(base_image.into()),
            ..Self::default()
        }
    }

    /// Says what it is for.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Adds a package.
    #[must_use]
    pub fn with_package(mut self, manager: PackageManager, package: impl Into<String>) -> Self {
        self.packages.of_mut(manager).push(package.into());
        self
    }

    /// Adds several packages of one manager.
    #[must_use]
    pub fn with_packages<P: Into<String>>(
        mut self,
        manager: PackageManager,
        packages: impl IntoIterator<Item = P>,
    ) -> Self {
        let list = self.packages.of_mut(manager);
        list.extend(packages.into_iter().map(Into::into));
        self
    }

    /// Adds a command that is run before packages are installed.
    #[must_use]
    pub fn with_setup_command(mut self, command: impl Into<String>) -> Self {
        self.setup_commands.push(command.into());
        self
    }

    /// Sets a variable that commands see.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env_vars.insert(name.into(), value.into());
        self
    }

    /// Says where work is done.
    #[must_use]
    pub fn with_work_dir(mut self, work_dir: impl Into<String>) -> Self {
        self.work_dir = work_dir.into();
        self
    }

    /// Says whether an image that was built before is used again.
    #[must_use]
    pub fn with_cache_image(mut self, cache_image: bool) -> Self {
        self.cache_image = cache_image;
        self
    }

    /// Says as which user to run.
    #[must_use]
    pub fn with_run_as_uid(mut self, uid: u32) -> Self {
        self.run_as_uid = Some(uid);
        self
    }

    /// Checks every field: whatever passes cannot add an instruction, a flag or a
    /// shell command to what is built.
    ///
    /// # Errors
    ///
    /// `Config` that names the runtime, the field and what it may hold.
    pub fn validate(&self) -> Result<()> {
        check::runtime(self)
    }
}

/// The error for a name nobody gave to a runtime.
fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let known: Vec<&str> = known.collect();
    Error::new(
        ErrorKind::Config,
        format!(
            "no runtime is called {}; choose one of {}",
            backend_core::Quoted::new(name),
            known.join(", ")
        ),
    )
}
