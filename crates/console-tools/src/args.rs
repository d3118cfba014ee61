//! The arguments of every tool; their documentation is what a model reads.

pub(crate) mod commands;
pub(crate) mod files;
pub(crate) mod filesystem;
pub(crate) mod search;
