//! [`Refusal`]: the typed reason why something is not allowed.

use backend_core::ops::LevelTooLow;
use backend_core::{Error, ErrorKind, PathError, Quoted};

use crate::Op;

/// Maximum number of roots or suffixes listed in one message.
const LISTED: usize = 20;

/// The reason why something is not allowed. The message names the alternatives that are
/// allowed and uses only virtual paths.
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
    /// Denied by a rule or a default.
    #[error("{op} of {} is not allowed{}", Quoted::new(.target), because(.description))]
    #[non_exhaustive]
    Rule {
        /// The operation.
        op: Op,
        /// The path or the command line.
        target: String,
        /// The rule's description; may be empty.
        description: String,
    },
    /// A command names a path that it must not use.
    #[error(
        "the command names {}, which may not be touched ({op}){}",
        Quoted::new(.path), because(.description)
    )]
    #[non_exhaustive]
    CommandPath {
        /// The denied operation.
        op: Op,
        /// The path as the command spells it.
        path: String,
        /// The rule's description; may be empty.
        description: String,
    },
    /// Commands must have a higher level of enforcement than the sandbox has.
    #[error("{0}")]
    Level(LevelTooLow),
    /// A command line takes too long to analyze.
    #[error(
        "the command line is too complicated to be judged; run it in parts, or put it into a file"
    )]
    TooComplicated,
    /// The text given as a path is not valid.
    #[error("{problem}; readable: {}", list(.readable))]
    #[non_exhaustive]
    InvalidPath {
        /// The text as given.
        path: String,
        /// The reason why it is not a path.
        problem: PathError,
        /// The readable roots.
        readable: Vec<String>,
    },
    /// The path is in none of the mounts, or outside the derived scope.
    #[error("{} lies outside what can be read; readable: {}", Quoted::new(.path), list(.readable))]
    #[non_exhaustive]
    Outside {
        /// The path.
        path: String,
        /// The readable roots.
        readable: Vec<String>,
    },
    /// The path is read-only.
    #[error("{} is read-only; writable: {}", Quoted::new(.path), list(.writable))]
    #[non_exhaustive]
    ReadOnly {
        /// The path.
        path: String,
        /// The writable roots.
        writable: Vec<String>,
    },
    /// There is a mount at the path or beneath it.
    #[error(
        "{} is a mount or contains one, so it cannot be deleted or moved; delete or move its contents",
        Quoted::new(.path)
    )]
    #[non_exhaustive]
    MountRoot {
        /// The path.
        path: String,
    },
    /// The mount does not accept files with this suffix.
    #[error(
        "files with {} are not allowed here ({}); allowed: {}",
        the_suffix(.suffix), Quoted::new(.path), suffixes(.allowed)
    )]
    #[non_exhaustive]
    Suffix {
        /// The path.
        path: String,
        /// The path's suffix, in lower case; may be empty.
        suffix: String,
        /// The allowed suffixes, as configured.
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
        /// The size of the file.
        size: u64,
        /// The size limit.
        limit: u64,
    },
    /// The approver was asked and declined.
    #[error("{what} was not approved{}", because(.note))]
    #[non_exhaustive]
    Declined {
        /// The action that was asked about.
        what: String,
        /// The note that came with the answer; may be empty.
        note: String,
    },
    /// Approval is required, but there is no approver to ask.
    #[error("{what} needs approval, and {why}")]
    #[non_exhaustive]
    ApprovalRequired {
        /// The action that needs approval.
        what: String,
        /// The reason why no approver was asked: a fragment that follows "and".
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

/// Defines a constructor for each kind of refusal.
macro_rules! constructors {
    ($($(#[$doc:meta])+ $name:ident = $variant:ident($($field:ident: $type:ty),+);)+) => {
        impl Refusal {
            $(
                $(#[$doc])+
                pub fn $name($($field: $type),+) -> Self {
                    Self::$variant { $($field: $field.into()),+ }
                }
            )+
        }
    };
}

constructors! {
    /// Creates a refusal by a rule, or by a default, which has no description.
    rule = Rule(op: Op, target: impl Into<String>, description: impl Into<String>);
    /// Creates a refusal of a command that names a path for which `op` is denied.
    command_path = CommandPath(op: Op, path: impl Into<String>, description: impl Into<String>);
    /// Creates a refusal of text that is not a valid path.
    invalid_path =
        InvalidPath(path: impl Into<String>, problem: PathError, readable: Vec<String>);
    /// Creates a refusal of a path outside everything that can be read.
    outside = Outside(path: impl Into<String>, readable: Vec<String>);
    /// Creates a refusal to write a read-only path.
    read_only = ReadOnly(path: impl Into<String>, writable: Vec<String>);
    /// Creates a refusal to delete or move a path with a mount at it or beneath it.
    mount_root = MountRoot(path: impl Into<String>);
    /// Creates a refusal of a suffix, in lower case, that the mount does not accept.
    suffix = Suffix(path: impl Into<String>, suffix: impl Into<String>, allowed: Vec<String>);
    /// Creates a refusal of a file that is larger than allowed.
    too_large = TooLarge(path: impl Into<String>, size: u64, limit: u64);
    /// Creates a refusal because the approver declined `what`.
    declined = Declined(what: impl Into<String>, note: impl Into<String>);
    /// Creates a refusal because no approver could be asked. `why` follows "and".
    approval_required = ApprovalRequired(what: impl Into<String>, why: impl Into<String>);
}

impl Refusal {
    /// Returns the error kind that a backend's caller matches on.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::ApprovalRequired { .. } => ErrorKind::ApprovalRequired,
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::InvalidPath { .. } => ErrorKind::InvalidPath,
            _ => ErrorKind::PermissionDenied,
        }
    }

    /// Returns the refusal that `error` was created from, if any.
    pub fn of(error: &Error) -> Option<&Self> {
        let source = std::error::Error::source(error)?;
        source.downcast_ref::<RefusalSource>().map(|by| &by.0)
    }
}

/// The messages in the wordings of the two Python libraries that this crate can replace.
/// Refusals that such a library does not know keep their own message.
impl Refusal {
    /// Returns the message in the wording of pydantic-ai-filesystem-sandbox, mostly two
    /// lines.
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
            // The path may well be inside the sandbox, so "outside" would be wrong.
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

    /// Like [`filesystem_text`](Self::filesystem_text), but puts the name of the called
    /// tool into the messages about approvals.
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

    /// Returns the message in the wording of the console tools. Denials start with
    /// `Permission denied`, which models recognize, and name the target.
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
            // Different arguments fix these.
            Self::InvalidPath { .. } | Self::TooLarge { .. } => self.to_string(),
            _ => format!("Permission denied: {self}"),
        }
    }
}

/// Returns whether the text would be a path somewhere else but is not one here. The
/// Python library reports all of these as "outside".
fn leads_outside(problem: &PathError) -> bool {
    matches!(
        problem,
        PathError::Nul(_) | PathError::Home(_) | PathError::Drive(_) | PathError::AboveRoot(_)
    )
}

/// Formats a number with commas between thousands.
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

/// The refusal as an error's source. Its message does not repeat the error's message.
#[derive(Debug, thiserror::Error)]
#[error("refused by the permissions in force")]
struct RefusalSource(Refusal);

impl From<Refusal> for Error {
    /// [`Refusal::of`] recovers the refusal from the error.
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.kind(), refusal.to_string()).with_source(RefusalSource(refusal))
    }
}

#[cfg(test)]
mod tests;
