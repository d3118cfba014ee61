//! [`Action`] and [`Op`]: the vocabulary shared by all layers.

use serde::{Deserialize, Serialize};

/// Names the values of an enum: for the method that returns the name, and for `Display`.
macro_rules! names {
    ($type:ident::$method:ident, ALL { $($variant:ident = $name:literal,)+ }) => {
        impl $type {
            /// Every value, in order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];
        }

        names!($type::$method { $($variant = $name,)+ });
    };
    ($type:ident::$method:ident { $($variant:ident = $name:literal,)+ }) => {
        impl $type {
            /// Returns the name of the value, as it is written and shown.
            pub const fn $method(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.$method())
            }
        }
    };
}

pub(crate) use names;

/// The decision about an access, in ascending order of strength: the strongest wins.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// The access is allowed.
    Allow,
    /// The access is allowed if it is approved.
    #[default]
    Ask,
    /// The access is denied, and no approval changes that.
    Deny,
}

names!(Action::as_str {
    Allow = "allow",
    Ask = "ask",
    Deny = "deny",
});

/// An operation, as rules name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "each name is the operation it stands for")]
pub enum Op {
    Read,
    Write,
    Edit,
    Delete,
    Move,
    Copy,
    Ls,
    Glob,
    Grep,
    Execute,
    Connect,
    Terminal,
}

/// The effect of an operation on its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpClass {
    /// Only looks at the target.
    Read,
    /// Changes the target.
    Write,
    /// Runs a command, connects to one, or opens a way to type some.
    Execute,
}

impl Op {
    /// Returns whether the operation reads, changes or runs something.
    pub const fn class(self) -> OpClass {
        match self {
            Self::Read | Self::Ls | Self::Glob | Self::Grep => OpClass::Read,
            Self::Write | Self::Edit | Self::Delete | Self::Move | Self::Copy => OpClass::Write,
            Self::Execute | Self::Connect | Self::Terminal => OpClass::Execute,
        }
    }
}

names!(Op::as_str, ALL {
    Read = "read",
    Write = "write",
    Edit = "edit",
    Delete = "delete",
    Move = "move",
    Copy = "copy",
    Ls = "ls",
    Glob = "glob",
    Grep = "grep",
    Execute = "execute",
    Connect = "connect",
    Terminal = "terminal",
});

/// The error for a word that does not name an operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} is not an operation; use read, write, edit, delete, move, copy, ls, glob, grep, execute, \
     connect or terminal"
)]
pub struct UnknownOp(backend_core::Quoted);

impl std::str::FromStr for Op {
    type Err = UnknownOp;

    fn from_str(word: &str) -> Result<Self, UnknownOp> {
        Self::ALL
            .into_iter()
            .find(|op| op.as_str() == word)
            .ok_or_else(|| UnknownOp(backend_core::Quoted::new(word)))
    }
}
