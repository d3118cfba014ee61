//! Failures of children, and which errors count as such.

use std::sync::Mutex;

use backend_core::sync::lock;
use backend_core::{Error, ErrorKind, VPath};

/// The composite's name in messages.
pub(crate) const NAME: &str = "composite";

/// The failure of one route, reported next to the results of the others.
#[derive(Debug)]
#[non_exhaustive]
pub struct RouteFailure {
    /// The route's prefix.
    pub route: VPath,
    /// The error of its backend.
    pub error: Error,
}

/// Whether an error is about a backend rather than about a path or an argument.
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

/// Whether an error says that there is no directory at a path. A link does not
/// count as a directory.
pub(crate) fn is_absent(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsALink
    )
}

/// The failures after which a call continued.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<Vec<RouteFailure>>);

impl Failures {
    /// Adds a failure of the route with this prefix. Only the first one of each route is kept.
    pub(crate) fn add(&self, route: &VPath, error: Error) {
        let mut failures = lock(&self.0);
        if failures.iter().all(|known| known.route != *route) {
            failures.push(RouteFailure {
                route: route.clone(),
                error,
            });
        }
    }

    /// Takes the failures, ordered by route.
    pub(crate) fn take(&self) -> Vec<RouteFailure> {
        let mut failures = std::mem::take(&mut *lock(&self.0));
        failures.sort_by(|one, two| one.route.cmp(&two.route));
        failures
    }
}
