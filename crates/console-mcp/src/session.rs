//! [`Session`]: the state of one client.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend_core::sync::lock;
use backend_core::{Backend as _, VPath};
use console_tools::{Chat, Definitions};
use permissions::approval::Unavailable;
use rmcp::RoleServer;
use rmcp::service::Peer;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::connection::Connection;
use crate::roots::{self, RootAccess, narrowed, root_access};

/// Time allowed for a client to list its roots.
const ROOTS_TIME: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Session {
    chat: Chat,
    peer: Peer<RoleServer>,
    connection: Arc<Connection>,
    /// The host directory that the client's roots are compared with. `None` if the client
    /// has no roots, or the backend no host directory.
    host_root: Option<PathBuf>,
    /// Replaced when the roots change.
    workspace: Mutex<Arc<OnceCell<Arc<Workspace>>>>,
    /// The most recent workspace, to detect changes.
    last: Mutex<Option<Arc<Workspace>>>,
}

/// The workspace of a client: the part of the backend it may use.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) chat: Chat,
    /// The same conversation, but without asking the user for approvals.
    pub(crate) without_prompts: Chat,
    /// The top directories of the workspace.
    pub(crate) roots: Vec<VPath>,
    pub(crate) tools: Definitions,
    /// The reason why nothing may be used.
    pub(crate) denied: Option<String>,
    /// Whether it is only a part of the backend.
    pub(crate) narrowed: bool,
}

impl Session {
    pub(crate) fn new(
        chat: Chat,
        peer: Peer<RoleServer>,
        connection: Arc<Connection>,
        host_root: Option<PathBuf>,
    ) -> Self {
        connection.keep(chat.clone());
        Self {
            chat,
            peer,
            connection,
            host_root,
            workspace: Mutex::default(),
            last: Mutex::default(),
        }
    }

    /// Returns the client's workspace. The client is asked for its roots once, and
    /// again after they change. The question is sent within one of its own requests, so
    /// that it reaches the client.
    ///
    /// # Errors
    ///
    /// The text for the model if the roots are not known.
    pub(crate) async fn workspace(&self) -> Result<Arc<Workspace>, String> {
        let cell = Arc::clone(&lock(&self.workspace));
        cell.get_or_try_init(|| self.resolve()).await.cloned()
    }

    /// Forgets the workspace because the client's roots changed.
    pub(crate) fn roots_changed(&self) {
        *lock(&self.workspace) = Arc::default();
    }

    async fn resolve(&self) -> Result<Arc<Workspace>, String> {
        let access = self.root_access().await?;
        let last = lock(&self.last).clone();
        let top = self.top().await?;
        let (roots, denied) = match &access {
            RootAccess::All => (vec![top], None),
            RootAccess::Part(roots) => (roots.clone(), None),
            RootAccess::Nothing(why) => (vec![top], Some(why.clone())),
        };
        // If the workspace is unchanged, the conversation keeps its memory.
        if let Some(last) = &last
            && last.roots == roots
            && last.denied == denied
        {
            return Ok(Arc::clone(last));
        }
        let chat = match &access {
            RootAccess::Part(roots) => self.narrowed(roots).await?,
            RootAccess::All | RootAccess::Nothing(_) => self.chat.clone(),
        };
        let tools = chat.definitions().await.map_err(said)?;
        let changed = last.is_some_and(|last| *last.tools != *tools);
        let workspace = Arc::new(Workspace {
            without_prompts: chat.approver(Unavailable::Error),
            chat,
            roots,
            tools,
            denied,
            narrowed: matches!(access, RootAccess::Part(_)),
        });
        *lock(&self.last) = Some(Arc::clone(&workspace));
        if changed {
            let _ = self.peer.notify_tool_list_changed().await;
        }
        Ok(workspace)
    }

    async fn narrowed(&self, roots: &[VPath]) -> Result<Chat, String> {
        let files = self.chat.files().await.map_err(said)?;
        let policy = narrowed(files.policy(), roots)
            .ok_or("Error: the client's roots cannot be used; send fewer, or none")?;
        let chat = self.chat.policy(policy);
        self.connection.keep(chat.clone());
        Ok(chat)
    }

    async fn top(&self) -> Result<VPath, String> {
        Ok(self.chat.files().await.map_err(said)?.working_dir())
    }

    /// Asks the client for its roots. Returns the part of the backend they leave.
    #[expect(deprecated, reason = "roots are what every client of today has")]
    async fn root_access(&self) -> Result<RootAccess, String> {
        let Some(host_root) = self.host_root.clone() else {
            return Ok(RootAccess::All);
        };
        let listed = match timeout(ROOTS_TIME, self.peer.list_roots()).await {
            Ok(Ok(listed)) => listed,
            Ok(Err(error)) => return Err(unknown(&error.to_string())),
            Err(_) => return Err(unknown("it did not answer")),
        };
        let top = self.top().await?;
        let uris: Vec<String> = listed.roots.into_iter().map(|root| root.uri).collect();
        let resolve = move || root_access(&uris, &host_root, &roots::top_of(&top, &host_root));
        let resolved = tokio::task::spawn_blocking(resolve).await;
        resolved.map_err(|error| unknown(&error.to_string()))
    }
}

fn unknown(why: &str) -> String {
    format!(
        "Error: the client has roots but did not list them ({why}); \
         nothing may be used until it does"
    )
}

fn said(error: backend_core::Error) -> String {
    format!("Error: {error}")
}
