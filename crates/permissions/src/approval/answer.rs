//! [`Answer`]: what somebody says, and for what else it holds.

use std::time::Duration;

use backend_core::VPath;
use serde::{Deserialize, Serialize};

/// For what else an answer holds. Everything is remembered for the session that
/// asked, and for the operations that were asked about, no others.
///
/// A scope has to cover everything that was asked. If it does not, the answer
/// holds for this call alone, nothing is remembered, and the permit's note says
/// so: what somebody meant is not guessed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Remember {
    /// For nothing else: the next question is asked again, an equal one too.
    #[default]
    No,
    /// For the same call with the same arguments: questions with the same
    /// [`Fingerprint`](super::Fingerprint).
    Call,
    /// For the same operations on the same paths, or for exactly the same
    /// command lines.
    Path,
    /// For the same operations on a directory and everything beneath it.
    Prefix(#[serde(with = "crate::access::path_text")] VPath),
    /// For the same operations on what a pattern matches.
    ///
    /// For paths, a [`Glob`](backend_core::search::Glob) from the root; one
    /// without a slash matches at any depth.
    ///
    /// For commands, words that end with ` *`, which stands for any further
    /// words: `git log *` covers `git log` and `git log -3`. It covers no line
    /// that does more than run this one program: what follows the words may hold
    /// none of `; & | < > $ ( )`, no backtick and no line end, not even in
    /// quotes. `*` alone is no pattern for commands; that is
    /// [`Session`](Self::Session).
    Pattern(String),
    /// For the same operations on anything.
    Session,
}

/// What somebody answers.
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
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// Whether it may happen.
    pub approved: bool,
    /// A word to the model. An empty one counts as none.
    pub note: Option<String>,
    /// For what else it holds.
    pub remember: Remember,
    /// How long it is remembered; for ever if `None`.
    pub expires_in: Option<Duration>,
}

impl Answer {
    /// Yes, this once.
    pub fn yes() -> Self {
        Self {
            approved: true,
            note: None,
            remember: Remember::No,
            expires_in: None,
        }
    }

    /// No, this once.
    pub fn no() -> Self {
        Self {
            approved: false,
            ..Self::yes()
        }
    }

    /// With a word to the model.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// For more than this once. A no is remembered only if the
    /// [`Desk`](super::Desk) was told to.
    #[must_use]
    pub fn remember(mut self, remember: Remember) -> Self {
        self.remember = remember;
        self
    }

    /// Remembered no longer than this.
    #[must_use]
    pub fn expires_in(mut self, time: Duration) -> Self {
        self.expires_in = Some(time);
        self
    }
}
