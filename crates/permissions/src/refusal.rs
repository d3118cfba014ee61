//! [`Refusal`]: why something may not be done, in a type.

use backend_core::{Error, ErrorKind, PathError, Quoted};

use crate::Op;

/// Roots or suffixes that one text lists.
const LISTED: usize = 20;

/// Why something may not be done. The text says what is allowed instead, in
/// virtual paths only.
///
/// ```
/// use permissions::Refusal;
///
/// let refusal = Refusal::read_only("/docs/a.md", vec!["/project".into()]);
/// assert_eq!(refusal.to_string(), "'/docs/a.md' is read-only; writable: /project");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A rule or a default says no.
    #[error("{op} of {} is not allowed{}", Quoted::new(.target), because(.description))]
    #[non_exhaustive]
    Rule {
        /// What was to be done.
        op: Op,
        /// The path or the command line.
        target: String,
        /// The rule's description; may be empty.
        description: String,
    },
    /// A command names a path that it may not.
    #[error(
        "the command names {}, which may not be touched ({op}){}",
        Quoted::new(.path), because(.description)
    )]
    #[non_exhaustive]
    CommandPath {
        /// What the rules deny.
        op: Op,
        /// The path as the command spells it.
        path: String,
        /// The rule's description; may be empty.
        description: String,
    },
    /// A command line takes too long to be looked at.
    #[error(
        "the command line is too complicated to be judged; run it in parts, or put it into a file"
    )]
    TooComplicated,
    /// What was typed means no path.
    #[error("{problem}; readable: {}", list(.readable))]
    #[non_exhaustive]
    InvalidPath {
        /// What was typed.
        path: String,
        /// What is wrong with it.
        problem: PathError,
        /// What can be read.
        readable: Vec<String>,
    },
    /// The path lies in no mount, or not in what was left of them.
    #[error("{} lies outside what can be read; readable: {}", Quoted::new(.path), list(.readable))]
    #[non_exhaustive]
    Outside {
        /// The path.
        path: String,
        /// What can be read.
        readable: Vec<String>,
    },
    /// The path cannot be written.
    #[error("{} is read-only; writable: {}", Quoted::new(.path), list(.writable))]
    #[non_exhaustive]
    ReadOnly {
        /// The path.
        path: String,
        /// What can be written.
        writable: Vec<String>,
    },
    /// A mount stands at the path or beneath it.
    #[error(
        "{} is a mount or holds one, and so is not deleted or moved; do it to what lies in it",
        Quoted::new(.path)
    )]
    #[non_exhaustive]
    MountRoot {
        /// The path.
        path: String,
    },
    /// The mount takes no files of this suffix.
    #[error(
        "files with {} are not allowed here ({}); allowed: {}",
        the_suffix(.suffix), Quoted::new(.path), suffixes(.allowed)
    )]
    #[non_exhaustive]
    Suffix {
        /// The path.
        path: String,
        /// Its suffix, in lower case; may be empty.
        suffix: String,
        /// What is allowed, as configured.
        allowed: Vec<String>,
    },
    /// The file is larger than the mount allows.
    #[error(
        "{} has {size} bytes, more than the {limit} that are allowed here; use a smaller file",
        Quoted::new(.path)
    )]
    #[non_exhaustive]
    TooLarge {
        /// The path.
        path: String,
        /// How large it is.
        size: u64,
        /// How large it may be.
        limit: u64,
    },
    /// Somebody was asked and said no.
    #[error("{what} was not approved{}", because(.note))]
    #[non_exhaustive]
    Declined {
        /// What was asked.
        what: String,
        /// What the answer said; may be empty.
        note: String,
    },
    /// Somebody has to be asked, and nobody can be.
    #[error("{what} needs approval, and {why}")]
    #[non_exhaustive]
    ApprovalRequired {
        /// What would have been asked.
        what: String,
        /// Why nobody was: a fragment that follows "and".
        why: String,
    },
}

fn because(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {text}")
    }
}

fn the_suffix(suffix: &str) -> String {
    match suffix {
        "" => "no suffix".to_owned(),
        suffix => format!("the suffix {}", Quoted::new(suffix)),
    }
}

fn list(items: &[String]) -> String {
    let shown = items.iter().take(LISTED).map(String::as_str);
    let text = shown.collect::<Vec<_>>().join(", ");
    match items.len().saturating_sub(LISTED) {
        _ if items.is_empty() => "none".to_owned(),
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

fn suffixes(allowed: &[String]) -> String {
    let spoken = |suffix: &String| match suffix.as_str() {
        "" => "no suffix".to_owned(),
        suffix => suffix.to_owned(),
    };
    list(&allowed.iter().map(spoken).collect::<Vec<_>>())
}

/// Each refusal, to be made anywhere.
impl Refusal {
    /// A rule, or a default without a description, says no.
    pub fn rule(op: Op, target: impl Into<String>, description: impl Into<String>) -> Self {
        Self::Rule {
            op,
            target: target.into(),
            description: description.into(),
        }
    }

    /// A command names a path for which `op` is denied.
    pub fn command_path(op: Op, path: impl Into<String>, description: impl Into<String>) -> Self {
        Self::CommandPath {
            op,
            path: path.into(),
            description: description.into(),
        }
    }

    /// What was typed means no path.
    pub fn invalid_path(
        path: impl Into<String>,
        problem: PathError,
        readable: Vec<String>,
    ) -> Self {
        Self::InvalidPath {
            path: path.into(),
            problem,
            readable,
        }
    }

    /// The path lies outside what can be read.
    pub fn outside(path: impl Into<String>, readable: Vec<String>) -> Self {
        Self::Outside {
            path: path.into(),
            readable,
        }
    }

    /// The path cannot be written.
    pub fn read_only(path: impl Into<String>, writable: Vec<String>) -> Self {
        Self::ReadOnly {
            path: path.into(),
            writable,
        }
    }

    /// A mount stands at the path or beneath it.
    pub fn mount_root(path: impl Into<String>) -> Self {
        Self::MountRoot { path: path.into() }
    }

    /// The mount takes no files of this suffix, which is in lower case.
    pub fn suffix(
        path: impl Into<String>,
        suffix: impl Into<String>,
        allowed: Vec<String>,
    ) -> Self {
        Self::Suffix {
            path: path.into(),
            suffix: suffix.into(),
            allowed,
        }
    }

    /// The file is larger than allowed.
    pub fn too_large(path: impl Into<String>, size: u64, limit: u64) -> Self {
        Self::TooLarge {
            path: path.into(),
            size,
            limit,
        }
    }

    /// Somebody said no to `what`.
    pub fn declined(what: impl Into<String>, note: impl Into<String>) -> Self {
        Self::Declined {
            what: what.into(),
            note: note.into(),
        }
    }

    /// Nobody could be asked about `what`. `why` follows "and".
    pub fn approval_required(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::ApprovalRequired {
            what: what.into(),
            why: why.into(),
        }
    }
}

impl Refusal {
    /// What a backend's caller matches on.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::ApprovalRequired { .. } => ErrorKind::ApprovalRequired,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::InvalidPath { .. } => ErrorKind::InvalidPath,
            _ => ErrorKind::PermissionDenied,
        }
    }

    /// The refusal that `error` was made from, if it was.
    pub fn of(error: &Error) -> Option<&Self> {
        let source = std::error::Error::source(error)?;
        source.downcast_ref::<ByPolicy>().map(|by| &by.0)
    }
}

/// The texts for models, and those of the two Python libraries that this crate can
/// stand in for. Where such a library has no such refusal, they are the refusal's
/// own text.
impl Refusal {
    /// As pydantic-ai-filesystem-sandbox words it, mostly in two lines.
    ///
    /// ```
    /// use permissions::Refusal;
    ///
    /// assert_eq!(
    ///     Refusal::too_large("/a", 2_000_000, 1_000).filesystem_text(),
    ///     "Cannot read '/a': file too large (2,000,000 bytes).\nMaximum allowed: 1,000 bytes",
    /// );
    /// ```
    pub fn filesystem_text(&self) -> String {
        let or = |items: &[String], nothing: &str| match items {
            [] => nothing.to_owned(),
            items => items.join(", "),
        };
        match self {
            // It may well lie inside, so that is not what to change.
            Self::InvalidPath { problem, .. } if !leads_outside(problem) => {
                format!("Cannot use this path: {problem}")
            }
            Self::InvalidPath { path, readable, .. } | Self::Outside { path, readable } => {
                let roots = or(readable, "none");
                format!("Cannot access '{path}': path is outside sandbox.\nReadable paths: {roots}")
            }
            Self::ReadOnly { path, writable } => {
                let roots = or(writable, "none");
                format!("Cannot write to '{path}': path is read-only.\nWritable paths: {roots}")
            }
            Self::Suffix {
                path,
                suffix,
                allowed,
            } => {
                let allowed = or(allowed, "any");
                format!(
                    "Cannot access '{path}': suffix '{suffix}' not allowed.\nAllowed suffixes: {allowed}"
                )
            }
            Self::TooLarge { path, size, limit } => {
                let (size, limit) = (thousands(*size), thousands(*limit));
                format!(
                    "Cannot read '{path}': file too large ({size} bytes).\nMaximum allowed: {limit} bytes"
                )
            }
            Self::Declined { what, .. } => self.filesystem_text_for(what),
            Self::Rule { op, .. } => self.filesystem_text_for(op.as_str()),
            _ => self.to_string(),
        }
    }

    /// As [`filesystem_text`](Self::filesystem_text), where the tool that was
    /// called is known: its name stands in the texts about approvals.
    pub fn filesystem_text_for(&self, tool: &str) -> String {
        let or = |text: &str, nothing: &str| match text {
            "" => nothing.to_owned(),
            text => text.to_owned(),
        };
        match self {
            Self::Declined { note, .. } => {
                format!(
                    "Approval denied for {tool}: {}",
                    or(note, "no reason given")
                )
            }
            Self::Rule { description, .. } => {
                format!("Blocked {tool}: {}", or(description, "blocked by policy"))
            }
            _ => self.filesystem_text(),
        }
    }

    /// As the console tools word it. What is not permitted says `Permission
    /// denied`, which models know, and names what it is about.
    ///
    /// ```
    /// use permissions::{Op, Refusal};
    ///
    /// let secret = Refusal::rule(Op::Read, "/.env", "Protect sensitive files");
    /// assert_eq!(
    ///     secret.console_text(),
    ///     "Permission denied for read on '/.env': Protect sensitive files",
    /// );
    /// ```
    pub fn console_text(&self) -> String {
        match self {
            Self::Rule {
                op,
                target,
                description,
            } => format!(
                "Permission denied for {op} on {}{}",
                Quoted::new(target),
                because(description)
            ),
            // Other arguments mend these.
            Self::InvalidPath { .. } | Self::TooLarge { .. } => self.to_string(),
            _ => format!("Permission denied: {self}"),
        }
    }

    /// As pydantic-ai-backend's checker words it for the host program.
    pub fn checker_text(&self) -> String {
        match self {
            Self::Rule {
                op,
                target,
                description,
            } => format!(
                "Permission denied for {op} on '{target}'{}",
                because(description)
            ),
            Self::Declined { what, note } => {
                format!("Permission denied for {what}{}", because(note))
            }
            Self::ApprovalRequired { what, why } => {
                format!("Permission required for {what}{}", because(why))
            }
            _ => self.to_string(),
        }
    }
}

/// Whether what was typed would be a path somewhere else, but is none here. That
/// library calls all of this outside.
fn leads_outside(problem: &PathError) -> bool {
    matches!(
        problem,
        PathError::Nul(_) | PathError::Home(_) | PathError::Drive(_) | PathError::AboveRoot(_)
    )
}

/// A number with a comma between thousands.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The refusal as an error's source. Its text does not repeat the error's.
#[derive(Debug, thiserror::Error)]
#[error("refused by the permissions in force")]
struct ByPolicy(Refusal);

impl From<Refusal> for Error {
    /// [`Refusal::of`] gives it back.
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.kind(), refusal.to_string()).with_source(ByPolicy(refusal))
    }
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;
