//! [`Resolver`]: which backend a call goes to, for toolsets that many share.

use std::sync::Arc;

use async_trait::async_trait;
use backend_core::{Backend, Result};

/// On whose behalf a call is made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Caller {
    /// The conversation.
    pub session: Arc<str>,
    /// Whoever it belongs to, if the host told.
    pub user: Option<Arc<str>>,
}

impl Caller {
    /// A conversation of nobody in particular.
    pub fn new(session: impl Into<Arc<str>>) -> Self {
        Self {
            session: session.into(),
            user: None,
        }
    }

    /// The conversation of this user.
    #[must_use]
    pub fn user(mut self, user: impl Into<Arc<str>>) -> Self {
        self.user = Some(user.into());
        self
    }
}

/// Picks the backend for each call.
///
/// It is asked before every call. While it answers with the same backend, by
/// identity of the `Arc`, the rules stay compiled and what was typed into
/// background shells stays known.
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
    /// The backend for the next call of this caller.
    ///
    /// # Errors
    ///
    /// Whatever stands in the way; the model is told, and the call fails.
    async fn resolve(&self, caller: &Caller) -> Result<Arc<dyn Backend>>;
}
