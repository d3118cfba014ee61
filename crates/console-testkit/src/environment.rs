//! [`Environment`]: where a script is played.

use backend_core::Backend;

use crate::{Need, Step};

/// Properties of the environment in which a script is played.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Environment {
    /// Whether it runs commands.
    pub commands: bool,
    /// The spellings of its working directory.
    pub directories: Vec<String>,
}

impl Environment {
    /// Reads the properties of a backend.
    pub fn of(backend: &dyn Backend) -> Self {
        Self {
            commands: backend.info().capabilities.commands,
            directories: vec![backend.working_dir().as_str().to_owned()],
        }
    }

    /// Adds a spelling of the working directory, such as that of commands.
    #[must_use]
    pub fn directory(mut self, path: impl Into<String>) -> Self {
        self.directories.push(path.into());
        self
    }

    /// Returns `true` if a step can be played here.
    pub fn can_play(&self, step: &Step) -> bool {
        step.needs.iter().all(|need| match need {
            Need::Commands => self.commands,
        })
    }
}
