//! [`Client`]: what the transport knows about a client.

use std::sync::Arc;

use console_tools::Caller;

/// The conversation of a client of which nothing is known.
const UNNAMED: &str = "mcp";

/// The facts that the transport knows about a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Client {
    /// The name of its [`Token`](crate::Token), if that has one.
    pub name: Option<Arc<str>>,
    /// The session that it asks for, in the header `Agentbox-Session` of `initialize`. Any
    /// client can write anything there: [`Connect`](crate::Connect) decides what it may have.
    pub session: Option<Arc<str>>,
}

impl Client {
    /// Returns the caller of its conversation: the user is its name, and the session is
    /// the one that it asks for, else its name, else `mcp`.
    pub fn caller(&self) -> Caller {
        let session = self.session.as_ref().or(self.name.as_ref());
        let caller = Caller::new(session.cloned().unwrap_or_else(|| UNNAMED.into()));
        match &self.name {
            Some(name) => caller.user(Arc::clone(name)),
            None => caller,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_has_the_name_and_the_session_that_was_asked_for() {
        let client = |name: Option<&str>, session: Option<&str>| Client {
            name: name.map(Arc::from),
            session: session.map(Arc::from),
        };
        for (name, session, id) in [
            (None, None, "mcp"),
            (None, Some("a"), "a"),
            (Some("alice"), None, "alice"),
            (Some("alice"), Some("b"), "b"),
        ] {
            let caller = client(name, session).caller();
            assert_eq!((&*caller.session, caller.user.as_deref()), (id, name));
        }
    }
}
