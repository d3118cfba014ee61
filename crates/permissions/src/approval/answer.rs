//! [`Answer`]: the answer of an approver, and its scope.

use std::time::Duration;

use backend_core::VPath;
use serde::{Deserialize, Serialize};

/// The scope of an answer beyond the current call. An answer is remembered only for the
/// session that asked, and only for the operations that were asked about.
///
/// The scope must cover everything that was asked. If it does not, the answer applies to
/// this call alone, nothing is remembered, and the permit's note says so. The approver's
/// intention is not guessed.
///
/// A yes to what only a default asks about says nothing about targets that a rule singles
/// out. So [`Prefix`](Self::Prefix), [`Pattern`](Self::Pattern) and
/// [`Session`](Self::Session) cover an operation where rules ask only if a rule asked
/// about it in the answered question. A remembered no covers both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Remember {
    /// This call only. The next question is asked again, even an equal one.
    #[default]
    No,
    /// The same call with the same arguments: questions with the same
    /// [`Fingerprint`](super::Fingerprint).
    Call,
    /// The same operations on the same paths, or exactly the same command lines.
    Path,
    /// The same operations on a directory and everything beneath it.
    Prefix(#[serde(with = "crate::access::path_text")] VPath),
    /// The same operations on targets that match a pattern.
    ///
    /// For paths, this is a [`Glob`](backend_core::search::Glob) from the root. A glob
    /// without a slash matches at any depth.
    ///
    /// For commands, these are words that end with ` *`, which stands for any further
    /// words: `git log *` covers `git log` and `git log -3`. It does not cover a line
    /// that does more than run this one program: the text after the words must not
    /// contain any of `; & | < > $ ( )`, a backtick or a line end, not even in quotes.
    /// `*` alone is not a pattern for commands; use [`Session`](Self::Session).
    Pattern(String),
    /// The same operations on any target. Given to a question of a default, it leaves the
    /// questions of rules to be asked.
    Session,
}

/// The answer to a question.
///
/// ```
/// use std::time::Duration;
/// use permissions::{Answer, Remember};
///
/// let answer = Answer::yes()
///     .note("only while the tests run")
///     .remember(Remember::Path)
///     .expires_in(Duration::from_secs(600));
/// assert!(answer.approved);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct Answer {
    /// Whether the call is approved.
    pub approved: bool,
    /// A message to the model. An empty one counts as none.
    pub note: Option<String>,
    /// The scope of the answer beyond this call.
    pub remember: Remember,
    /// The time for which it is remembered; forever if `None`.
    pub expires_in: Option<Duration>,
}

impl Answer {
    /// Creates a yes to this call only.
    pub fn yes() -> Self {
        Self {
            approved: true,
            ..Self::default()
        }
    }

    /// Creates a no to this call only.
    pub fn no() -> Self {
        Self::default()
    }

    backend_core::setters! {
        /// Sets the message to the model.
        fn note(self, note: impl Into<String>) { self.note = Some(note.into()) }

        /// Sets the scope beyond this call. A no is remembered only if the
        /// [`ApprovalService`](super::ApprovalService) is configured to do so.
        fn remember(self, remember: Remember) { self.remember = remember }

        /// Sets the maximum time for which the answer is remembered.
        fn expires_in(self, time: Duration) { self.expires_in = Some(time) }
    }
}
