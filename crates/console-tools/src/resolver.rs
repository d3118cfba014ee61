//! [`Resolver`]: picks the backend of a call, for shared toolsets.

use std::sync::Arc;

use async_trait::async_trait;
use backend_core::{Backend, Result};

/// The conversation and user on whose behalf a call is made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Caller {
    /// The id of the conversation.
    pub session: Arc<str>,
    /// The user of the conversation, if the host named one.
    pub user: Option<Arc<str>>,
}

impl Caller {
    /// Creates a caller without a user.
    pub fn new(session: impl Into<Arc<str>>) -> Self {
        Self {
            session: session.into(),
            user: None,
        }
    }

    /// Sets the user.
    #[must_use]
    pub fn user(mut self, user: impl Into<Arc<str>>) -> Self {
        self.user = Some(user.into());
        self
    }
}

/// Picks the backend for each call.
///
/// It is called before every call of a tool. As long as it returns the same backend, by
/// identity of the `Arc`, the compiled rules and the record of input to background
/// shells are kept.
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use backend_core::{Backend, Error, Result};
/// use backend_state::StateBackend;
/// use console_tools::{Caller, Resolver};
///
/// #[derive(Debug)]
/// struct ByUser {
///     alice: Arc<dyn Backend>,
/// }
///
/// #[async_trait]
/// impl Resolver for ByUser {
///     async fn resolve(&self, caller: &Caller) -> Result<Arc<dyn Backend>> {
///         match caller.user.as_deref() {
///             Some("alice") => Ok(Arc::clone(&self.alice)),
///             _ => Err(Error::invalid_input("this user has no files")),
///         }
///     }
/// }
/// # let _ = ByUser { alice: Arc::new(StateBackend::new()) };
/// ```
///
/// # Signatures
///
/// The method, as it is written under `#[async_trait]`:
///
/// ```text
/// async fn resolve(&self, caller: &Caller) -> Result<Arc<dyn Backend>>;
/// ```
#[async_trait]
pub trait Resolver: std::fmt::Debug + Send + Sync + 'static {
    /// Returns the backend for the next call of this caller.
    ///
    /// # Errors
    ///
    /// Any error fails the call and is reported to the model.
    async fn resolve(&self, caller: &Caller) -> Result<Arc<dyn Backend>>;
}
