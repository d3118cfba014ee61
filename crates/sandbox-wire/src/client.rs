//! What the host makes of an agent's replies.
//!
//! Nothing is believed: a reply that is longer than was asked for, that speaks of
//! another place, or that is of another kind ends the channel.

mod commands;
mod files;
mod search;

use backend_core::limits::{ERROR_BYTES, ERROR_SOURCES, PATH_BYTES};

pub(crate) use commands::{events, executed, killed, shell, shell_output, shells};
pub(crate) use files::{done, edited, entry, path, read, text, write_pieces, written};
pub(crate) use search::{glob, grep, listing};

/// Longest reply that only says why it failed, or that has a path and some
/// numbers in it.
const SMALL: usize = ERROR_BYTES * (ERROR_SOURCES + 1) + 2 * PATH_BYTES + 1024;
