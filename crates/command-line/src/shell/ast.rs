//! The syntax tree of a program, reduced to what matters for the commands it runs.
//! Words are kept as written, with their quotes; `word` parses their contents.

use std::cell::OnceCell;
use std::rc::Rc;

use crate::error::ParseError;

/// A parsed program.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) list: List,
    /// Points where shells read the text differently. It was parsed as `bash` does.
    pub(crate) doubts: Vec<ParseError>,
}

/// Commands that run one after the other.
pub(crate) type List = Vec<AndOr>;

#[derive(Debug)]
pub(crate) struct AndOr {
    pub(crate) first: Pipeline,
    pub(crate) rest: Vec<(Join, Pipeline)>,
    /// Whether the shell continues without waiting for it.
    pub(crate) background: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    And,
    Or,
}

#[derive(Debug)]
pub(crate) struct Pipeline {
    /// Whether it is preceded by `time`.
    pub(crate) timed: bool,
    pub(crate) stages: Vec<Command>,
}

#[derive(Debug)]
pub(crate) enum Command {
    Simple(Vec<Item>),
    Compound(Compound, Vec<Redirect>),
    Function {
        name: String,
        definition: Rc<Definition>,
    },
    /// `[[ ... ]]`.
    Test(Vec<String>, Vec<Redirect>),
}

/// The body of a function. Shared, since it is walked again where it is called.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) body: Compound,
    pub(crate) redirects: Vec<Redirect>,
}

/// A part of a simple command. Parts are kept in order.
#[derive(Debug)]
pub(crate) enum Item {
    Word(String),
    Assignment(Assignment),
    Redirect(Redirect),
    /// `<(...)` or `>(...)`.
    Substitution(List),
}

#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) index: Option<String>,
    pub(crate) append: bool,
    pub(crate) value: Value,
}

#[derive(Debug)]
pub(crate) enum Value {
    Scalar(String),
    /// Members, with their indexes if given.
    Array(Vec<(Option<String>, String)>),
}

#[derive(Debug)]
pub(crate) enum Compound {
    Group(List),
    Subshell(List),
    For {
        name: String,
        words: Vec<String>,
        body: List,
    },
    Case {
        word: String,
        arms: Vec<Arm>,
    },
    /// `if`: conditions and bodies in order.
    Branches(Vec<List>),
    /// `while` or `until`.
    Loop {
        condition: List,
        body: List,
    },
}

#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) patterns: Vec<String>,
    pub(crate) body: List,
}

#[derive(Debug)]
pub(crate) enum Redirect {
    File {
        fd: Option<u32>,
        kind: Kind,
        target: Target,
    },
    Document {
        fd: Option<u32>,
        /// Whether the shell expands its contents.
        expands: bool,
        body: Body,
    },
    /// `&>file`.
    Both(String),
}

impl Redirect {
    /// Returns the text of a here-document.
    pub(crate) fn document(&self) -> Option<&str> {
        match self {
            Self::Document { body, .. } => body.get().map(String::as_str),
            Self::File { .. } | Self::Both(_) => None,
        }
    }
}

/// The text of a here-document, which follows the line that names it.
pub(crate) type Body = Rc<OnceCell<String>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `<`.
    Read,
    /// `>`, `>>` or `>|`.
    Write,
    /// `<>`.
    ReadWrite,
    /// `<&`.
    CopyInput,
    /// `>&`.
    CopyOutput,
}

#[derive(Debug)]
pub(crate) enum Target {
    Word(String),
    /// `<(...)` or `>(...)`.
    Substitution(List),
}
