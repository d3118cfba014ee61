//! [`NamedPath`]: a path that a command names, and the way it uses it.

use backend_core::VPath;

/// The way a command uses a path it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PathUse {
    /// The command reads it.
    Read,
    /// The command changes it.
    Write,
    /// The command runs it.
    Run,
    /// The command names it for an unknown purpose.
    Named,
    /// The command may name it: the beginning of the path is computed.
    Possible,
    /// The command may change anything beneath it, or for a glob, of that name.
    Within,
}

/// A path that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedPath {
    /// The way the command uses the path.
    pub usage: PathUse,
    /// The path, normalized. For a glob, the directory before the first component with a
    /// wildcard. An unknown home is `/~`, a computed directory `/$`.
    pub path: VPath,
    /// The path as the command spells it. A glob is given in full as an absolute path.
    /// See [`glob_could_name`](crate::glob::glob_could_name).
    pub text: String,
    /// Whether the path is a glob, which may name more than one file.
    pub glob: bool,
    /// The path as the command would open it, not normalized, if known. For a glob, its
    /// directory. A sandbox can [trace](backend_core::Sandbox::trace) where it leads.
    pub spelled: Option<String>,
    /// `true` if the path is in a directory of the backend that commands know by another
    /// name. Then it is not a path of the system, whatever its name.
    pub inside: bool,
}
