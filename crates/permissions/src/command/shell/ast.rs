//! A program, as far as it matters what it would run. Words are spelled as in the
//! program, with their quotes; `word` reads what is in them.

use std::cell::OnceCell;
use std::rc::Rc;

use crate::command::Trouble;

/// All of a text.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) list: List,
    /// Where shells read the text differently. It was read as `bash` does.
    pub(crate) doubts: Vec<Trouble>,
}

/// Commands one after the other.
pub(crate) type List = Vec<AndOr>;

#[derive(Debug)]
pub(crate) struct AndOr {
    pub(crate) first: Pipeline,
    pub(crate) rest: Vec<(Join, Pipeline)>,
    /// Whether the shell goes on without waiting for it.
    pub(crate) background: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    And,
    Or,
}

#[derive(Debug)]
pub(crate) struct Pipeline {
    /// Whether `time` stands before it.
    pub(crate) timed: bool,
    pub(crate) stages: Vec<Command>,
}

#[derive(Debug)]
pub(crate) enum Command {
    Simple(Vec<Item>),
    Compound(Compound, Vec<Redirect>),
    Function {
        name: String,
        body: Compound,
        redirects: Vec<Redirect>,
    },
    /// `[[ ... ]]`.
    Test(Vec<String>, Vec<Redirect>),
}

/// A part of a simple command, in the order in which they stand there.
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
    /// Members with their indexes, where these are given.
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
    /// `if`, `while` or `until`: conditions and bodies as they follow each other.
    Branches(Vec<List>),
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
        /// Whether the shell expands what is in it.
        expands: bool,
        body: Body,
    },
    /// `&>file`.
    Both(String),
}

/// The text of a here-document, which is read after the line that names it.
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
