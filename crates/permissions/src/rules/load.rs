//! Reads and writes rulesets as TOML and JSON.

use backend_core::Quoted;

use super::Ruleset;

/// The reason why a text is not a ruleset, and the position.
///
/// Columns count characters from 1 and may be after the error itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the ruleset is not valid at line {line}, column {column}, near {near}: {message}; correct it there"
)]
#[non_exhaustive]
pub struct LoadError {
    /// The line, from 1.
    pub line: usize,
    /// The column in the line.
    pub column: usize,
    /// The problem, with the key, word or pattern.
    pub message: String,
    /// The text at that position.
    pub near: Quoted,
}

/// The error for a ruleset that could not be serialized. None is known to cause it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the ruleset cannot be written: {0}")]
pub struct SaveError(String);

impl Ruleset {
    /// Parses a ruleset from TOML. Anything that is not understood is an error.
    ///
    /// # Errors
    ///
    /// [`LoadError`] for invalid TOML, unknown or duplicate keys, words that are not
    /// actions, and invalid patterns.
    pub fn from_toml(text: &str) -> Result<Self, LoadError> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let offset = error.span().map_or(0, |span| span.start);
            LoadError::at_offset(text, offset, error.message())
        })
    }

    /// Parses a ruleset from JSON, as strictly as [`from_toml`](Self::from_toml).
    pub fn from_json(text: &str) -> Result<Self, LoadError> {
        serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            let message = error.to_string();
            let place = format!(" at line {line} column {column}");
            let message = message.strip_suffix(&place).unwrap_or(&message);
            // The column counts bytes and refers to the last byte read.
            let lines = text.split_inclusive('\n').take(line.saturating_sub(1));
            let offset = lines.map(str::len).sum::<usize>() + column.saturating_sub(1);
            LoadError::at_offset(text, offset, message)
        })
    }

    /// Serializes the ruleset to TOML, as [`from_toml`](Self::from_toml) reads it.
    pub fn to_toml(&self) -> Result<String, SaveError> {
        toml::to_string(self).map_err(|error| SaveError(error.to_string()))
    }

    /// Serializes the ruleset to JSON, as [`from_json`](Self::from_json) reads it.
    pub fn to_json(&self) -> Result<String, SaveError> {
        serde_json::to_string_pretty(self).map_err(|error| SaveError(error.to_string()))
    }
}

impl LoadError {
    fn at_offset(text: &str, offset: usize, message: &str) -> Self {
        let offset = text.floor_char_boundary(offset);
        let (before, behind) = text.split_at(offset);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let end = behind.find('\n').map_or(text.len(), |end| offset + end);
        // Of a very long line, only the text around the position is shown.
        let shown = text
            .floor_char_boundary(offset.saturating_sub(60))
            .max(start);
        let end = text.floor_char_boundary(offset + 60).min(end);
        Self {
            line: before.matches('\n').count() + 1,
            column: before.get(start..).unwrap_or_default().chars().count() + 1,
            message: message.replace(|c: char| c.is_control(), " "),
            near: Quoted::new(text.get(shown..end).unwrap_or_default().trim()),
        }
    }
}
