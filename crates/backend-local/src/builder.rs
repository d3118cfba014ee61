//! [`LocalBuilder`]: everything that can be chosen about a [`LocalBackend`].

use std::path::PathBuf;

use backend_core::{Result, VPath};

use crate::backend::LocalBackend;
use crate::exec::Commands;

/// How paths of the backend relate to paths of the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameSpace {
    /// `/` is the root directory. The host's path of it is never shown.
    #[default]
    Virtual,
    /// Paths are those of the host, confined to the root directory and these
    /// further ones. Relative paths start at the root directory.
    Host {
        /// Directories besides the root.
        allowed: Vec<PathBuf>,
    },
}

/// How a path is followed beneath the root.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resolution {
    /// By the kernel (`openat2`) where it can, else component by component.
    #[default]
    Auto,
    /// Component by component, each opened without following a link.
    Components,
}

/// Options of a [`LocalBackend`], from [`LocalBackend::builder`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `open`"]
pub struct LocalBuilder {
    pub(crate) root: PathBuf,
    pub(crate) create_root: bool,
    pub(crate) names: NameSpace,
    pub(crate) working_dir: Option<VPath>,
    pub(crate) resolution: Resolution,
    pub(crate) read_only: bool,
    pub(crate) max_file_bytes: u64,
    pub(crate) hidden: bool,
    pub(crate) ignored: bool,
    pub(crate) generated: bool,
    pub(crate) enable_execute: bool,
    pub(crate) commands: Commands,
}

impl LocalBuilder {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self {
            root,
            create_root: false,
            names: NameSpace::default(),
            working_dir: None,
            resolution: Resolution::default(),
            read_only: false,
            max_file_bytes: u64::MAX,
            hidden: false,
            ignored: false,
            generated: false,
            enable_execute: false,
            commands: Commands::default(),
        }
    }

    /// Creates the root (and the allowed directories, and the working directory)
    /// if missing. Off by default: a mistyped root is an error.
    pub fn create_root(mut self, create_root: bool) -> Self {
        self.create_root = create_root;
        self
    }

    /// Sets how paths relate to those of the host.
    pub fn names(mut self, names: NameSpace) -> Self {
        self.names = names;
        self
    }

    /// Sets where relative paths and commands start, with virtual names: `/` by
    /// default. It need not exist yet; until it does, what starts there is
    /// `NotFound`. Commands find whatever directory stands there when they start.
    pub fn working_dir(mut self, working_dir: VPath) -> Self {
        self.working_dir = Some(working_dir);
        self
    }

    /// Sets how paths are followed.
    pub fn resolution(mut self, resolution: Resolution) -> Self {
        self.resolution = resolution;
        self
    }

    /// Refuses every change through this backend's file operations. Commands can
    /// still write what the user may, unless they are
    /// [confined](crate::Confinement::Landlock): then they cannot write here either.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Sets the size of the largest file that a write or an edit may make; a larger
    /// one is `TooLarge`. What the disk holds, by default. What commands write is
    /// bounded by [`Limits::file_bytes`](crate::Limits::file_bytes).
    pub fn max_file_bytes(mut self, max_file_bytes: u64) -> Self {
        self.max_file_bytes = max_file_bytes;
        self
    }

    /// Makes searches see hidden entries without being asked.
    pub fn search_hidden(mut self, hidden: bool) -> Self {
        self.hidden = hidden;
        self
    }

    /// Makes searches see what ignore files exclude without being asked, and what
    /// is in generated directories.
    pub fn search_ignored(mut self, ignored: bool) -> Self {
        self.ignored = ignored;
        self
    }

    /// Makes searches see what is in [generated
    /// directories](backend_core::search::GENERATED_DIRECTORIES) without being
    /// asked.
    pub fn search_generated(mut self, generated: bool) -> Self {
        self.generated = generated;
        self
    }

    /// Lets commands run. Off by default: a command can do whatever the user may
    /// who runs this process, unless it is
    /// [confined](crate::Confinement::Landlock).
    pub fn enable_execute(mut self, enable_execute: bool) -> Self {
        self.enable_execute = enable_execute;
        self
    }

    /// Sets how commands run, once they may.
    pub fn commands(mut self, commands: Commands) -> Self {
        self.commands = commands;
        self
    }

    /// Opens the directory.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotADirectory` and `PermissionDenied` for the root and the
    /// allowed directories; `Unsupported` for a confinement or limit that this
    /// host cannot enforce; `Config` for options that exclude each other, and for
    /// a directory that cannot be named by its path because that is not UTF-8.
    pub fn open(self) -> Result<LocalBackend> {
        LocalBackend::open_with(self)
    }
}
