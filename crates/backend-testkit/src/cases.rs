//! The cases, grouped by operation. Each is a plain async function that can be
//! called on any [`Env`](crate::Env).

pub mod contract;
pub mod copy;
pub mod create_dir;
pub mod delete;
pub mod edit;
pub mod exists;
pub mod glob;
pub mod grep;
pub mod ls;
pub mod path;
pub mod read;
pub mod read_text;
pub mod rename;
pub mod resolve;
pub mod stat;
pub mod write;
