//! [`Calls`]: the engine and cancellation of a handle, and the methods that make calls.

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

/// Writes, in the impl block of a handle, the methods that set its `calls`.
macro_rules! call_settings {
    () => {
        /// Returns a handle that runs its calls on another engine.
        #[must_use]
        pub fn on(mut self, engine: &Engine) -> Self {
            self.calls.engine = engine.clone();
            self
        }

        /// Returns a handle whose calls end when `cancel` is cancelled. The running call is
        /// dropped: a change has then happened completely or not at all, and a command is
        /// ended.
        #[must_use]
        pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
            self.calls.cancel = Some(cancel.clone());
            self
        }
    };
}

/// Writes, in an impl block, blocking calls of a trait's methods. `;` stands between the
/// arguments that are references, which are cloned, and the others.
macro_rules! blocking_calls {
    ($trait:ident, |$backend:ident| $target:expr; $(
        $(#[$doc:meta])+
        $operation:ident: $method:ident(
            $($name:ident: &$referred:ty),*; $($value:ident: $type:ty),*
        ) -> $output:ty;
    )+) => {$(
        $(#[$doc])+
        ///
        #[doc = concat!("See [`", stringify!($trait), "::", stringify!($method), "`].")]
        pub fn $method(&self, $($name: &$referred,)* $($value: $type),*) -> Result<$output> {
            $(let $name = $name.to_owned();)*
            self.call(Operation::$operation, move |$backend| async move {
                $target.$method($(&$name,)* $($value),*).await
            })
        }
    )+};
}

pub(crate) use {blocking_calls, call_settings};
