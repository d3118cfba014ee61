//! [`CommandContext`]: a command line and what its meaning depends on.

use std::sync::atomic::AtomicBool;

use backend_core::{CommandPaths, VPath};

/// A command line and the context it runs in.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
#[must_use]
pub struct CommandContext<'a> {
    /// The command line.
    pub line: &'a str,
    /// The directory it runs in.
    pub directory: &'a VPath,
    /// Variables set for the command.
    pub environment: &'a [(String, String)],
    /// The file names that the command sees, if they differ from the backend's.
    pub names: Option<&'a CommandPaths>,
    /// Stops the analysis early once it is set. The line then counts as not understood.
    pub stop: Option<&'a AtomicBool>,
}

impl<'a> CommandContext<'a> {
    /// Creates the context of `line`, run in `directory`.
    pub fn new(line: &'a str, directory: &'a VPath) -> Self {
        Self {
            line,
            directory,
            environment: &[],
            names: None,
            stop: None,
        }
    }

    /// Sets the variables that are set for the command.
    pub fn environment(mut self, environment: &'a [(String, String)]) -> Self {
        self.environment = environment;
        self
    }

    /// Sets the file names that the command sees.
    pub fn names(mut self, names: &'a CommandPaths) -> Self {
        self.names = Some(names);
        self
    }

    /// Sets a flag that stops the analysis early.
    pub fn stop(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }
}
