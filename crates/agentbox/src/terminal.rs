//! Text for a terminal: without control characters, wrapped, styled.

pub(crate) mod safe;
pub(crate) mod style;
pub(crate) mod wrap;
