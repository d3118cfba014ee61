//! The cases, grouped by operation. Each is a plain async function that can be
//! called on any [`Env`](crate::Env).

pub mod attach;
mod concurrent;
pub mod connect;
pub mod contract;
pub mod copy;
pub mod create_dir;
pub mod delete;
pub mod edit;
pub mod execute;
pub mod exists;
pub mod glob;
pub mod grep;
pub mod link_move;
pub mod link_read;
pub mod link_search;
pub mod link_write;
pub mod ls;
pub mod modes;
mod ops;
pub mod output;
pub mod path;
pub mod process;
pub mod read;
pub mod read_only;
pub mod read_text;
pub mod rename;
pub mod resolve;
pub mod sandbox;
pub mod shell;
pub mod special;
pub mod stat;
pub mod stream;
pub mod terminal;
mod transfer;
pub mod watch;
pub mod write;
