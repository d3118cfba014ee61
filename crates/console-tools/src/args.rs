//! The arguments of every tool. The model reads their documentation.

pub(crate) mod commands;
pub(crate) mod console;
pub(crate) mod filesystem;
pub(crate) mod search;
