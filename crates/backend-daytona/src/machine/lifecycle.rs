//! The states of a sandbox and the transitions between them.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Error, ErrorKind, Result};
use sandbox_shell::{Lifecycle, Presence, StartReason};

use super::Core;
use super::state::{Facts, State};
use crate::api::Change;
use crate::instance::Instance;
use crate::labels;
use crate::state::InstanceState;
use crate::toolbox::Toolbox;
use crate::wait::{self, Start};

/// The time for a stop, a pause or a deletion to happen. The service refuses to delete
/// sandboxes that are being started.
const END_TIMEOUT: Duration = Duration::from_secs(180);

#[async_trait]
impl Lifecycle for Core {
    type Facts = Facts;

    fn known(&self) -> &Mutex<State> {
        &self.state
    }

    async fn make_ready(&self, reason: StartReason) -> Result<()> {
        match (self.find().await?, &self.config.recipe) {
            (Some(found), _) => self.resume(found, reason).await,
            (None, Some(recipe)) if self.may_create(reason) => self.create(recipe).await,
            (None, _) => Err(self.deleted()),
        }
    }

    async fn end(&self, mode: StopMode) -> Result<()> {
        let account = &self.config.account;
        let known = self.known_id();
        {
            let mut state = self.state();
            state.set_not_running();
            (state.connected, state.listener) = (None, None);
        }
        self.carriers.clear();
        let found = match known {
            Some(id) => Some(id),
            None => self.id_by_name().await?,
        };
        let Some(id) = found else {
            return Ok(());
        };
        if mode == StopMode::Keep {
            return wait::changed(account, &id, Change::Stop, END_TIMEOUT).await;
        }
        wait::deleted(account, &id, END_TIMEOUT).await?;
        self.forget_instance();
        Ok(())
    }
}

impl Core {
    /// The id of the sandbox that is used, if there is one.
    pub(super) fn known_id(&self) -> Option<String> {
        let known = self.state().id.clone();
        known.or_else(|| self.config.id.clone())
    }

    /// Looks at the sandbox. Returns `None` if it does not exist.
    pub(super) async fn find(&self) -> Result<Option<Instance>> {
        let known = self.known_id();
        let key = known.as_deref().unwrap_or(&self.config.name);
        let found = self.config.account.find(key).await?;
        Ok(found.filter(|found| found.state != InstanceState::Missing))
    }

    /// Returns the id of a sandbox of this name that may be ended.
    async fn id_by_name(&self) -> Result<Option<String>> {
        let found = self.config.account.find(&self.config.name).await?;
        let is_ours = |found: &Instance| self.config.foreign || found.is_ours();
        Ok(found.filter(is_ours).map(|found| found.id))
    }

    /// Whether a sandbox may be created where there is none. The files of the old one must
    /// not get lost unnoticed.
    fn may_create(&self, reason: StartReason) -> bool {
        let is_asked = reason == StartReason::Explicit || !self.state().existed();
        self.config.recipe.is_some() && is_asked
    }

    /// Makes an existing sandbox run.
    pub(super) async fn resume(&self, found: Instance, reason: StartReason) -> Result<()> {
        if found.state.is_gone() {
            let Some(recipe) = self
                .config
                .recipe
                .as_ref()
                .filter(|_| self.may_create(reason))
            else {
                return Err(self.deleted());
            };
            wait::vanished(&self.config.account, &found.id, END_TIMEOUT).await?;
            self.forget_instance();
            return Box::pin(self.create(recipe)).await;
        }
        self.check(&found)?;
        self.note(&found);
        let start = Start {
            timeout: self.config.start_timeout,
            recover: self.config.recover,
        };
        let found = wait::started(&self.config.account, found, start).await?;
        self.use_instance(&found).await
    }

    /// Notes that a sandbox exists.
    pub(super) fn note(&self, found: &Instance) {
        let mut state = self.state();
        state.set_seen();
        state.id = Some(found.id.clone());
    }

    /// Forgets a sandbox that is gone, but not how often one was started.
    pub(super) fn forget_instance(&self) {
        let mut state = self.state();
        let starts = state.starts;
        state.forget(self.config.initial_presence());
        state.starts = starts;
    }

    /// Notes the running sandbox that is used from now on.
    pub(super) async fn use_instance(&self, found: &Instance) -> Result<()> {
        let account = &self.config.account;
        let url = account.toolbox_url(found).await?;
        let mut state = self.state();
        let is_same = state.presence == Presence::Running && state.id.as_ref() == Some(&found.id);
        state.set_seen();
        state.id = Some(found.id.clone());
        state.toolbox = Some(Toolbox::new(account.clone(), url));
        if !is_same {
            state.starts += 1;
            (state.connected, state.listener) = (None, None);
        }
        drop(state);
        if !is_same {
            self.carriers.clear();
        }
        Ok(())
    }

    /// Whether this object has created a sandbox. That it has tried to proves nothing:
    /// another process may have been faster.
    pub(super) fn has_created(&self, found: &Instance) -> bool {
        found.labels.get(labels::CREATION) == Some(&self.creation)
    }

    /// Refuses a sandbox that does not belong to this object.
    fn check(&self, found: &Instance) -> Result<()> {
        if self.has_created(found) {
            return Ok(());
        }
        if !found.is_ours() && !self.config.foreign {
            return Err(self.conflict(
                "was not created by this program; choose another name, or attach to it with `allow_foreign`",
            ));
        }
        let Some(recipe) = &self.config.recipe else {
            return Ok(());
        };
        if recipe.settings.exclusive {
            return Err(self.taken());
        }
        let wanted = self.plan(recipe).fingerprint();
        if found.labels.get(labels::CONFIG) == Some(&wanted) {
            return Ok(());
        }
        Err(self.conflict(
            "was created from another image or with other options; delete it, or choose another name",
        ))
    }

    fn conflict(&self, what: &str) -> Error {
        let message = format!("the sandbox {} {what}", self.config.name);
        Error::new(ErrorKind::Conflict, message)
    }

    /// The error for a name that must be free.
    pub(super) fn taken(&self) -> Error {
        self.conflict("exists already; attach to it, or choose another name")
    }

    /// Changes the state of the sandbox.
    pub(super) async fn change(&self, change: Change) -> Result<()> {
        let id = self.known_id().ok_or_else(|| self.deleted())?;
        let changed = wait::changed(&self.config.account, &id, change, END_TIMEOUT).await;
        self.state().set_not_running();
        changed
    }

    /// Returns why the sandbox does not answer, or `None` if it should.
    pub(super) async fn diagnosis(&self) -> Option<Error> {
        let reason = match self.find().await {
            Ok(Some(found)) => self.state_error(&found),
            Ok(None) => Some(self.deleted()),
            Err(error) => Some(error),
        };
        if reason.is_some() {
            self.state().set_not_running();
        }
        reason
    }

    /// Returns the error for a sandbox that does not run.
    fn state_error(&self, found: &Instance) -> Option<Error> {
        let text = format!("is {}", found.state);
        let next = match found.state {
            InstanceState::Started => return None,
            InstanceState::Failed { .. } => return Some(wait::failed(found)),
            InstanceState::Deleting | InstanceState::Missing => return Some(self.deleted()),
            _ => "the next call starts it",
        };
        Some(self.unavailable(&text, next))
    }

    /// The error for a sandbox that no longer exists.
    pub(super) fn deleted(&self) -> Error {
        match (&self.config.recipe, self.state().existed()) {
            (Some(_), true) => self.unavailable(
                "was deleted",
                "its files are gone with it, and a new one is created when the sandbox, or the program that uses it, is started again",
            ),
            (Some(_), false) => {
                self.unavailable("has not been created yet", "the next call creates it")
            }
            (None, _) => self.unavailable(
                "no longer exists",
                "create a sandbox or attach to another one",
            ),
        }
    }

    /// The error for a sandbox that cannot be used.
    pub(super) fn unavailable(&self, text: &str, next: &str) -> Error {
        let name = &self.config.name;
        Error::unavailable(format!("the sandbox {name} {text}; {next}"))
    }
}
