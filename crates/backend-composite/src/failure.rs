//! How children's failures are told.

use std::sync::{Mutex, PoisonError};

use backend_core::{Error, ErrorKind, VPath};

use crate::route::Route;

/// The composite's name in messages.
pub(crate) const NAME: &str = "composite";

/// A route that could not answer, beside the answers of the others.
#[derive(Debug)]
#[non_exhaustive]
pub struct RouteFailure {
    /// The route's prefix.
    pub route: VPath,
    /// Why it could not answer.
    pub error: Error,
}

/// Whether an error says something about a backend rather than about a path or
/// an argument.
pub(crate) fn is_about_backend(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Unsupported
            | ErrorKind::Timeout
            | ErrorKind::Cancelled
            | ErrorKind::Unavailable
            | ErrorKind::RateLimited
            | ErrorKind::Auth
            | ErrorKind::Config
            | ErrorKind::Internal
    )
}

/// Whether an error says that no directory stands at a path, a link not counted
/// as one.
pub(crate) fn is_absent(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsALink
    )
}

/// The failures that a call goes on after.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<Vec<RouteFailure>>);

impl Failures {
    /// Keeps the first failure of each route.
    pub(crate) fn add(&self, route: &Route, error: Error) {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.iter().all(|known| known.route != *route.prefix()) {
            failures.push(RouteFailure {
                route: route.prefix().clone(),
                error,
            });
        }
    }

    /// Takes the failures, in the order of their routes.
    pub(crate) fn take(&self) -> Vec<RouteFailure> {
        let mut failures =
            std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        failures.sort_by(|one, two| one.route.cmp(&two.route));
        failures
    }
}
