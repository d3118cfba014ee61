//! [`Opener`]: opens the mounts of a configuration as a tree.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backend_composite::{Composite, Route};
use backend_core::{Error, ErrorKind, Quoted, Result, VPath};
use backend_local::LocalBackend;

use crate::config::MountConfig;
use crate::error::MountError;
use crate::hosts;
use crate::mount::{Mode, Mount};
use crate::scope::Scope;
use crate::table::Mounts;
use crate::tree::MountTree;

/// The mount point used by [`MountTree::create_default`].
const DEFAULT_POINT: &str = "/data";

/// Opens the directories of a configuration.
///
/// ```
/// use backend_mounts::Opener;
///
/// # let directory = tempfile::tempdir()?;
/// # let base = directory.path();
/// # std::fs::create_dir(base.join("docs"))?;
/// let tree = Opener::from_toml(
///     r#"
///     [paths.docs]
///     root = "docs"
///
///     [paths.out]
///     root = "results"
///     mode = "rw"
///     suffixes = [".md"]
///     "#,
/// )?
/// .base(base)
/// .open()?;
/// assert!(base.join("results").is_dir());
///
/// let error = Opener::from_toml("[paths.docs]\nrot = 'docs'").unwrap_err();
/// assert!(error.to_string().contains("line 2"), "{error}");
/// # drop(tree);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Opener {
    config: MountConfig,
    base: Option<PathBuf>,
    working_dir: VPath,
    create_missing: bool,
}

impl Opener {
    /// Creates an opener for these mounts.
    pub fn new(config: MountConfig) -> Self {
        Self {
            config,
            base: None,
            working_dir: VPath::root(),
            create_missing: false,
        }
    }

    /// Creates an opener from TOML, in one of the forms of [`MountConfig`].
    ///
    /// # Errors
    ///
    /// `Config`, with the line of a syntax error, or with the mounts that conflict.
    pub fn from_toml(text: &str) -> Result<Self> {
        Ok(Self::new(MountConfig::from_toml(text).map_err(config)?))
    }

    /// Creates an opener from a TOML file. Relative host paths start at the directory of
    /// the file.
    ///
    /// # Errors
    ///
    /// `Config`, as for [`from_toml`](Self::from_toml), or if the file cannot be read.
    pub fn from_file(file: impl AsRef<Path>) -> Result<Self> {
        let file = file.as_ref();
        let name = Quoted::new(&file.to_string_lossy());
        let text = std::fs::read_to_string(file).map_err(|source| {
            let message = format!("{name} cannot be read: {source}; name a TOML file with mounts");
            Error::new(ErrorKind::Config, message)
        })?;
        let this = MountConfig::from_toml(&text).map_err(|error| {
            Error::new(ErrorKind::Config, format!("{name}: {error}")).with_source(error)
        })?;
        let directory = file.parent().map(Path::to_path_buf);
        Ok(Self {
            base: directory.filter(|directory| !directory.as_os_str().is_empty()),
            ..Self::new(this)
        })
    }

    backend_core::setters! {
        /// Sets the directory where relative host paths start. The default is the current
        /// directory of the process.
        fn base(self, base: impl Into<PathBuf>) { self.base = Some(base.into()) }

        /// Sets the directory where relative virtual paths start. The default is `/`.
        fn working_dir(self, working_dir: VPath) { self.working_dir = working_dir }

        /// Sets whether missing directories of read-only mounts are created. Those of
        /// writable mounts always are.
        fn create_missing(self, create_missing: bool) { self.create_missing = create_missing }
    }

    /// Opens the directories. Nothing is created if the mounts are not valid.
    ///
    /// # Errors
    ///
    /// `Config` for two mounts with the same mount point or with overlapping directories,
    /// and for a directory that is missing, is not a directory, or cannot be opened.
    pub fn open(self) -> Result<MountTree> {
        let base = self.base.as_deref();
        // Validated as written first, because an empty path would become the base.
        Mounts::new(self.config.mounts.clone()).map_err(config)?;
        let resolved = self.config.mounts.iter();
        let resolved = resolved.map(|mount| hosts::resolved(mount, base));
        let mounts: Vec<Mount> = resolved.collect::<Result<_>>()?;
        let table = Mounts::new(mounts.clone()).map_err(config)?;
        hosts::refuse_overlap(&mounts)?;
        for mount in &mounts {
            hosts::ensure_exists(mount, self.create_missing)?;
        }
        let mut tree = Composite::builder().working_dir(self.working_dir);
        for mount in &mounts {
            let local = Arc::new(open(mount)?);
            tree = tree.route(Route::new(mount.mount_point.clone(), local));
        }
        Ok(MountTree::new(tree.build()?, Scope::new(table)))
    }
}

impl MountTree {
    /// Opens one host directory at `/data` with the defaults of a mount: files of any
    /// name and size, reading without approval, and writing with approval if the mode
    /// allows it.
    pub fn create_default(directory: impl Into<PathBuf>, mode: Mode) -> Result<Self> {
        let mount = Mount::new(directory, DEFAULT_POINT).map_err(config)?;
        Opener::new(MountConfig::new(vec![mount.mode(mode)])).open()
    }
}

/// Opens one mount. Where it can, the local backend enforces the same limits as the
/// guard.
fn open(mount: &Mount) -> Result<LocalBackend> {
    let mut local = LocalBackend::builder(&mount.host_path).read_only(mount.mode == Mode::Ro);
    if let Some(bytes) = mount.max_file_bytes {
        local = local.max_file_bytes(bytes);
    }
    local.open().map_err(|source| {
        let point = &mount.mount_point;
        let message = format!("the mount '{point}' cannot be opened: {}", source.message());
        Error::new(ErrorKind::Config, message).with_source(source)
    })
}

fn config(error: MountError) -> Error {
    Error::new(ErrorKind::Config, error.to_string()).with_source(error)
}
