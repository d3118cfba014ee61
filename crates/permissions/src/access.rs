//! [`Access`]: one operation on one target, and [`Intent`]: a whole call, which consists
//! of several accesses.

use std::fmt;

use backend_core::VPath;
use serde::{Deserialize, Serialize};

use crate::Op;

/// The target of an access.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// A path in the tree, normalized.
    Path(#[serde(with = "path_text")] VPath),
    /// A command line.
    Command(String),
    /// A port that a command listens on.
    Port(u16),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.write_str(path.as_str()),
            Self::Command(line) => f.write_str(line),
            Self::Port(port) => write!(f, "port {port}"),
        }
    }
}

/// The kind of entry that exists, or is to be created, at a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A file. Limits on suffixes and sizes apply.
    #[default]
    File,
    /// A directory.
    Directory,
}

/// One operation of a call on one target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Access {
    /// The operation.
    pub op: Op,
    /// The path, command line or port it applies to.
    pub target: Target,
    /// The kind of entry at the path.
    pub kind: Kind,
    /// The size in bytes that the file has or is to have, if known.
    pub bytes: Option<u64>,
}

impl Access {
    /// Creates an access to a file.
    pub fn file(op: Op, path: VPath) -> Self {
        Self {
            op,
            target: Target::Path(path),
            kind: Kind::File,
            bytes: None,
        }
    }

    /// Creates an access to a directory.
    pub fn directory(op: Op, path: VPath) -> Self {
        Self {
            kind: Kind::Directory,
            ..Self::file(op, path)
        }
    }

    /// Creates an access that runs a command line.
    pub fn command(line: impl Into<String>) -> Self {
        Self {
            op: Op::Execute,
            target: Target::Command(line.into()),
            kind: Kind::File,
            bytes: None,
        }
    }

    /// Creates an access that connects to a port.
    pub fn port(port: u16) -> Self {
        Self {
            op: Op::Connect,
            target: Target::Port(port),
            kind: Kind::File,
            bytes: None,
        }
    }

    /// Creates an access that opens a terminal for a command line, or attaches to a shell
    /// that runs it.
    pub fn terminal(line: impl Into<String>) -> Self {
        Self {
            op: Op::Terminal,
            ..Self::command(line)
        }
    }

    /// Returns the path, if the target is one.
    pub fn path(&self) -> Option<&VPath> {
        match &self.target {
            Target::Path(path) => Some(path),
            Target::Command(_) | Target::Port(_) => None,
        }
    }

    /// Sets the size that the file has or is to have.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.op, self.target)
    }
}

/// A call that is about to be made, not yet split into its accesses.
///
/// ```
/// use backend_core::VPath;
/// use permissions::Op;
/// use permissions::access::Intent;
///
/// let (from, to) = (VPath::parse("/a")?, VPath::parse("/b")?);
/// let parts = Intent::copy(from, to).accesses();
/// let ops: Vec<Op> = parts.map(|access| access.op).collect();
/// assert_eq!(ops, [Op::Read, Op::Write, Op::Copy, Op::Copy]);
/// # Ok::<(), backend_core::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Intent {
    ops: &'static [(Op, End)],
    target: Target,
    to: Option<VPath>,
    kind: Kind,
    bytes: Option<u64>,
}

/// The target of an operation: that of the call, or the destination of a move or copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Target,
    To,
}

/// Defines the calls about one path, by their operations and the kind of entry there.
macro_rules! intents {
    ($($(#[$doc:meta])+ $name:ident = $kind:ident, $($op:ident)+;)+) => {
        impl Intent {
            $(
                $(#[$doc])+
                pub fn $name(path: VPath) -> Self {
                    Self {
                        kind: Kind::$kind,
                        ..Self::new(&[$((Op::$op, End::Target)),+], Target::Path(path))
                    }
                }
            )+
        }
    };
}

intents! {
    /// Reads a file.
    read = File, Read;
    /// Writes a file.
    write = File, Write;
    /// Edits a file, which includes reading it: a failed match reports the contents.
    edit = File, Read Edit;
    /// Deletes a file. For a directory, see [`kind`](Self::kind).
    delete = File, Delete;
    /// Lists a directory, describes the entry at a path, or follows its links.
    ls = Directory, Ls;
    /// Finds files by name.
    glob = Directory, Glob;
    /// Tells the changes of a tree, and so the names in it.
    watch = Directory, Ls Glob;
    /// Finds lines by content, which includes reading.
    grep = Directory, Grep Read;
    /// Creates a directory.
    create_dir = Directory, Write;
}

impl Intent {
    fn new(ops: &'static [(Op, End)], target: Target) -> Self {
        Self {
            ops,
            target,
            to: None,
            kind: Kind::File,
            bytes: None,
        }
    }

    /// Moves a file: reads and deletes the source, writes the destination.
    pub fn rename(from: VPath, to: VPath) -> Self {
        const OPS: &[(Op, End)] = &[
            (Op::Read, End::Target),
            (Op::Delete, End::Target),
            (Op::Write, End::To),
            (Op::Move, End::Target),
            (Op::Move, End::To),
        ];
        Self {
            to: Some(to),
            ..Self::new(OPS, Target::Path(from))
        }
    }

    /// Copies a file: reads the source, writes the destination.
    pub fn copy(from: VPath, to: VPath) -> Self {
        const OPS: &[(Op, End)] = &[
            (Op::Read, End::Target),
            (Op::Write, End::To),
            (Op::Copy, End::Target),
            (Op::Copy, End::To),
        ];
        Self {
            to: Some(to),
            ..Self::new(OPS, Target::Path(from))
        }
    }

    /// Runs a command line. The paths it names are known only to
    /// [`Policy::judge_command`](crate::Policy::judge_command).
    pub fn execute(line: impl Into<String>) -> Self {
        Self::new(&[(Op::Execute, End::Target)], Target::Command(line.into()))
    }

    backend_core::setters! {
        /// Sets the kind of entry that exists, or is to be created, at the path.
        fn kind(self, kind: Kind) { self.kind = kind }

        /// Sets the size in bytes that the file has or is to have.
        fn bytes(self, bytes: impl Into<Option<u64>>) { self.bytes = bytes.into() }
    }

    /// Returns the accesses that make up the call. Allocates nothing for the list.
    pub fn accesses(self) -> impl Iterator<Item = Access> {
        // For an edit, the size is that of the result, not of the file that is read.
        let edits = self.ops.iter().any(|(op, _)| *op == Op::Edit);
        self.ops.iter().map(move |(op, end)| Access {
            op: *op,
            target: match (end, &self.to) {
                (End::To, Some(to)) => Target::Path(to.clone()),
                _ => self.target.clone(),
            },
            kind: self.kind,
            bytes: self.bytes.filter(|_| !edits || *op != Op::Read),
        })
    }
}

/// Serializes a path as its text.
pub(crate) mod path_text {
    use backend_core::VPath;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &VPath, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(path.as_str())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<VPath, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        VPath::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> VPath {
        VPath::parse(text).unwrap()
    }

    fn shown(intent: Intent) -> Vec<String> {
        intent.accesses().map(|access| access.to_string()).collect()
    }

    #[test]
    fn every_call_is_taken_apart() {
        let (a, b) = (path("/a"), path("/b"));
        for (intent, expected) in [
            (Intent::read(a.clone()), &["read /a"][..]),
            (Intent::write(a.clone()), &["write /a"]),
            (Intent::edit(a.clone()), &["read /a", "edit /a"]),
            (Intent::delete(a.clone()), &["delete /a"]),
            (
                Intent::rename(a.clone(), b.clone()),
                &["read /a", "delete /a", "write /b", "move /a", "move /b"],
            ),
            (
                Intent::copy(a.clone(), b),
                &["read /a", "write /b", "copy /a", "copy /b"],
            ),
            (Intent::ls(a.clone()), &["ls /a"]),
            (Intent::glob(a.clone()), &["glob /a"]),
            (Intent::grep(a.clone()), &["grep /a", "read /a"]),
            (Intent::create_dir(a), &["write /a"]),
            (Intent::execute("true"), &["execute true"]),
        ] {
            assert_eq!(shown(intent), expected);
        }
    }

    #[test]
    fn sizes_and_kinds_are_kept() {
        let made: Vec<_> = Intent::create_dir(path("/a")).accesses().collect();
        assert_eq!(made, [Access::directory(Op::Write, path("/a"))]);
        let edit: Vec<_> = Intent::edit(path("/a")).bytes(7).accesses().collect();
        assert_eq!(edit[0].bytes, None);
        assert_eq!(edit[1].bytes, Some(7));
        let tree = Intent::delete(path("/a")).kind(Kind::Directory);
        assert_eq!(tree.accesses().next().unwrap().kind, Kind::Directory);
    }
}
