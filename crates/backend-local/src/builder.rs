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
    pub(crate) write_inline: bool,
    pub(crate) search_hidden: bool,
    pub(crate) search_ignored: bool,
    pub(crate) search_generated: bool,
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
            write_inline: false,
            search_hidden: false,
            search_ignored: false,
            search_generated: false,
            enable_execute: false,
            commands: Commands::default(),
        }
    }

    backend_core::setters! {
        /// Creates the root, the allowed directories and the working directory if
        /// they are missing. Off by default: a mistyped root is an error.
        create_root: bool,
        /// Sets how paths relate to host paths.
        names: NameSpace,
        /// Sets the directory that relative paths and commands start from, with
        /// virtual names. The default is `/`.
        ///
        /// It need not exist yet. Until it does, operations that start there fail
        /// with `NotFound`. Commands run in the directory that has this path when
        /// they start.
        working_dir: VPath,
        /// Sets how paths are resolved.
        resolution: Resolution,
        /// Refuses every change through this backend's file operations. Commands
        /// can still write everything that their user may, unless they are
        /// [confined](crate::Confinement::Landlock). Confined commands cannot write
        /// to this directory either.
        read_only: bool,
        /// Sets the size of the largest file that a write or an edit may create. A
        /// larger one fails with `TooLarge`. By default only the disk sets a limit.
        /// Files that commands write are limited by
        /// [`Limits::file_bytes`](crate::Limits::file_bytes).
        max_file_bytes: u64,
        /// Makes small writes and edits on the caller's thread, where the kernel has the
        /// directory cached and its file system is local.
        ///
        /// Off by default: a busy disk would then delay the other tasks of that thread. It
        /// suits a program with one client: to wake another thread and to be
        /// woken by it takes longer than a small change.
        write_inline: bool,
        /// Makes searches include hidden entries by default.
        search_hidden: bool,
        /// Makes searches include entries that ignore files exclude, and the
        /// contents of generated directories, by default.
        search_ignored: bool,
        /// Makes searches include the contents of [generated
        /// directories](backend_core::search::GENERATED_DIRECTORIES) by default.
        search_generated: bool,
        /// Enables commands. Off by default: a command can do everything that the
        /// user of this process may, unless it is
        /// [confined](crate::Confinement::Landlock).
        enable_execute: bool,
        /// Sets how commands run, if they are enabled.
        commands: Commands,
    }
}
