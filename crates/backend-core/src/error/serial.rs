//! [`Error`] for another process: kind, operation, path, message, why an edit
//! failed, and the text of its sources. The backend's name is not sent; the
//! receiver sets its own.
//!
//! Received text is not trusted. It is cut at the same lengths as sent text, and
//! control characters in it are replaced.

use std::error::Error as StdError;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::error::{Error, ErrorKind, Operation};
use crate::limits::{ERROR_BYTES, ERROR_SOURCES};
use crate::path::VPath;
use crate::text::EditError;

type Parts<T, E> = (
    ErrorKind,
    Option<Operation>,
    Option<VPath>,
    T,
    Option<E>,
    Vec<String>,
);

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(ERROR_BYTES)]
}

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sources = std::iter::successors(self.source(), |&error| error.source());
        let text = |error: &dyn StdError| cut(&error.to_string()).to_owned();
        let parts: Parts<&str, &EditError> = (
            self.kind(),
            self.operation(),
            self.path().cloned(),
            cut(self.message()),
            self.edit_error(),
            sources.take(ERROR_SOURCES).map(text).collect(),
        );
        parts.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Error {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (kind, operation, path, message, edit, sources) =
            Parts::<String, EditError>::deserialize(deserializer)?;
        let mut error = Self::new(kind, printable(&message));
        error.0.operation = operation;
        error.0.path = path;
        error.0.edit = edit.map(|edit| edit.bounded(printable));
        let chain = sources.iter().take(ERROR_SOURCES).rev();
        let chain = chain.fold(None, |source, text| {
            let text = printable(text);
            Some(Box::new(RemoteError { text, source }))
        });
        Ok(match chain {
            Some(source) => error.with_source(source as Box<dyn StdError + Send + Sync>),
            None => error,
        })
    }
}

/// Makes the text safe for a log or a terminal.
fn printable(text: &str) -> String {
    let plain = |c: char| match c {
        '\n' | '\t' => c,
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    cut(text).chars().map(plain).collect()
}

/// A received source, of which only the text is known.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
struct RemoteError {
    text: String,
    source: Option<Box<Self>>,
}
