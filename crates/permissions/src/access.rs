//! [`Access`]: one thing that a call would do, and [`Intent`]: the call, which is
//! made of several.

use std::fmt;

use backend_core::VPath;
use serde::{Deserialize, Serialize};

use crate::Op;

/// What an access is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// A place in the tree, folded.
    Path(#[serde(with = "path_text")] VPath),
    /// A command line.
    Command(String),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => f.write_str(path.as_str()),
            Self::Command(line) => f.write_str(line),
        }
    }
}

/// What stands, or is to stand, at a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A file: suffixes and sizes count.
    #[default]
    File,
    /// A directory.
    Directory,
}

/// One thing that a call would do to one target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Access {
    /// What is done.
    pub op: Op,
    /// To what.
    pub target: Target,
    /// What stands there.
    pub kind: Kind,
    /// How many bytes the file has or is to have, where that is known.
    pub bytes: Option<u64>,
}

impl Access {
    /// An access to a file.
    pub fn file(op: Op, path: VPath) -> Self {
        Self {
            op,
            target: Target::Path(path),
            kind: Kind::File,
            bytes: None,
        }
    }

    /// An access to a directory.
    pub fn directory(op: Op, path: VPath) -> Self {
        Self {
            kind: Kind::Directory,
            ..Self::file(op, path)
        }
    }

    /// Running a command line.
    pub fn command(line: impl Into<String>) -> Self {
        Self {
            op: Op::Execute,
            target: Target::Command(line.into()),
            kind: Kind::File,
            bytes: None,
        }
    }

    fn of_any_size(mut self) -> Self {
        self.bytes = None;
        self
    }

    /// The path, if it is about one.
    pub fn path(&self) -> Option<&VPath> {
        match &self.target {
            Target::Path(path) => Some(path),
            Target::Command(_) => None,
        }
    }

    /// The access with the size that the file has or is to have.
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

/// What a call is going to do, before it is taken apart.
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
pub struct Intent {
    call: Call,
    kind: Kind,
    bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Call {
    /// One operation on one path.
    One(Op, VPath),
    Edit(VPath),
    Grep(VPath),
    Move(VPath, VPath),
    Copy(VPath, VPath),
    Execute(String),
}

impl Intent {
    fn new(call: Call, kind: Kind) -> Self {
        Self {
            call,
            kind,
            bytes: None,
        }
    }

    /// Reading a file.
    pub fn read(path: VPath) -> Self {
        Self::new(Call::One(Op::Read, path), Kind::File)
    }

    /// Writing a file.
    pub fn write(path: VPath) -> Self {
        Self::new(Call::One(Op::Write, path), Kind::File)
    }

    /// Editing a file, which is also reading it: a failed match tells what
    /// stands there.
    pub fn edit(path: VPath) -> Self {
        Self::new(Call::Edit(path), Kind::File)
    }

    /// Deleting a file; see [`kind`](Self::kind) for a directory.
    pub fn delete(path: VPath) -> Self {
        Self::new(Call::One(Op::Delete, path), Kind::File)
    }

    /// Moving a file: reading and deleting the source, writing the destination.
    pub fn rename(from: VPath, to: VPath) -> Self {
        Self::new(Call::Move(from, to), Kind::File)
    }

    /// Copying a file: reading the source, writing the destination.
    pub fn copy(from: VPath, to: VPath) -> Self {
        Self::new(Call::Copy(from, to), Kind::File)
    }

    /// Listing a directory, describing what stands at a path, or following its
    /// links.
    pub fn ls(path: VPath) -> Self {
        Self::new(Call::One(Op::Ls, path), Kind::Directory)
    }

    /// Finding files by name.
    pub fn glob(path: VPath) -> Self {
        Self::new(Call::One(Op::Glob, path), Kind::Directory)
    }

    /// Finding lines by content, which is also reading.
    pub fn grep(path: VPath) -> Self {
        Self::new(Call::Grep(path), Kind::Directory)
    }

    /// Making a directory.
    pub fn create_dir(path: VPath) -> Self {
        Self::new(Call::One(Op::Write, path), Kind::Directory)
    }

    /// Running a command line. The paths it names are known only to
    /// [`Policy::judge_command`](crate::Policy::judge_command).
    pub fn execute(line: impl Into<String>) -> Self {
        Self::new(Call::Execute(line.into()), Kind::File)
    }

    /// Sets what stands, or is to stand, at the path.
    #[must_use]
    pub fn kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets how many bytes the file has or is to have.
    #[must_use]
    pub fn bytes(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.bytes = bytes.into();
        self
    }

    /// Everything that the call does. Nothing is allocated for it.
    pub fn accesses(self) -> impl Iterator<Item = Access> {
        let Self { call, kind, bytes } = self;
        let on = move |op, path: &VPath| {
            Some(Access {
                op,
                target: Target::Path(path.clone()),
                kind,
                bytes,
            })
        };
        let parts = match call {
            Call::One(op, path) => [on(op, &path), None, None, None, None],
            Call::Edit(path) => {
                // The size is that of the result; what is read has another.
                let read = on(Op::Read, &path).map(Access::of_any_size);
                [read, on(Op::Edit, &path), None, None, None]
            }
            Call::Grep(path) => [on(Op::Grep, &path), on(Op::Read, &path), None, None, None],
            Call::Move(from, to) => [
                on(Op::Read, &from),
                on(Op::Delete, &from),
                on(Op::Write, &to),
                on(Op::Move, &from),
                on(Op::Move, &to),
            ],
            Call::Copy(from, to) => [
                on(Op::Read, &from),
                on(Op::Write, &to),
                on(Op::Copy, &from),
                on(Op::Copy, &to),
                None,
            ],
            Call::Execute(line) => [Some(Access::command(line)), None, None, None, None],
        };
        parts.into_iter().flatten()
    }
}

/// A path as its text.
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
