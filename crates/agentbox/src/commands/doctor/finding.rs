//! The result of one check.

use serde_json::{Value, json};

/// The name of the finding about the image that containers are created from.
pub(super) const IMAGE: &str = "image";

#[derive(Debug)]
pub(super) struct Finding {
    pub(super) name: &'static str,
    pub(super) purpose: &'static str,
    pub(super) needed: bool,
    pub(super) status: Status,
    /// A description of the current state.
    pub(super) found: String,
    pub(super) fix: Option<String>,
}

/// The state of the thing that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    /// It is present but not as it should be.
    Doubtful,
    Missing,
}

impl Finding {
    /// Creates a finding about a thing that is missing so far.
    pub(super) fn new(name: &'static str, purpose: &'static str) -> Self {
        Self {
            name,
            purpose,
            needed: false,
            status: Status::Missing,
            found: String::new(),
            fix: None,
        }
    }

    pub(super) fn needed(mut self, needed: bool) -> Self {
        self.needed = needed;
        self
    }

    pub(super) fn ok(mut self, found: impl Into<String>) -> Self {
        self.status = Status::Ok;
        self.found = found.into();
        self
    }

    pub(super) fn doubtful(mut self, found: impl Into<String>, fix: impl Into<String>) -> Self {
        self.status = Status::Doubtful;
        self.missing(found, fix)
    }

    pub(super) fn missing(mut self, found: impl Into<String>, fix: impl Into<String>) -> Self {
        self.found = found.into();
        self.fix = Some(fix.into());
        self
    }

    /// Takes the outcome of a trial, and the fix if it failed.
    pub(super) fn tried(self, tried: Result<&str, String>, fix: &str) -> Self {
        match tried {
            Ok(found) => self.ok(found),
            Err(error) => self.missing(error, fix),
        }
    }

    /// Takes an error whose message ends with the fix.
    pub(super) fn wrong(mut self, error: &impl ToString) -> Self {
        let message = error.to_string();
        let (found, fix) = match message.rsplit_once("; ") {
            Some((found, fix)) => (found, Some(fix.to_owned())),
            None => (&*message, None),
        };
        (self.found, self.fix) = (found.to_owned(), fix);
        self
    }

    /// Returns `true` if the backend does not need it, or it is fine.
    pub(super) fn is_fine(&self) -> bool {
        self.status == Status::Ok || !self.needed
    }

    pub(super) fn as_json(&self) -> Value {
        json!({
            "name": self.name,
            "purpose": self.purpose,
            "needed": self.needed,
            "ok": self.status == Status::Ok,
            "doubtful": self.status == Status::Doubtful,
            "found": self.found,
            "fix": self.fix,
        })
    }
}
