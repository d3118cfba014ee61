//! [`LocalBuilder`]: the options of a [`LocalBackend`](crate::LocalBackend).

use std::path::PathBuf;

use backend_core::VPath;

use crate::exec::Commands;

/// The relation of the backend's paths to host paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameSpace {
    /// `/` is the root directory. Its host path is never shown.
    #[default]
    Virtual,
    /// Paths are host paths, confined to the root directory and the `allowed`
    /// ones. Relative paths start at the root directory.
    Host {
        /// Directories besides the root.
        allowed: Vec<PathBuf>,
    },
}

/// The way paths are resolved beneath the root.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resolution {
    /// By the kernel (`openat2`) if possible, otherwise component by component.
    #[default]
    Auto,
    /// Component by component, each opened without following a link.
    Components,
}

/// Options of a [`LocalBackend`](crate::LocalBackend), from its
/// [`builder`](crate::LocalBackend::builder).
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

    /// Creates the root, the allowed directories and the working directory if
    /// they are missing. Off by default: a mistyped root is an error.
    pub fn create_root(mut self, create_root: bool) -> Self {
        self.create_root = create_root;
        self
    }

    /// Sets how paths relate to host paths.
    pub fn names(mut self, names: NameSpace) -> Self {
        self.names = names;
        self
    }

    /// Sets the directory that relative paths and commands start from, with
    /// virtual names. The default is `/`.
    ///
    /// It need not exist yet. Until it does, operations that start there fail
    /// with `NotFound`. Commands run in the directory that has this path when
    /// they start.
    pub fn working_dir(mut self, working_dir: VPath) -> Self {
        self.working_dir = Some(working_dir);
        self
    }

    /// Sets how paths are resolved.
    pub fn resolution(mut self, resolution: Resolution) -> Self {
        self.resolution = resolution;
        self
    }

    /// Refuses every change through this backend's file operations. Commands
    /// can still write everything that their user may, unless they are
    /// [confined](crate::Confinement::Landlock). Confined commands cannot write
    /// to this directory either.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Sets the size of the largest file that a write or an edit may create. A
    /// larger one fails with `TooLarge`. By default only the disk sets a limit.
    /// Files that commands write are limited by
    /// [`Limits::file_bytes`](crate::Limits::file_bytes).
    pub fn max_file_bytes(mut self, max_file_bytes: u64) -> Self {
        self.max_file_bytes = max_file_bytes;
        self
    }

    /// Makes searches include hidden entries by default.
    pub fn search_hidden(mut self, hidden: bool) -> Self {
        self.hidden = hidden;
        self
    }

    /// Makes searches include entries that ignore files exclude, and the
    /// contents of generated directories, by default.
    pub fn search_ignored(mut self, ignored: bool) -> Self {
        self.ignored = ignored;
        self
    }

    /// Makes searches include the contents of [generated
    /// directories](backend_core::search::GENERATED_DIRECTORIES) by default.
    pub fn search_generated(mut self, generated: bool) -> Self {
        self.generated = generated;
        self
    }

    /// Enables commands. Off by default: a command can do everything that the
    /// user of this process may, unless it is
    /// [confined](crate::Confinement::Landlock).
    pub fn enable_execute(mut self, enable_execute: bool) -> Self {
        self.enable_execute = enable_execute;
        self
    }

    /// Sets how commands run, if they are enabled.
    pub fn commands(mut self, commands: Commands) -> Self {
        self.commands = commands;
        self
    }
}
