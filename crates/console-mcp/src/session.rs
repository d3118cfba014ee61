//! [`Session`]: the state of one client.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backend_core::{Backend as _, VPath};
use console_tools::Chat;
use permissions::approval::Unavailable;
use rmcp::RoleServer;
use rmcp::model::Tool;
use rmcp::service::Peer;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::line::Line;
use crate::roots::{Left, left, narrowed};
use crate::{Settings, call, roots};

/// Time allowed for a client to list its roots.
const ROOTS_TIME: Duration = Duration::from_secs(10);

/// The state of one client.
#[derive(Debug)]
pub(crate) struct Session {
    chat: Chat,
    peer: Peer<RoleServer>,
    line: Arc<Line>,
    /// The host directory that the client's roots are compared with. `None` if the client
    /// has no roots, or the backend no host directory.
    host_root: Option<PathBuf>,
    settings: Arc<Settings>,
    /// Replaced when the roots change.
    place: Mutex<Arc<OnceCell<Arc<Place>>>>,
    /// The most recent workspace, to detect changes.
    last: Mutex<Option<Arc<Place>>>,
}

/// The workspace of a client: the part of the backend it may use.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) chat: Chat,
    /// The same conversation, but without asking the user for approvals.
    pub(crate) quiet: Chat,
    /// The top directories of the workspace.
    pub(crate) tops: Vec<VPath>,
    pub(crate) tools: Vec<Tool>,
    /// The reason why nothing may be used.
    pub(crate) closed: Option<String>,
    /// Whether it is only a part of the backend.
    pub(crate) narrowed: bool,
}

impl Session {
    pub(crate) fn new(
        chat: Chat,
        peer: Peer<RoleServer>,
        line: Arc<Line>,
        host_root: Option<PathBuf>,
        settings: Arc<Settings>,
    ) -> Self {
        line.keep(chat.clone());
        Self {
            chat,
            peer,
            line,
            host_root,
            settings,
            place: Mutex::default(),
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
    pub(crate) async fn place(&self) -> Result<Arc<Place>, String> {
        let cell = {
            let place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&place)
        };
        cell.get_or_try_init(|| self.look()).await.cloned()
    }

    /// Forgets the workspace because the client's roots changed.
    pub(crate) fn moved(&self) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Arc::default();
    }

    async fn look(&self) -> Result<Arc<Place>, String> {
        let left = self.left().await?;
        let last = {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.clone()
        };
        let top = self.top().await?;
        let tops = match &left {
            Left::Part(tops) => tops.clone(),
            Left::All | Left::Nothing(_) => vec![top],
        };
        let closed = match &left {
            Left::Nothing(why) => Some(why.clone()),
            _ => None,
        };
        // If the workspace is unchanged, the conversation keeps its memory.
        if let Some(last) = &last
            && last.tops == tops
            && last.closed == closed
        {
            return Ok(Arc::clone(last));
        }
        let chat = match &left {
            Left::Part(tops) => self.narrowed(tops).await?,
            Left::All | Left::Nothing(_) => self.chat.clone(),
        };
        let definitions = chat.definitions().await.map_err(said)?;
        let tools = definitions.iter();
        let tools: Vec<Tool> = tools.map(|tool| call::tool(tool, &self.settings)).collect();
        let changed = last.is_some_and(|last| last.tools != tools);
        let place = Arc::new(Place {
            quiet: chat.approver(Unavailable::Error),
            chat,
            tops,
            tools,
            closed,
            narrowed: matches!(left, Left::Part(_)),
        });
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&place));
        if changed {
            let _ = self.peer.notify_tool_list_changed().await;
        }
        Ok(place)
    }

    async fn narrowed(&self, tops: &[VPath]) -> Result<Chat, String> {
        let files = self.chat.files().await.map_err(said)?;
        let policy = narrowed(files.policy(), tops)
            .ok_or("Error: the client's roots cannot be used; send fewer, or none")?;
        let chat = self.chat.policy(policy);
        self.line.keep(chat.clone());
        Ok(chat)
    }

    async fn top(&self) -> Result<VPath, String> {
        Ok(self.chat.files().await.map_err(said)?.working_dir())
    }

    /// Asks the client for its roots and returns the part of the backend that they
    /// leave.
    #[expect(deprecated, reason = "roots are what every client of today has")]
    async fn left(&self) -> Result<Left, String> {
        let Some(host_root) = self.host_root.clone() else {
            return Ok(Left::All);
        };
        let listed = match timeout(ROOTS_TIME, self.peer.list_roots()).await {
            Ok(Ok(listed)) => listed,
            Ok(Err(error)) => return Err(unknown(&error.to_string())),
            Err(_) => return Err(unknown("it did not answer")),
        };
        let top = self.top().await?;
        let uris: Vec<String> = listed.roots.into_iter().map(|root| root.uri).collect();
        let look = move || left(&uris, &host_root, &roots::top_of(&top, &host_root));
        let looked = tokio::task::spawn_blocking(look).await;
        looked.map_err(|error| unknown(&error.to_string()))
    }
}

fn unknown(why: &str) -> String {
    format!(
        "Error: the client says that it has roots, but not which ({why}); \
         nothing may be used until it does"
    )
}

fn said(error: backend_core::Error) -> String {
    format!("Error: {error}")
}
