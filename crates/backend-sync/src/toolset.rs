//! [`SyncToolset`] and [`SyncChat`]: the tools as blocking calls.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use backend_core::Result;
use console_tools::{
    Arguments, CallPreview, Caller, Chat, Definitions, Observer, Options, Reply, Toolset,
};
use serde_json::Value;

use crate::calls::Calls;
use crate::{Cancel, Engine};

/// The tools of an agent, for programs that do not await. Cheap to clone.
///
/// ```
/// use std::sync::Arc;
/// use backend_state::StateBackend;
/// use backend_sync::SyncToolset;
/// use console_tools::Toolset;
///
/// let toolset = Toolset::builder(Arc::new(StateBackend::new())).build()?;
/// let toolset = SyncToolset::new(toolset);
/// assert!(toolset.definitions().get("write_file").is_some());
///
/// let chat = toolset.conversation("conversation-1");
/// let reply = chat.call("write_file", r#"{"path": "a.md", "content": "hello"}"#)?;
/// assert!(reply.is_success());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct SyncToolset {
    toolset: Toolset,
    calls: Calls,
}

// As for `SyncBackend`.
impl UnwindSafe for SyncToolset {}
impl RefUnwindSafe for SyncToolset {}

impl SyncToolset {
    /// Calls `toolset` on the [shared engine](Engine::shared).
    pub fn new(toolset: Toolset) -> Self {
        Self {
            toolset,
            calls: Calls::default(),
        }
    }

    /// The same on another engine.
    #[must_use]
    pub fn on(mut self, engine: &Engine) -> Self {
        self.calls.engine = engine.clone();
        self
    }

    /// The same, with calls that end when `cancel` says so.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.calls.cancel = Some(cancel.clone());
        self
    }

    /// The toolset behind.
    pub fn inner(&self) -> &Toolset {
        &self.toolset
    }

    /// A conversation that begins.
    pub fn conversation(&self, id: impl Into<Arc<str>>) -> SyncChat {
        self.conversation_of(Caller::new(id))
    }

    /// A conversation of somebody that begins.
    pub fn conversation_of(&self, caller: Caller) -> SyncChat {
        SyncChat {
            chat: self.toolset.conversation_of(caller),
            calls: self.calls.clone(),
        }
    }

    /// How the tools behave.
    pub fn options(&self) -> &Options {
        self.toolset.options()
    }

    /// The tools that are offered.
    pub fn definitions(&self) -> Definitions {
        self.toolset.definitions()
    }

    /// What to add to a system prompt: which tools there are.
    pub fn prompt(&self) -> String {
        self.toolset.prompt()
    }
}

/// One conversation with a toolset, as blocking calls. Clones are one
/// conversation; calls may be made on several threads at the same time.
#[derive(Debug, Clone)]
pub struct SyncChat {
    chat: Chat,
    calls: Calls,
}

// As for `SyncBackend`.
impl UnwindSafe for SyncChat {}
impl RefUnwindSafe for SyncChat {}

impl SyncChat {
    /// Calls `chat` on the [shared engine](Engine::shared).
    pub fn new(chat: Chat) -> Self {
        Self {
            chat,
            calls: Calls::default(),
        }
    }

    /// The same conversation on another engine.
    #[must_use]
    pub fn on(mut self, engine: &Engine) -> Self {
        self.calls.engine = engine.clone();
        self
    }

    /// The same conversation, with calls that end when `cancel` says so; commands
    /// that run are ended.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.calls.cancel = Some(cancel.clone());
        self
    }

    /// The conversation behind.
    pub fn inner(&self) -> &Chat {
        &self.chat
    }

    /// Another conversation in place of this one, as [`Chat::policy`],
    /// [`Chat::approver`] and [`Chat::desk`] make them.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use backend_state::StateBackend;
    /// # use backend_sync::SyncToolset;
    /// # use console_tools::Toolset;
    /// # let toolset = Toolset::builder(Arc::new(StateBackend::new())).build()?;
    /// # let chat = SyncToolset::new(toolset).conversation("conversation-1");
    /// let allowed = chat.map(|chat| chat.policy(Default::default()));
    /// # let _ = allowed;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn map(&self, change: impl FnOnce(&Chat) -> Chat) -> Self {
        Self {
            chat: change(&self.chat),
            calls: self.calls.clone(),
        }
    }

    /// On whose behalf calls are made.
    pub fn caller(&self) -> &Caller {
        self.chat.caller()
    }

    /// How the tools behave.
    pub fn options(&self) -> &Options {
        self.chat.options()
    }

    /// Calls a tool. Whatever a model, a tool or a backend does is in the reply.
    ///
    /// # Errors
    ///
    /// Only if the call could not be made at all: what [`Engine::run`] fails with,
    /// and `Cancelled`.
    pub fn call<'a>(&self, name: &str, arguments: impl Into<Arguments<'a>>) -> Result<Reply> {
        self.followed(name, arguments.into(), None)
    }

    /// The same while somebody follows: what a command prints is shown as it
    /// comes, on whatever thread that is.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn call_followed<'a>(
        &self,
        name: &str,
        arguments: impl Into<Arguments<'a>>,
        observer: Arc<dyn Observer>,
    ) -> Result<Reply> {
        self.followed(name, arguments.into(), Some(observer))
    }

    fn followed(
        &self,
        name: &str,
        arguments: Arguments<'_>,
        observer: Option<Arc<dyn Observer>>,
    ) -> Result<Reply> {
        let (chat, name) = (self.chat.clone(), name.to_owned());
        let mut arguments = Owned::from(arguments);
        self.calls.run(async move {
            let arguments = arguments.lend();
            Ok(match observer {
                Some(observer) => chat.call_followed(&name, arguments, observer).await,
                None => chat.call(&name, arguments).await,
            })
        })
    }

    /// What a call would ask if it were made now: [`Chat::preview`].
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use backend_state::StateBackend;
    /// # use backend_sync::SyncToolset;
    /// # use console_tools::{Options, Toolset};
    /// # let mut options = Options::default();
    /// # options.require_write_approval = true;
    /// # let toolset = Toolset::builder(Arc::new(StateBackend::new())).options(options).build()?;
    /// # let chat = SyncToolset::new(toolset).conversation("conversation-1");
    /// let preview = chat.preview("write_file", r#"{"path": "a.md", "content": "hello"}"#)?;
    /// assert_eq!(preview.questions()[0].description, "Write 5 chars to /a.md");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn preview<'a>(
        &self,
        name: &str,
        arguments: impl Into<Arguments<'a>>,
    ) -> Result<CallPreview> {
        let (chat, name) = (self.chat.clone(), name.to_owned());
        let mut arguments = Owned::from(arguments.into());
        self.calls
            .run(async move { Ok(chat.preview(&name, arguments.lend()).await) })
    }

    /// The tools that are offered here.
    ///
    /// # Errors
    ///
    /// As [`Chat::definitions`] and [`Engine::run`].
    pub fn definitions(&self) -> Result<Definitions> {
        let chat = self.chat.clone();
        self.calls.run(async move { chat.definitions().await })
    }

    /// What to add to a system prompt: which tools there are.
    ///
    /// # Errors
    ///
    /// As [`Chat::prompt`] and [`Engine::run`].
    pub fn prompt(&self) -> Result<String> {
        let chat = self.chat.clone();
        self.calls.run(async move { chat.prompt().await })
    }

    /// Ends the background shells that this conversation started and drops the
    /// outputs that it keeps. Returns how many shells still ran.
    ///
    /// # Errors
    ///
    /// As [`Chat::close`] and [`Engine::run`].
    pub fn close(&self) -> Result<usize> {
        let chat = self.chat.clone();
        self.calls.run(async move { chat.close().await })
    }
}

/// Arguments that can go to another thread.
enum Owned {
    Raw(String),
    Value(Value),
}

impl Owned {
    /// As a call takes them, once.
    fn lend(&mut self) -> Arguments<'_> {
        match self {
            Self::Raw(raw) => Arguments::Raw(raw),
            Self::Value(value) => Arguments::Value(value.take()),
        }
    }
}

impl From<Arguments<'_>> for Owned {
    fn from(arguments: Arguments<'_>) -> Self {
        match arguments {
            Arguments::Raw(raw) => Self::Raw(raw.to_owned()),
            Arguments::Value(value) => Self::Value(value),
        }
    }
}
