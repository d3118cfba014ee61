//! [`Calls`]: how a handle makes its calls.

use backend_core::{Operation, Result};

use crate::{Cancel, Engine};

/// Where a handle's calls run and what ends them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls {
    pub(crate) engine: Engine,
    pub(crate) cancel: Option<Cancel>,
}

impl Calls {
    /// Makes a call of a backend.
    pub(crate) fn call<T, F>(&self, operation: Operation, future: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.run(future).map_err(|error| error.during(operation))
    }

    /// Runs something that may fail.
    pub(crate) fn run<T, F>(&self, future: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let result = match self.cancel.clone() {
            None => self.engine.run(future),
            Some(cancel) => self.engine.run(async move { cancel.unless(future).await }),
        };
        result.flatten()
    }
}
