//! [`Reply`]: the answer of a tool to a model.

use std::borrow::Cow;

use backend_core::{Error, ErrorKind, Quoted};
use bytes::Bytes;
use permissions::Refusal;
use serde::Serialize;
use serde_json::Value;

use crate::json_size::measure;
use crate::options::Profile;

/// The answer of a tool. Always a value: nothing that a model does ends a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Reply {
    /// The text for the model, within the tool's size limit.
    pub text: String,
    /// Pictures and documents for the model.
    pub blocks: Vec<Block>,
    /// Structured data for programs. It may say less than the text.
    pub structured: Option<Value>,
    /// The class of a failure, or `None` for a success.
    pub failure: Option<FailureClass>,
}

impl Reply {
    /// Creates a success.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            blocks: Vec::new(),
            structured: None,
            failure: None,
        }
    }

    /// Adds structured data for programs.
    #[must_use]
    pub fn structured(mut self, value: Value) -> Self {
        self.structured = Some(value);
        self
    }

    #[must_use]
    pub(crate) fn data(self, data: &impl Serialize) -> Self {
        self.structured(serde_json::to_value(data).unwrap_or_default())
    }

    /// Adds a picture or a document.
    #[must_use]
    pub fn block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// Limits the text and the data of a tool that does not do it itself to about `limit` bytes.
    #[must_use]
    pub(crate) fn within(mut self, limit: usize) -> Self {
        let whole = self.text.len();
        if whole > limit {
            self.text.truncate(self.text.floor_char_boundary(limit));
            let shown = self.text.len();
            self.text.push_str(&format!(
                "\n[cut: {shown} of {whole} bytes are shown; ask for less at a time]"
            ));
        }
        let data = self.structured.as_ref().map(measure);
        if data.is_some_and(|(bytes, _)| bytes > limit) {
            self.structured = None;
        }
        self
    }

    /// Converts the result of a tool of this profile.
    pub(crate) fn for_profile(profile: Profile, result: ToolResult) -> Self {
        result.unwrap_or_else(|error| Self::failed(profile, error))
    }

    /// Creates a failure, with a prefix in the profiles whose texts are our own.
    fn failed(profile: Profile, error: ToolError) -> Self {
        let text = match profile {
            Profile::Coding | Profile::Lean => format!("Error: {error}"),
            Profile::Filesystem => error.message,
        };
        Self {
            failure: Some(error.class),
            ..Self::text(text)
        }
    }

    /// Returns `true` unless the call failed.
    pub fn is_success(&self) -> bool {
        self.failure.is_none()
    }
}

/// Content for a model that is not text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Block {
    /// A picture.
    Image {
        /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
        media_type: Cow<'static, str>,
        /// Its bytes.
        data: Bytes,
    },
    /// A document.
    Document {
        /// `application/pdf`.
        media_type: Cow<'static, str>,
        /// Its bytes.
        data: Bytes,
        /// The file's name.
        name: String,
    },
}

/// The class of a failure, which says what can be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureClass {
    /// Other arguments can succeed, so the model should try again.
    Fixable,
    /// A policy or a user refused the call. Trying again is pointless.
    Refused,
    /// The backend cannot do it, or not now.
    Environment,
}

impl FailureClass {
    /// Returns `fixable`, `refused` or `environment`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fixable => "fixable",
            Self::Refused => "refused",
            Self::Environment => "environment",
        }
    }
}

/// The reason a tool failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    class: FailureClass,
    message: String,
}

/// Creates a [`ToolError::fixable`] with a formatted message.
macro_rules! fixable {
    ($($message:tt)+) => {
        $crate::reply::ToolError::fixable(format!($($message)+))
    };
}
pub(crate) use fixable;

/// The result of a tool.
pub type ToolResult = Result<Reply, ToolError>;

impl ToolError {
    /// Creates a failure that other arguments can fix.
    pub fn fixable(message: impl Into<String>) -> Self {
        Self {
            class: FailureClass::Fixable,
            message: message.into(),
        }
    }

    /// Creates a failure that repeating the call cannot fix.
    pub fn refused(message: impl Into<String>) -> Self {
        Self {
            class: FailureClass::Refused,
            ..Self::fixable(message)
        }
    }

    /// Creates a failure of the backend or its environment.
    pub fn environment(message: impl Into<String>) -> Self {
        Self {
            class: FailureClass::Environment,
            ..Self::fixable(message)
        }
    }

    /// Converts a backend's error, in the wording of a profile's tools.
    pub(crate) fn for_profile(profile: Profile, tool: &str, error: Error) -> Self {
        let refusal = Refusal::of(&error).filter(|_| profile == Profile::Filesystem);
        let text = refusal.map(|refusal| refusal.filesystem_text_for(tool));
        let own = Self::from(error);
        match text {
            Some(text) => own.reworded(text),
            None => own,
        }
    }

    pub(crate) fn reworded(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// Replaces the message of a failure that other arguments can fix. Refusals and
    /// failures of the environment keep the text of their source.
    pub(crate) fn reworded_if_fixable(self, message: String) -> Self {
        if self.class == FailureClass::Fixable {
            self.reworded(message)
        } else {
            self
        }
    }

    /// Returns the class of the failure.
    pub fn class(&self) -> FailureClass {
        self.class
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        let class = match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ApprovalRequired => FailureClass::Refused,
            ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::IsADirectory
            | ErrorKind::NotADirectory
            | ErrorKind::IsALink
            | ErrorKind::InvalidPath
            | ErrorKind::InvalidInput
            | ErrorKind::TooLarge
            | ErrorKind::NotText
            | ErrorKind::NoMatch
            | ErrorKind::MultipleMatches
            | ErrorKind::Conflict => FailureClass::Fixable,
            _ => FailureClass::Environment,
        };
        Self {
            class,
            message: error_text(&error),
        }
    }
}

/// Formats an error for the model. The text is the same on every backend, so it omits
/// the backend's name. A refusal already names its target.
fn error_text(error: &Error) -> String {
    if let Some(refusal) = Refusal::of(error) {
        return refusal.console_text();
    }
    let message = error.message();
    let text = match (error.operation(), error.path()) {
        (Some(operation), Some(path)) => {
            format!("{operation} {}: {message}", Quoted::new(path.as_str()))
        }
        _ => message.to_owned(),
    };
    match error.kind() {
        ErrorKind::PermissionDenied => format!("Permission denied: {text}"),
        _ => text,
    }
}

impl From<backend_core::PathError> for ToolError {
    fn from(error: backend_core::PathError) -> Self {
        Self::fixable(error.to_string())
    }
}

impl From<ToolError> for Reply {
    fn from(error: ToolError) -> Self {
        Self::failed(Profile::default(), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_resort_cuts_between_characters() {
        let reply = Reply::text("ää").structured(Value::from("x".repeat(9)));
        let cut = reply.clone().within(3);
        assert_eq!(
            cut.text,
            "ä\n[cut: 2 of 4 bytes are shown; ask for less at a time]"
        );
        assert_eq!(cut.structured, None);
        assert_eq!(reply.clone().within(11), reply);
    }

    #[test]
    fn no_error_names_the_backend() {
        let path = backend_core::VPath::root();
        let error = Error::not_found().at(backend_core::Operation::Read, &path);
        let error = ToolError::from(error.on("state")).to_string();
        assert!(error.starts_with("read '/': "), "{error}");
        let refusal = Error::from(Refusal::rule(permissions::Op::Read, "/x", "private"));
        let refusal = refusal.at(backend_core::Operation::Read, &path).on("state");
        assert_eq!(
            ToolError::from(refusal).to_string(),
            "Permission denied for read on '/x': private"
        );
        let denied = Error::new(ErrorKind::PermissionDenied, "kept from you");
        let denied = denied.at(backend_core::Operation::Read, &path).on("local");
        assert_eq!(
            ToolError::from(denied).to_string(),
            "Permission denied: read '/': kept from you"
        );
    }

    #[test]
    fn every_kind_of_error_has_a_class() {
        for (kind, class) in [
            (ErrorKind::NotFound, FailureClass::Fixable),
            (ErrorKind::PermissionDenied, FailureClass::Refused),
            (ErrorKind::ApprovalRequired, FailureClass::Refused),
            (ErrorKind::Unavailable, FailureClass::Environment),
            (ErrorKind::Internal, FailureClass::Environment),
        ] {
            assert_eq!(ToolError::from(Error::new(kind, "x")).class(), class);
        }
    }
}
