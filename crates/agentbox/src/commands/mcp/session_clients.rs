//! [`SessionClients`]: a session for each client, which it finds again.

use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use async_trait::async_trait;
use backend_core::sync::lock;
use backend_core::{Backend, Error, ErrorKind, Result};
use console_mcp::{Client, Connect, HttpSettings};
use console_tools::{Caller, Resolver, Toolset};
use sessions::{OpenRequest, REAPER_INTERVAL, SessionId, SessionManager, SessionResolver};

use super::clients::Clients;
use crate::app::App;
use crate::backend::session_engine;
use crate::exit::Failure;
use crate::owner::{UNNAMED, may_have};

/// Interval at which the sessions of connected clients count as used, unless they would end
/// as idle meanwhile.
const USE_INTERVAL: Duration = Duration::from_secs(60);

/// Time allowed for all sessions to end with the program.
const SHUTDOWN_TIME: Duration = Duration::from_secs(30);

/// Gives every client a session, which it finds again.
#[derive(Debug)]
pub(super) struct SessionClients {
    app: App,
    manager: SessionManager,
    resolver: Arc<SessionResolver>,
    connected: Mutex<Vec<Weak<Connected>>>,
    use_interval: Duration,
}

impl SessionClients {
    /// Opens the place of the sessions. A session ends when its client is gone for the time
    /// after which a silent client is forgotten, and there are as many as clients.
    pub(super) async fn open(
        app: App,
        directory: Option<&Path>,
        limits: &HttpSettings,
    ) -> std::result::Result<Self, Failure> {
        let root = directory.map(session_engine::make_root).transpose()?;
        if let Some(root) = &root {
            app.check_workspaces(root)?;
        }
        let builder = session_engine::manager(&app.spec, root.as_deref()).await?;
        let manager = builder
            .idle_timeout(limits.idle)
            .max_sessions(limits.sessions)
            .max_sessions_per_tenant(limits.sessions_per_name())
            .build()?;
        manager.start_reaper(REAPER_INTERVAL.min(limits.idle));
        Ok(Self {
            app,
            resolver: Arc::new(SessionResolver::with(manager.clone(), request)),
            manager,
            connected: Mutex::default(),
            use_interval: USE_INTERVAL.min(limits.idle / 2),
        })
    }
}

#[async_trait]
impl Connect for SessionClients {
    /// Checks that a client may have the session that it asks for.
    fn check(&self, client: &Client) -> Result<()> {
        session_of(client).map(drop)
    }

    async fn connect(&self, client: &Client) -> Result<Toolset> {
        let connected = Arc::new(Connected {
            id: session_of(client)?,
            resolver: Arc::clone(&self.resolver),
        });
        lock(&self.connected).push(Arc::downgrade(&connected));
        let toolset = self.app.session_toolset(connected).build();
        toolset.map_err(|error| Error::new(ErrorKind::Config, error.to_string()))
    }
}

#[async_trait]
impl Clients for SessionClients {
    /// Keeps the sessions of connected clients: while they listen, they are not idle.
    async fn sweep(&self) {
        let mut ticks = tokio::time::interval(self.use_interval);
        loop {
            ticks.tick().await;
            lock(&self.connected).retain(|connected| {
                let connected = connected.upgrade();
                let used = connected.map(|connected| self.manager.touch(connected.id.as_str()));
                used.is_some()
            });
        }
    }

    /// Ends all sessions. Their files are kept, where there is a place for them.
    async fn stop(&self) {
        let ended = self.manager.shutdown(SHUTDOWN_TIME).await;
        for (session, error) in ended.failed {
            tracing::warn!(%session, error = %error.chain(), "a session could not be ended");
        }
        for session in ended.unfinished {
            tracing::warn!(%session, "a session did not end in time");
        }
    }
}

/// Returns the session of a client. One with a name has the session of that name, and may
/// ask for those whose ids begin with it and a point. The answer to any other id does not
/// tell whether there is such a session.
fn session_of(client: &Client) -> Result<SessionId> {
    let id = SessionId::new(&client.caller().session)?;
    let Some(name) = client.name.as_deref() else {
        return Ok(id);
    };
    if may_have(name, &id) {
        return Ok(id);
    }
    Err(Error::new(
        ErrorKind::PermissionDenied,
        format!(
            "the header Agentbox-Session can name {name}, or an id that begins with '{name}.'; leave \
             it out for {name}"
        ),
    ))
}

/// Returns the request for the session of a caller. Its owner is the name of the token.
fn request(caller: &Caller) -> Result<OpenRequest> {
    let owner = caller.user.as_deref().unwrap_or(UNNAMED);
    Ok(OpenRequest::new(SessionId::new(&caller.session)?).tenant(owner))
}

/// A connected client. It is dropped when the client has disconnected.
#[derive(Debug)]
struct Connected {
    id: SessionId,
    resolver: Arc<SessionResolver>,
}

#[async_trait]
impl Resolver for Connected {
    async fn resolve(&self, caller: &Caller) -> Result<Arc<dyn Backend>> {
        self.resolver.resolve(caller).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(name: Option<&str>, session: Option<&str>) -> Client {
        let mut client = Client::default();
        client.name = name.map(Arc::from);
        client.session = session.map(Arc::from);
        client
    }

    #[test]
    fn a_client_has_its_own_session_and_those_beneath_it() {
        for (name, session, id) in [
            (None, None, "mcp"),
            (None, Some("other"), "other"),
            (Some("alice"), None, "alice"),
            (Some("alice"), Some("alice"), "alice"),
            (Some("alice"), Some("alice.site-2"), "alice.site-2"),
        ] {
            assert_eq!(session_of(&client(name, session)).unwrap().as_str(), id);
        }
        for session in ["bob", "bob.alice", "alice2", "alice-2", "Alice", "mcp"] {
            let error = session_of(&client(Some("alice"), Some(session))).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{session}");
            assert!(!error.to_string().contains("bob"), "{error}");
        }
        for session in ["", "../alice", "alice/..", ".alice"] {
            for name in [None, Some("alice")] {
                let error = session_of(&client(name, Some(session))).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "{session}");
            }
        }
    }

    #[test]
    fn the_owner_of_a_session_is_the_name_of_the_token() {
        let of = |client: &Client| request(&client.caller()).unwrap();
        let alice = of(&client(Some("alice"), Some("alice.b")));
        assert_eq!(
            (alice.id.as_str(), alice.tenant.as_deref()),
            ("alice.b", Some("alice"))
        );
        let unnamed = of(&client(None, None));
        assert_eq!(unnamed.tenant.as_deref(), Some("mcp"));
    }
}
