//! [`Runtimes`]: the built-in and custom runtimes, and replacements for their images.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use backend_core::Result;
use serde::{Deserialize, Deserializer};

use crate::read::{self, RawFile};
use crate::runtime::Runtime;
use crate::{error, validate};

/// Runtimes by name: the built-in ones, custom ones, and a map of images that replace
/// others.
///
/// The map is for mirrors and for hosts without access to a registry. It applies to
/// `image` and `base_image` of every runtime, by exact match.
///
/// ```
/// use sandbox_runtime::Runtimes;
///
/// let runtimes = Runtimes::from_toml(
///     r#"
///     [images]
///     "python:3.12-slim" = "mirror.example/python:3.12"
///
///     [runtimes.reports]
///     base_image = "python:3.12-slim"
///     packages.pip = ["pandas>=2,<3"]
///     packages.apt = ["poppler-utils"]
///     "#,
/// )?;
/// let reports = runtimes.get("reports")?;
/// assert_eq!(reports.base_image.as_deref(), Some("mirror.example/python:3.12"));
/// let web = runtimes.get("python-web")?;
/// assert_eq!(web.base_image.as_deref(), Some("mirror.example/python:3.12"));
/// # Ok::<(), backend_core::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runtimes {
    custom: BTreeMap<String, Runtime>,
    images: BTreeMap<String, String>,
}

impl Runtimes {
    /// Creates a registry of the built-in runtimes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the names of the built-in runtimes, sorted.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.keys().map(String::as_str)
    }

    /// Returns the built-in runtimes and those in a TOML text: a table `runtimes` with
    /// a table for each runtime, and a table `images` with the replacement for each
    /// image.
    ///
    /// # Errors
    ///
    /// `Config`, with the line, the key's path and the next step.
    pub fn from_toml(text: &str) -> Result<Self> {
        read::toml::<RawFile>(text)?.checked()
    }

    /// Adds a runtime, replacing any runtime of the same name, even a built-in one.
    ///
    /// # Errors
    ///
    /// `Config` if it is not [valid](Runtime::validate).
    pub fn with(mut self, runtime: Runtime) -> Result<Self> {
        runtime.validate()?;
        self.custom.insert(runtime.name.clone(), runtime);
        Ok(self)
    }

    /// Uses the image `instead` wherever a runtime names `image`.
    ///
    /// # Errors
    ///
    /// `Config` if one of them is not a valid image name.
    pub fn with_image(mut self, image: &str, instead: &str) -> Result<Self> {
        for name in [image, instead] {
            validate::reference(name).map_err(|wrong| error::config(format!("images: {wrong}")))?;
        }
        self.images.insert(image.to_owned(), instead.to_owned());
        Ok(self)
    }

    /// Returns the runtime of this name, with its images replaced.
    ///
    /// # Errors
    ///
    /// `Config`, listing the known names, if there is no runtime of this name.
    pub fn get(&self, name: &str) -> Result<Runtime> {
        let known = self.custom.get(name).cloned();
        let mut runtime = known
            .or_else(|| BUILTIN.get(name).cloned())
            .ok_or_else(|| error::unknown(name, self.names()))?;
        for image in [&mut runtime.image, &mut runtime.base_image] {
            if let Some(instead) = image.as_ref().and_then(|name| self.images.get(name)) {
                *image = Some(instead.clone());
            }
        }
        Ok(runtime)
    }

    /// Returns all names, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Self::builtin_names().collect();
        names.extend(self.custom.keys().map(String::as_str));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns all runtimes, sorted by name, with their images replaced.
    pub fn iter(&self) -> impl Iterator<Item = Runtime> + '_ {
        self.names()
            .into_iter()
            .filter_map(|name| self.get(name).ok())
    }
}

impl RawFile {
    fn checked(self) -> Result<Runtimes> {
        let mut runtimes = Runtimes::new();
        for (image, instead) in &self.images {
            runtimes = runtimes.with_image(image, instead)?;
        }
        for (name, written) in self.runtimes {
            let runtime = written
                .named(&name)
                .map_err(|wrong| error::of_runtime(&name, &wrong))?;
            runtimes = runtimes.with(runtime)?;
        }
        Ok(runtimes)
    }
}

impl<'de> Deserialize<'de> for Runtimes {
    /// Reads the same tables as [`from_toml`](Self::from_toml), as part of a larger
    /// document.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawFile::deserialize(deserializer)?
            .checked()
            .map_err(|error| serde::de::Error::custom(error.message()))
    }
}

/// The built-in runtimes. Empty if the file were not valid; the tests read it.
static BUILTIN: LazyLock<BTreeMap<String, Runtime>> = LazyLock::new(|| {
    let file = read::toml::<RawFile>(include_str!("builtin.toml")).unwrap_or_default();
    let named = |(name, raw): (String, read::RawRuntime)| {
        let runtime = raw.named(&name).ok()?;
        Some((name, runtime))
    };
    file.runtimes.into_iter().filter_map(named).collect()
});

impl Runtime {
    /// Returns one of [the built-in runtimes](crate::Runtimes::builtin_names).
    ///
    /// # Errors
    ///
    /// `Config`, listing the known names, if there is no runtime of this name.
    pub fn builtin(name: &str) -> Result<Self> {
        let found = BUILTIN.get(name).cloned();
        found.ok_or_else(|| error::unknown(name, Runtimes::builtin_names()))
    }
}
