//! [`Question`]: a request for approval.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use backend_core::ops::ContentHash;
use backend_core::{Enforcement, VPath};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use super::limits::{LINE_BYTES, SHOWN_LINES};
use super::{Effect, text};
use crate::rules::level;
use crate::{Op, Target};

mod arguments;

/// An access that needs approval.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Asked {
    /// The operation.
    pub op: Op,
    /// The target of the operation.
    pub target: Target,
    /// Whether a rule asks about this target, and not only a default about everything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_rule: bool,
}

impl Asked {
    /// Creates an access of `op` on `target` that a default asks about.
    pub fn new(op: Op, target: Target) -> Self {
        Self {
            op,
            target,
            by_rule: false,
        }
    }

    backend_core::setters! {
        /// Sets whether a rule asks about this target.
        fn by_rule(self, by_rule: bool) { self.by_rule = by_rule }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.op, self.target)
    }
}

/// Identifies equal questions. It covers the session, the tool and its arguments, the
/// accesses, and the contents that would be written.
///
/// It is the hash of a canonical text and the same in every process. If a file has
/// changed so that an edit would have a different result, the question is a different
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(ContentHash);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

/// A request for approval.
///
/// `Display` is meant for a terminal: it is bounded, and nothing in it can move the
/// cursor, hide text or change its direction, whatever the model wrote. The JSON form is
/// for other front ends, which must escape the text themselves.
///
/// ```
/// use backend_core::VPath;
/// use permissions::approval::{Asked, Effect, Question};
/// use permissions::{Op, Target};
///
/// let path = VPath::parse("/notes.md")?;
/// let question = Question::new("session-1", vec![Asked::new(Op::Edit, Target::Path(path))])
///     .tool("edit_file")
///     .effect(Effect::diff("/notes.md", b"one\n", b"two\n"))
///     .reason("writing needs approval here");
/// assert_eq!(
///     question.to_string(),
///     "Edit /notes.md: replace 3 chars with 3 chars\n\
///      asks: edit /notes.md\n\
///      because: writing needs approval here\n\
///      --- /notes.md\n+++ /notes.md\n@@ -1 +1 @@\n-one\n+two"
/// );
/// # Ok::<(), backend_core::PathError>(())
/// ```
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
#[must_use]
pub struct Question {
    /// The session it belongs to.
    #[serde(serialize_with = "as_str")]
    pub session: Arc<str>,
    /// The tool that was called, if one was.
    #[serde(serialize_with = "as_str_if")]
    pub tool: Option<Arc<str>>,
    /// The tool's arguments in a form that can be shown: long ones truncated, secret ones
    /// removed. `Null` if there are none.
    pub args: Value,
    /// All accesses that need approval.
    pub asked: Vec<Asked>,
    /// A one-line description of the call. Not escaped, so not safe to print.
    pub description: String,
    /// The exact effect of the call.
    pub effect: Effect,
    /// The reasons for the question, one line each.
    pub reasons: Vec<String>,
    /// For a command: the level at which the paths that the rules deny are kept from it.
    /// `None` if they deny none.
    #[serde(
        serialize_with = "level::enforcement::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub enforcement: Option<Enforcement>,
    /// The hash of all arguments, including those not shown.
    #[serde(skip)]
    args_hash: Option<ContentHash>,
    /// The hashes of files when this was asked.
    #[serde(skip)]
    bound: Vec<(VPath, ContentHash)>,
}

impl Question {
    /// Creates a question about `asked`.
    pub fn new(session: impl Into<Arc<str>>, asked: Vec<Asked>) -> Self {
        let mut question = Self {
            session: session.into(),
            asked,
            ..Self::default()
        };
        question.description = question.own_description();
        question
    }

    /// Creates a question about one of the host's own tools, which performs none of the
    /// operations known here.
    ///
    /// ```
    /// use permissions::Question;
    ///
    /// let args = serde_json::json!({"to": "all", "text": "hello"});
    /// let question = Question::for_tool("session-1", "send_mail", args);
    /// assert_eq!(question.description, r#"send_mail(text="hello", to="all")"#);
    /// ```
    pub fn for_tool(session: impl Into<Arc<str>>, tool: impl Into<Arc<str>>, args: Value) -> Self {
        Self::new(session, Vec::new()).tool(tool).args(args)
    }

    /// Sets the tool that was called.
    pub fn tool(self, tool: impl Into<Arc<str>>) -> Self {
        self.described(|question| question.tool = Some(tool.into()))
    }

    /// Sets the tool's arguments. All of them count for the fingerprint. Strings over
    /// [`ARGUMENT_BYTES`](super::limits::ARGUMENT_BYTES) are shown truncated.
    pub fn args(self, args: Value) -> Self {
        self.described(|question| {
            question.args_hash = Some(arguments::hash(&args));
            question.args = arguments::shown(args);
        })
    }

    /// Removes the values of these arguments, at any depth, from the shown arguments.
    pub fn redact(self, names: &[&str]) -> Self {
        self.described(|question| arguments::redact(&mut question.args, names))
    }

    /// Sets the exact effect of the call.
    pub fn effect(self, effect: Effect) -> Self {
        self.described(|question| question.effect = effect)
    }

    backend_core::setters! {
        /// Sets the one-line description, in place of the effect's own.
        fn description(self, description: impl Into<String>) {
            self.description = description.into();
        }

        /// Sets the level at which denied paths are kept from the command.
        fn enforcement(self, level: Enforcement) { self.enforcement = Some(level) }

        /// Adds a reason for the question, in one line.
        fn reason(self, reason: impl Into<String>) { self.reasons.push(reason.into()) }
    }

    /// Binds the question to the current contents of the file at `path`. The permit
    /// carries the hash, and the call is made only if the file is unchanged, so that the
    /// effect is the one that was shown.
    pub fn bind(mut self, path: VPath, hash: ContentHash) -> Self {
        self.bound.retain(|(bound, _)| *bound != path);
        self.bound.push((path, hash));
        self
    }

    /// Returns the hashes of the files that the question is bound to.
    pub fn bound(&self) -> &[(VPath, ContentHash)] {
        &self.bound
    }

    /// Returns each operation that is asked about, and whether a rule asks about it.
    pub fn ops(&self) -> Vec<(Op, bool)> {
        let mut ops: Vec<(Op, bool)> = Vec::new();
        for asked in &self.asked {
            match ops.iter_mut().find(|(op, _)| *op == asked.op) {
                Some((_, by_rule)) => *by_rule |= asked.by_rule,
                None => ops.push((asked.op, asked.by_rule)),
            }
        }
        ops
    }

    /// Returns the fingerprint by which questions are compared.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint(arguments::hash(&json!({
            "version": 1,
            "session": &*self.session,
            "tool": self.tool.as_deref(),
            "args": self.args_hash.map(|hash| hash.to_string()),
            "asked": self.asked.iter().map(words).collect::<Vec<_>>(),
            "effect": self.effect.identity(),
        })))
    }

    /// Returns a fingerprint of all that is shown, to compare questions in flight.
    pub(super) fn shown_fingerprint(&self) -> Fingerprint {
        let bound = self.bound.iter();
        Fingerprint(arguments::hash(&json!({
            "fingerprint": self.fingerprint().to_string(),
            "description": self.description,
            "effect": self.effect,
            "reasons": self.reasons,
            "enforcement": self.enforcement.map(Enforcement::as_str),
            "bound": bound.map(|(path, hash)| [path.as_str().to_owned(), hash.to_string()])
                .collect::<Vec<_>>(),
        })))
    }

    /// Returns how denied paths are kept from the command, in words, if there are any.
    pub fn enforcement_text(&self) -> Option<&'static str> {
        Some(match self.enforcement? {
            Enforcement::View => "kept by the kernel",
            Enforcement::Landlock => {
                "only by the words of the command line, within the sandbox's directories"
            }
            _ => "only by the words of the command line",
        })
    }

    /// Returns the description in a form that can be printed and logged.
    pub(crate) fn what(&self) -> String {
        text::line(&self.description, LINE_BYTES)
    }

    /// Returns the tool's name, or the first operation's.
    pub(super) fn tool_or_op(&self) -> &str {
        match (&self.tool, self.asked.first()) {
            (Some(tool), _) => tool,
            (None, Some(asked)) => asked.op.as_str(),
            (None, None) => "this",
        }
    }

    /// Returns the same question about `asked` only.
    pub(super) fn only(self, asked: Vec<Asked>) -> Self {
        self.described(|question| question.asked = asked)
    }

    /// Applies a change. Updates the description too, unless a custom one was set.
    fn described(mut self, change: impl FnOnce(&mut Self)) -> Self {
        let own = self.description == self.own_description();
        change(&mut self);
        if own {
            self.description = self.own_description();
        }
        self
    }

    fn own_description(&self) -> String {
        let effect = self.effect.description();
        if !effect.is_empty() {
            return effect;
        }
        if !self.asked.is_empty() {
            return listed(&self.asked, ", ", ToString::to_string);
        }
        let tool = self.tool.as_deref().unwrap_or("call");
        format!("{tool}({})", arguments::in_call(&self.args))
    }
}

fn as_str<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(text)
}

fn as_str_if<S: Serializer>(text: &Option<Arc<str>>, to: S) -> Result<S::Ok, S::Error> {
    text.as_deref().serialize(to)
}

/// Returns an access in the form used for the fingerprint.
fn words(asked: &Asked) -> [Cow<'_, str>; 3] {
    let (kind, target) = match &asked.target {
        Target::Path(path) => ("path", path.as_str().into()),
        Target::Command(line) => ("command", line.as_str().into()),
        Target::Port(port) => ("port", port.to_string().into()),
    };
    [asked.op.as_str().into(), kind.into(), target]
}

/// Joins the first of `items`, and says how many more there are.
fn listed<T>(items: &[T], between: &str, show: impl Fn(&T) -> String) -> String {
    let mut shown: Vec<String> = items.iter().take(SHOWN_LINES).map(show).collect();
    if items.len() > SHOWN_LINES {
        shown.push(format!("[… {} more …]", items.len() - SHOWN_LINES));
    }
    shown.join(between)
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what())?;
        if !self.asked.is_empty() {
            let asked = listed(&self.asked, "; ", |asked| {
                text::line(&asked.to_string(), LINE_BYTES)
            });
            write!(f, "\nasks: {asked}")?;
        }
        if !self.reasons.is_empty() {
            let reasons = listed(&self.reasons, "; ", |reason| text::line(reason, LINE_BYTES));
            write!(f, "\nbecause: {reasons}")?;
        }
        if let Some(how) = self.enforcement_text() {
            write!(f, "\npath rules: {how}")?;
        }
        let effect = self.effect.to_string();
        if !effect.is_empty() {
            write!(f, "\n{effect}")?;
        }
        if let Some(unseen) = self.effect.unseen() {
            write!(f, "\n{unseen}; a yes counts for all of it")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
