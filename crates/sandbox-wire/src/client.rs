//! The host's handling of an agent's replies.
//!
//! Replies are not trusted: one that is longer than was asked for, that
//! concerns another path, or that is of another kind ends the channel.

mod commands;
mod connect;
mod files;
mod search;
mod watch;

use backend_core::limits::{ERROR_BYTES, ERROR_SOURCES, PATH_BYTES};

pub(crate) use commands::{events, executed, killed, shell, shell_output, shells};
pub(crate) use connect::connection;
pub(crate) use files::{done, edited, entry, path, read, text, write_pieces, written};
pub(crate) use search::{glob, grep, listing};
pub(crate) use watch::changes;

/// The longest reply that only contains an error, or a path and some numbers.
const SMALL: usize = ERROR_BYTES * (ERROR_SOURCES + 1) + 2 * PATH_BYTES + 1024;
