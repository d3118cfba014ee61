//! [`SyncToolset`] and [`SyncChat`]: the tools as blocking calls.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use backend_core::Result;
use console_tools::{
    Arguments, CallPreview, Caller, Chat, Definitions, Observer, Options, Reply, Toolset,
};
use serde_json::Value;

use crate::calls::{Calls, call_settings};
use crate::cancel::Cancel;
use crate::engine::Engine;

/// An agent's tools, for programs without async. Cheap to clone.
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

// See `SyncBackend`.
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

    call_settings!();

    /// Returns the wrapped toolset.
    pub fn inner(&self) -> &Toolset {
        &self.toolset
    }

    /// Starts a conversation.
    pub fn conversation(&self, id: impl Into<Arc<str>>) -> SyncChat {
        self.conversation_of(Caller::new(id))
    }

    /// Starts a conversation for `caller`.
    pub fn conversation_of(&self, caller: Caller) -> SyncChat {
        SyncChat {
            chat: self.toolset.conversation_of(caller),
            calls: self.calls.clone(),
        }
    }

    /// Returns the options of the tools.
    pub fn options(&self) -> &Options {
        self.toolset.options()
    }

    /// Returns the definitions of the offered tools.
    pub fn definitions(&self) -> Definitions {
        self.toolset.definitions()
    }

    /// Returns text for a system prompt that describes the tools.
    pub fn prompt(&self) -> String {
        self.toolset.prompt()
    }
}

/// One conversation with a toolset, as blocking calls. Clones share the conversation.
/// Several threads may make calls at the same time. The methods fail as those of [`Chat`]
/// do and, if a call could not be made at all, as [`Engine::run`] or with `Cancelled`.
#[derive(Debug, Clone)]
pub struct SyncChat {
    chat: Chat,
    calls: Calls,
}

// See `SyncBackend`.
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

    call_settings!();

    /// Returns the wrapped conversation.
    pub fn inner(&self) -> &Chat {
        &self.chat
    }

    /// Replaces the conversation with one derived from it, such as by [`Chat::policy`],
    /// [`Chat::approver`] or [`Chat::approval_service`].
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

    /// Returns the caller on whose behalf calls are made.
    pub fn caller(&self) -> &Caller {
        self.chat.caller()
    }

    /// Returns the options of the tools.
    pub fn options(&self) -> &Options {
        self.chat.options()
    }

    /// Calls a tool. Errors of the model, the tool or the backend are in the reply.
    pub fn call<'a>(&self, name: &str, arguments: impl Into<Arguments<'a>>) -> Result<Reply> {
        self.followed(name, arguments.into(), None)
    }

    /// Calls a tool and passes a command's output to `observer` as it is printed, on any
    /// thread.
    pub fn call_observed<'a>(
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
        let mut arguments = OwnedArguments::from(arguments);
        self.calls.run(async move {
            let arguments = arguments.as_arguments();
            Ok(match observer {
                Some(observer) => chat.call_observed(&name, arguments, observer).await,
                None => chat.call(&name, arguments).await,
            })
        })
    }

    /// Returns the questions that a call would ask if it were made now; see
    /// [`Chat::preview`].
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
    pub fn preview<'a>(
        &self,
        name: &str,
        arguments: impl Into<Arguments<'a>>,
    ) -> Result<CallPreview> {
        let (chat, name) = (self.chat.clone(), name.to_owned());
        let mut arguments = OwnedArguments::from(arguments.into());
        self.calls
            .run(async move { Ok(chat.preview(&name, arguments.as_arguments()).await) })
    }

    /// Returns the definitions of the tools offered here.
    pub fn definitions(&self) -> Result<Definitions> {
        let chat = self.chat.clone();
        self.calls.run(async move { chat.definitions().await })
    }

    /// Returns text for a system prompt that describes the tools.
    pub fn prompt(&self) -> Result<String> {
        let chat = self.chat.clone();
        self.calls.run(async move { chat.prompt().await })
    }

    /// Ends the background shells that this conversation started and drops its kept
    /// outputs. Returns how many shells were still running.
    pub fn close(&self) -> Result<usize> {
        let chat = self.chat.clone();
        self.calls.run(async move { chat.close().await })
    }
}

/// Arguments that can be sent to another thread.
enum OwnedArguments {
    Raw(String),
    Value(Value),
}

impl OwnedArguments {
    /// Returns the arguments for a call. Takes a JSON value, so it works only once.
    fn as_arguments(&mut self) -> Arguments<'_> {
        match self {
            Self::Raw(raw) => Arguments::Raw(raw),
            Self::Value(value) => Arguments::Value(value.take()),
        }
    }
}

impl From<Arguments<'_>> for OwnedArguments {
    fn from(arguments: Arguments<'_>) -> Self {
        match arguments {
            Arguments::Raw(raw) => Self::Raw(raw.to_owned()),
            Arguments::Value(value) => Self::Value(value),
        }
    }
}
