//! [`ParseError`]: the reason why a line is not understood.

/// The reason why a line is not understood, in words that follow "it is not understood:".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ParseError(pub(crate) &'static str);
