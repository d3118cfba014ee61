//! [`Door`]: what stands between one call of a tool and the backend.

use std::sync::Arc;

use backend_core::{Backend, Error};
use permissions::guarded::Considered;
use permissions::{Access, Action, Guarded, Question};
use serde_json::Value;

use super::chat::Chat;
use super::entry::Entry;
use super::ground::Ground;
use super::preview::Trial;
use crate::host_names::HostNames;
use crate::{Context, Observer, ToolError};

/// What stands between one call of a tool and the backend.
pub(crate) struct Door<'c> {
    pub(crate) entry: &'c Entry,
    chat: &'c Chat,
    /// The guard, in the name of the tool.
    view: Guarded<Arc<dyn Backend>>,
    /// The guard that asks nobody.
    quiet: Guarded<Arc<dyn Backend>>,
    observer: Option<Arc<dyn Observer>>,
    host_names: HostNames,
    /// Set if the call is only tried.
    trial: Option<Arc<Trial>>,
}

impl<'c> Door<'c> {
    pub(crate) fn new(
        chat: &'c Chat,
        ground: &Ground,
        entry: &'c Entry,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        Self {
            observer,
            entry,
            chat,
            view: ground.guard.with_tool(Arc::clone(&entry.name)),
            quiet: ground.quiet.clone(),
            host_names: ground.host_names.clone(),
            trial: None,
        }
    }

    /// The same for a call that is only tried.
    pub(super) fn tried(mut self, trial: Arc<Trial>) -> Self {
        self.trial = Some(trial);
        self
    }

    /// Called before code of the host runs, which no trial may do.
    pub(super) async fn runs(&self) {
        if let Some(trial) = &self.trial {
            trial.reached::<()>().await;
        }
    }

    /// What the tool works with if nothing is asked beforehand. Questions show the
    /// arguments, and are in these words, if there are any.
    pub(crate) fn context(&self, words: &str, arguments: &Arc<Value>) -> Context {
        let mut view = self.view.with_args(Arc::clone(arguments));
        if !words.is_empty() {
            view = view.with_words(words);
        }
        self.at(view, self.quiet.clone())
    }

    /// The backend without a guard, for what only the one who is asked sees.
    pub(crate) fn unguarded(&self) -> Arc<dyn Backend> {
        Arc::clone(self.view.unguarded())
    }

    /// Whether any of it is not simply allowed, as far as the paths as given tell.
    pub(crate) fn is_in_doubt(&self, accesses: &[Access]) -> bool {
        let policy = self.view.policy();
        let setting = policy.tools().get(&self.entry.name);
        let in_doubt = |access: &Access| match access.path() {
            Some(path) => {
                let verdict = policy.judge(access.op, path, access.kind, access.bytes);
                verdict.action() != Action::Allow
            }
            None => true,
        };
        setting.action.is_some_and(|action| action != Action::Allow)
            || accesses.iter().any(in_doubt)
    }

    /// Judges what the tool is going to do.
    pub(crate) async fn consider(
        &self,
        accesses: Vec<Access>,
    ) -> Result<Considered<'_, Arc<dyn Backend>>, Error> {
        self.view.consider(accesses).await
    }

    /// Asks, if something must be asked, and opens.
    pub(crate) async fn authorize(
        &self,
        considered: Considered<'_, Arc<dyn Backend>>,
        words: impl FnOnce(Question) -> Question,
    ) -> Result<Context, Error> {
        Ok(match considered.authorize(words).await? {
            Some(permit) => {
                let quiet = self.quiet.with_permit(permit.clone());
                self.at(self.view.with_permit(permit), quiet)
            }
            None => self.at(self.view.clone(), self.quiet.clone()),
        })
    }

    fn at(&self, view: Guarded<Arc<dyn Backend>>, quiet: Guarded<Arc<dyn Backend>>) -> Context {
        let mut context = self.chat.context(view, quiet);
        context.host_names = self.host_names.clone();
        context.observer(self.observer.clone())
    }

    /// What the model is told of a refusal, if the tool has no words of its own.
    pub(crate) fn failed(&self, error: Error) -> ToolError {
        ToolError::in_words_of(self.chat.options().profile, &self.entry.name, error)
    }
}
