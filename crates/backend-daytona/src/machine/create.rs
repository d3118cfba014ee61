//! Creating a sandbox.

use std::time::Duration;

use backend_core::{Error, ErrorKind, Quoted, Result};
use sandbox_shell::{Presence, StartReason};

use super::{Core, Recipe};
use crate::client;
use crate::instance::Instance;
use crate::leftovers;
use crate::refusal::{CreateTimeout, Refusal, RefusalKind};
use crate::spec::Plan;
use crate::state::InstanceState;
use crate::wait::{self, Start};

/// Attempts to create a sandbox whose answers get lost. The name is unique, so a second one
/// is never created.
const ATTEMPTS: u32 = 3;

/// The time for a sandbox that never worked to be deleted.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(60);

/// How a sandbox of this name came about.
enum Created {
    New(Instance),
    /// There was one.
    Found(Instance),
}

impl Core {
    /// Creates the sandbox and waits until it runs. One that fails is deleted; one that is
    /// late is not, and is waited for by the next call. A sandbox that another process
    /// created meanwhile is used.
    pub(super) async fn create(&self, recipe: &Recipe) -> Result<()> {
        let account = &self.config.account;
        if !recipe.settings.without_reaping {
            leftovers::reap_once(account);
        }
        let found = match self.post(recipe).await? {
            Created::New(found) => found,
            Created::Found(found) => {
                return Box::pin(self.resume(found, StartReason::OnDemand)).await;
            }
        };
        self.note(&found);
        let id = found.id.clone();
        let start = Start::new(self.config.start_timeout);
        match wait::started(account, found, start).await {
            Ok(found) => self.use_instance(&found).await,
            Err(error) => {
                self.discard_if_failed(&id).await;
                Err(error)
            }
        }
    }

    /// Creates a sandbox that did not exist.
    pub(super) async fn create_new(&self) -> Result<()> {
        let Some(recipe) = &self.config.recipe else {
            return Err(self.deleted());
        };
        self.create(recipe).await?;
        self.state().presence = Presence::Running;
        Ok(())
    }

    pub(super) fn plan<'a>(&'a self, recipe: &'a Recipe) -> Plan<'a> {
        Plan {
            name: &self.config.name,
            settings: &recipe.settings,
            source: &recipe.source,
            working_dir: &self.config.working_dir,
            target: self.config.account.target(),
            creation: &self.creation,
        }
    }

    /// Asks for the sandbox, and again if the answer gets lost.
    async fn post(&self, recipe: &Recipe) -> Result<Created> {
        let account = &self.config.account;
        let body = self.plan(recipe).body();
        let was_attempted = std::mem::replace(&mut self.state().attempted, true);
        let mut attempt = 0;
        loop {
            attempt += 1;
            let error = match account.create(&body).await {
                Ok(found) => return Ok(Created::New(found)),
                Err(error) => error,
            };
            let kind = Refusal::of(&error).map(|refusal| refusal.kind);
            let is_unclear = client::is_lost(&error);
            let found = match kind {
                // The name is taken, maybe by a request whose answer was lost; or it was
                // created and failed to start.
                Some(RefusalKind::Conflict | RefusalKind::Invalid) => self.by_name().await?,
                _ if is_unclear => match self.by_name().await {
                    Ok(found) => found,
                    Err(_) => return Err(self.unclear(error)),
                },
                _ => None,
            };
            match found {
                Some(found) if self.has_created(&found) => return Ok(Created::New(found)),
                Some(found) if kind == Some(RefusalKind::Conflict) => {
                    self.state().attempted = was_attempted;
                    if recipe.settings.exclusive && !found.state.is_gone() {
                        return Err(self.taken());
                    }
                    return Ok(Created::Found(found));
                }
                _ => {}
            }
            if is_unclear && attempt < ATTEMPTS {
                continue;
            }
            if is_unclear {
                return Err(self.unclear(error));
            }
            self.state().attempted = was_attempted;
            return Err(self.create_error(error, kind));
        }
    }

    async fn by_name(&self) -> Result<Option<Instance>> {
        self.config.account.find(&self.config.name).await
    }

    /// The error for a sandbox of which it is unknown whether it is being created.
    fn unclear(&self, error: Error) -> Error {
        let name = &self.config.name;
        let timeout = CreateTimeout::new(name, None);
        let text = format!(
            "{}; the sandbox {name} may have been created: call again to use it, or delete it",
            error.message()
        );
        Error::new(ErrorKind::Timeout, text).with_source(timeout)
    }

    fn create_error(&self, error: Error, kind: Option<RefusalKind>) -> Error {
        let Some(refusal) = Refusal::of(&error).cloned() else {
            return error;
        };
        let said = Quoted::new(&refusal.message).to_string();
        let (kind, text) = match kind {
            Some(RefusalKind::Invalid) => (
                ErrorKind::Config,
                format!("the sandbox cannot be created: {said}; change its options"),
            ),
            Some(RefusalKind::Missing) => (
                ErrorKind::Config,
                format!(
                    "the sandbox cannot be created: {said}; name a snapshot and a region that exist"
                ),
            ),
            // Something else has changed at the same time.
            Some(RefusalKind::Conflict) => (
                ErrorKind::Unavailable,
                format!("the sandbox cannot be created: {said}; try again"),
            ),
            _ => return error,
        };
        Error::new(kind, text).with_source(refusal)
    }

    /// Deletes a sandbox that never worked.
    async fn discard_if_failed(&self, id: &str) {
        let account = &self.config.account;
        let found = account.find(id).await.ok().flatten();
        let is_failed = |found: &Instance| matches!(found.state, InstanceState::Failed { .. });
        if !found.as_ref().is_some_and(is_failed) {
            return;
        }
        match wait::deleted(account, id, DISCARD_TIMEOUT).await {
            Ok(_) => self.forget_instance(),
            Err(error) => {
                tracing::warn!(sandbox = id, "a sandbox was left behind: {}", error.chain());
            }
        }
    }
}
