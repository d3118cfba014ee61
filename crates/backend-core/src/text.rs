//! Text: detecting it in a file's bytes, windows of its lines, and exact edits.
//!
//! Everything here is pure: nothing opens a file or knows which backend the bytes came from, so
//! every backend gives the same answer for the same bytes.
//!
//! - [`detect`], [`is_text`] and [`is_binary_for_search`] classify a file by its first
//!   [`SNIFF_BYTES`] bytes.
//! - [`WindowScanner`] takes bytes in chunks and keeps one window of lines. [`window()`] does the
//!   same for bytes that are already in memory, and [`LineIndex`] for a file that is read
//!   repeatedly.
//! - [`apply`] replaces exact text. If it cannot, it reports the nearest text.

mod collect;
mod decode;
mod edit;
mod edit_error;
mod hint;
mod index;
mod scan;
mod window;

pub use decode::{Encoding, SNIFF_BYTES, detect, is_binary_for_search, is_text};
pub use edit::{Applied, Edit, apply, line_of};
pub use edit_error::EditError;
pub use hint::{Candidate, Similarity};
pub use index::LineIndex;
pub use scan::{WindowScanner, window};
pub use window::{Line, Progress, TextWindow, WindowError};
