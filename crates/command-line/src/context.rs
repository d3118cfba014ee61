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

    backend_core::setters! {
        /// Sets the variables that are set for the command.
        fn environment(self, environment: &'a [(String, String)]) { self.environment = environment }

        /// Sets the file names that the command sees.
        fn names(self, names: &'a CommandPaths) { self.names = Some(names) }

        /// Sets a flag that stops the analysis early.
        fn stop(self, stop: &'a AtomicBool) { self.stop = Some(stop) }
    }
}
