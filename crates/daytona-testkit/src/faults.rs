//! Faults: wrong, late and lost answers, injected into chosen requests.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::requests::Route;

/// A fault of the service, of a proxy or of the network.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// 502 with an empty body. The request is not performed.
    BadGateway,
    /// 400 `failed to resolve container IP …`, as from a sandbox that is being stopped. The
    /// request is not performed.
    ContainerIp,
    /// 401 `Bearer token is invalid`, for a valid key. The request is not performed.
    InvalidToken,
    /// 409 `Sandbox state change in progress`. The request is not performed.
    Busy,
    /// 429 with this time in `Retry-After` headers. The request is not performed.
    RateLimited(Duration),
    /// Any answer. The request is not performed.
    Answer {
        /// The status code.
        status: u16,
        /// The body: JSON if it begins with `{`, else plain text.
        body: String,
    },
    /// The request is performed, but the connection ends in the middle of the answer's body.
    Truncated,
    /// The request is performed, but the answer is an empty 502.
    AnswerLost,
    /// The connection ends without an answer. The request is not performed.
    Dropped,
    /// The request is performed after this time.
    Delayed(Duration),
    /// For requests that create, start or recover a sandbox: it stays in `starting`, until
    /// [`Standin::set_state`](crate::Standin::set_state).
    StuckStarting,
    /// For requests that list sandboxes: the answer is that of the last such request.
    StaleList,
}

impl Fault {
    /// Injects this fault once, into the next request of a route.
    ///
    /// A route is a method and a path as in [`Requests`](crate::Requests), such as
    /// `POST /api/sandbox/{id}/start`. `*` stands for any method, and for the rest of a path
    /// at its end: `* /toolbox/*`.
    pub fn at(self, route: &str) -> Injection {
        Injection {
            fault: self,
            route: route.to_owned(),
            n_spared: 0,
            n_times: 1,
        }
    }
}

/// A fault, and the requests that it concerns.
#[derive(Debug, Clone)]
#[must_use = "it is passed to `Standin::inject`"]
pub struct Injection {
    fault: Fault,
    route: String,
    n_spared: usize,
    n_times: usize,
}

impl Injection {
    /// Injects the fault into this number of requests.
    pub fn times(mut self, n: usize) -> Self {
        self.n_times = n;
        self
    }

    /// Injects the fault into every request.
    pub fn forever(self) -> Self {
        self.times(usize::MAX)
    }

    /// Spares this number of requests first.
    pub fn after(mut self, n: usize) -> Self {
        self.n_spared = n;
        self
    }

    /// Counts a request, and returns whether it has the fault.
    fn strikes(&mut self, route: &Route) -> bool {
        if !route.matches(&self.route) || self.n_times == 0 {
            return false;
        }
        if self.n_spared > 0 {
            self.n_spared -= 1;
            return false;
        }
        self.n_times = self.n_times.saturating_sub(1);
        true
    }
}

/// The injections that are still to come.
#[derive(Debug, Default)]
pub(crate) struct Faults(Mutex<Vec<Injection>>);

impl Faults {
    pub(crate) fn inject(&self, injection: Injection) {
        self.lock().push(injection);
    }

    pub(crate) fn heal(&self) {
        self.lock().clear();
    }

    /// Returns the fault of a request: that of the first injection that concerns it.
    pub(crate) fn next(&self, route: &Route) -> Option<Fault> {
        let mut injections = self.lock();
        let index = injections.iter_mut().position(|it| it.strikes(route))?;
        let fault = injections[index].fault.clone();
        injections.retain(|it| it.n_times > 0);
        Some(fault)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Injection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route() -> Route {
        Route::new("POST", "/api/sandbox/{id}/start")
    }

    #[test]
    fn a_fault_strikes_as_often_as_it_was_told_and_where() {
        let faults = Faults::default();
        faults.inject(Fault::Busy.at("GET /api/sandbox/{id}/start").forever());
        faults.inject(Fault::BadGateway.at("* /api/*").after(1).times(2));
        let struck: Vec<_> = (0..4).map(|_| faults.next(&route())).collect();
        let bad = Some(Fault::BadGateway);
        assert_eq!(struck, [None, bad.clone(), bad, None]);
    }

    #[test]
    fn the_first_of_two_faults_comes_first() {
        let faults = Faults::default();
        faults.inject(Fault::Busy.at("POST /api/sandbox/{id}/start"));
        faults.inject(Fault::BadGateway.at("POST /api/sandbox/{id}/start"));
        assert_eq!(faults.next(&route()), Some(Fault::Busy));
        assert_eq!(faults.next(&route()), Some(Fault::BadGateway));
        faults.inject(Fault::Busy.at("* *").forever());
        faults.heal();
        assert_eq!(faults.next(&route()), None);
    }
}
