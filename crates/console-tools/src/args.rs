//! The arguments of every tool. The model reads their documentation.

pub(crate) mod commands;
pub(crate) mod files;
pub(crate) mod filesystem;
pub(crate) mod search;
