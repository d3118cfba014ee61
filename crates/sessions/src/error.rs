//! Errors of sessions that callers act on, and the one text of each error.

use std::sync::Arc;
use std::time::Duration;

use backend_core::{Error, ErrorKind};

use crate::id::SessionId;

/// The sessions that a ceiling counts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CapacityScope {
    /// All sessions of the manager.
    Overall,
    /// The sessions of this tenant.
    Tenant(Arc<str>),
}

/// A ceiling on running sessions is reached and none could be hibernated.
///
/// It is the source of an error of kind `RateLimited`:
///
/// ```
/// use sessions::CapacityError;
///
/// fn retry_after(error: &backend_core::Error) -> Option<std::time::Duration> {
///     CapacityError::of(error).map(|capacity| capacity.retry_after)
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at most {limit} may run at once; try again in {} s", .retry_after.as_secs().max(1))]
#[non_exhaustive]
pub struct CapacityError {
    /// The sessions that the ceiling counts.
    pub scope: CapacityScope,
    /// The ceiling.
    pub limit: usize,
    /// When a session may be free.
    pub retry_after: Duration,
}

impl CapacityError {
    pub(crate) fn new(scope: CapacityScope, limit: usize, retry_after: Duration) -> Self {
        Self {
            scope,
            limit,
            retry_after,
        }
    }

    /// Returns the capacity error that caused `error`, if one did.
    pub fn of(error: &Error) -> Option<&Self> {
        source_of(error)
    }
}

impl From<CapacityError> for Error {
    fn from(error: CapacityError) -> Self {
        let message = match &error.scope {
            CapacityScope::Overall => "no more sessions can run; release one or wait",
            CapacityScope::Tenant(_) => {
                "no more sessions of this tenant can run; release one or wait"
            }
        };
        Self::new(ErrorKind::RateLimited, message).with_source(error)
    }
}

/// The quota on stored files is used up. It is the source of an error of kind `TooLarge`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{used} of {limit} bytes are used")]
#[non_exhaustive]
pub struct QuotaError {
    /// Bytes in use.
    pub used: u64,
    /// The quota.
    pub limit: u64,
}

impl QuotaError {
    /// Creates an error.
    pub fn new(used: u64, limit: u64) -> Self {
        Self { used, limit }
    }

    /// Returns the quota error that caused `error`, if one did.
    pub fn of(error: &Error) -> Option<&Self> {
        source_of(error)
    }
}

impl From<QuotaError> for Error {
    fn from(error: QuotaError) -> Self {
        let message = "the quota on stored files is used up; delete files or purge sessions";
        Self::new(ErrorKind::TooLarge, message).with_source(error)
    }
}

/// Returns the first source of `error` that has type `T`.
fn source_of<T: std::error::Error + 'static>(error: &Error) -> Option<&T> {
    let mut source = std::error::Error::source(error);
    while let Some(next) = source {
        if let Some(found) = next.downcast_ref() {
            return Some(found);
        }
        source = next.source();
    }
    None
}

/// Returns the error for a call after the session's end.
pub(crate) fn released(id: &SessionId) -> Error {
    Error::unavailable("the session has ended; open it again").about(id)
}

/// Returns the error for opening a session that could not be ended.
pub(crate) fn stuck(id: &SessionId) -> Error {
    let message =
        "its sandbox could not be ended; release the session again, or wait for the reaper";
    Error::unavailable(message).about(id)
}

/// Returns the error for a session past its maximum lifetime.
pub(crate) fn expired(id: &SessionId) -> Error {
    Error::unavailable("the session has reached its maximum lifetime; open it again").about(id)
}

/// Returns the error for a sandbox that died with its files.
pub(crate) fn died(id: &SessionId) -> Error {
    let message = "its sandbox died and its files are lost; release the session to begin anew";
    Error::unavailable(message).about(id)
}

/// Returns the error for a session that was purged elsewhere.
pub(crate) fn purged(id: &SessionId) -> Error {
    Error::unavailable("the session was deleted with its files; open it again to begin anew")
        .about(id)
}

/// Returns the error for a session that exists with another runtime.
pub(crate) fn other_runtime(id: &SessionId) -> Error {
    let message = "it exists with another runtime; name that one, or release the session first";
    Error::new(ErrorKind::Conflict, message).about(id)
}

/// Returns the error for a session that belongs to another tenant.
pub(crate) fn other_tenant(id: &SessionId) -> Error {
    let message = "the session belongs to another tenant; choose another id";
    Error::new(ErrorKind::Conflict, message).about(id)
}

/// Returns the error for a manager that has been shut down.
pub(crate) fn shut_down() -> Error {
    Error::unavailable("the sessions are being shut down")
}

/// Returns the error for a session that another process keeps creating or ending.
pub(crate) fn contended(id: &SessionId) -> Error {
    let message = "another process is opening or ending it; try again";
    Error::unavailable(message).about(id)
}

/// Returns the same error for another caller that waited for the same start.
pub(crate) fn copied(error: &Error) -> Error {
    if let Some(capacity) = CapacityError::of(error) {
        return capacity.clone().into();
    }
    if let Some(quota) = QuotaError::of(error) {
        return quota.clone().into();
    }
    Error::new(error.kind(), error.chain().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_causes_are_found_and_survive_a_copy() {
        let capacity = CapacityError::new(CapacityScope::Overall, 3, Duration::from_secs(7));
        let error = Error::from(capacity.clone());
        assert_eq!(error.kind(), ErrorKind::RateLimited);
        assert!(error.is_retryable());
        assert_eq!(CapacityError::of(&copied(&error)), Some(&capacity));
        let text = error.chain().to_string();
        assert!(
            text.ends_with("at most 3 may run at once; try again in 7 s"),
            "{text}"
        );

        let quota = Error::from(QuotaError::new(9, 8));
        assert_eq!(quota.kind(), ErrorKind::TooLarge);
        assert_eq!(
            QuotaError::of(&copied(&quota)),
            Some(&QuotaError::new(9, 8))
        );
        assert_eq!(CapacityError::of(&quota), None);
    }
}
