//! The requests that the stand-in has received: counted by route, the latest with their
//! content.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::HeaderMap;
use serde_json::Value;

/// The number of requests that are kept with their content.
const MAX_RECORDED: usize = 1_000;

/// A method and the path of a route, whose parameters have names instead of values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Route(String);

impl Route {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self(format!("{method} {path}"))
    }

    /// Whether a pattern names this route: see [`Fault::at`](crate::Fault::at).
    pub(crate) fn matches(&self, pattern: &str) -> bool {
        let (Some((method, path)), Some((wanted, pattern))) =
            (self.0.split_once(' '), pattern.split_once(' '))
        else {
            return false;
        };
        let is_path = match pattern.strip_suffix('*') {
            Some(start) => path.starts_with(start),
            None => path == pattern,
        };
        is_path && (wanted == "*" || wanted == method)
    }
}

/// The number of HTTP requests by route. Messages on a websocket are none.
///
/// A route is a method and a path with the names of its parameters, such as
/// `GET /api/sandbox/{id}`. A path that the stand-in does not know is a route of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests(BTreeMap<Route, u64>);

impl Requests {
    /// Returns the number of all requests.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the number of requests of the routes that a pattern names: see
    /// [`Fault::at`](crate::Fault::at).
    pub fn of(&self, pattern: &str) -> u64 {
        let matching = self.0.iter().filter(|(route, _)| route.matches(pattern));
        matching.map(|(_, n)| n).sum()
    }

    /// Returns the requests that came after an earlier count.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let later = self.0.iter().map(|(route, n)| {
            let before = earlier.0.get(route).copied().unwrap_or(0);
            (route.clone(), n.saturating_sub(before))
        });
        Self(later.filter(|(_, n)| *n > 0).collect())
    }
}

/// One line per route, with its number.
impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (Route(route), n) in &self.0 {
            writeln!(f, "{n:>6} {route}")?;
        }
        Ok(())
    }
}

/// A request, for tests of what a client sends.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Recorded {
    /// The method and the path of its route.
    pub route: String,
    /// The path and the query as they were sent.
    pub target: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, if it is JSON.
    pub body: Option<Value>,
}

/// Counts and keeps requests.
#[derive(Debug, Default)]
pub(crate) struct Log(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    counts: Requests,
    recorded: VecDeque<Recorded>,
}

impl Log {
    pub(crate) fn push(
        &self,
        route: &Route,
        target: String,
        headers: HeaderMap,
        body: Option<Value>,
    ) {
        let mut entries = self.lock();
        *entries.counts.0.entry(route.clone()).or_default() += 1;
        if entries.recorded.len() == MAX_RECORDED {
            entries.recorded.pop_front();
        }
        entries.recorded.push_back(Recorded {
            route: route.0.clone(),
            target,
            headers,
            body,
        });
    }

    pub(crate) fn counts(&self) -> Requests {
        self.lock().counts.clone()
    }

    pub(crate) fn recorded(&self, pattern: &str) -> Vec<Recorded> {
        let entries = self.lock();
        let matching = entries
            .recorded
            .iter()
            .filter(|it| Route(it.route.clone()).matches(pattern));
        matching.cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_route() {
        let log = Log::default();
        let push = |method, path| {
            let route = Route::new(method, path);
            log.push(&route, path.to_owned(), HeaderMap::new(), None);
        };
        push("GET", "/api/sandbox");
        let before = log.counts();
        push("GET", "/api/sandbox");
        push("POST", "/api/sandbox");
        let counts = log.counts();
        assert_eq!(counts.total(), 3);
        assert_eq!(counts.of("GET /api/sandbox"), 2);
        assert_eq!(counts.of("* /api/*"), 3);
        assert_eq!(counts.of("GET /api"), 0);
        assert_eq!(counts.since(&before).total(), 2);
        assert_eq!(log.recorded("POST *").len(), 1);
    }
}
