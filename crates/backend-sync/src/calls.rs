//! [`Calls`]: the engine and cancellation of a handle.

use backend_core::{Operation, Result};

use crate::cancel::Cancel;
use crate::engine::Engine;

/// The engine that a handle's calls run on, and their cancellation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls {
    pub(crate) engine: Engine,
    pub(crate) cancel: Option<Cancel>,
}

impl Calls {
    /// Runs a backend operation.
    pub(crate) fn call<T, F>(&self, operation: Operation, future: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.run(future).map_err(|error| error.during(operation))
    }

    /// Runs a fallible future.
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
