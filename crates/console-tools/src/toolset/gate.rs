//! [`CallGate`]: the gate between a single call of a tool and the backend.

use std::sync::Arc;

use backend_core::{Backend, Error};
use backend_mounts::Scope;
use permissions::guarded::PlannedAccesses;
use permissions::{Access, Action, Guarded, Question};
use serde_json::Value;

use super::environment::CallEnvironment;
use super::trial::Trial;
use crate::context::{Context, Observer};
use crate::conversation::Conversation;
use crate::options::Options;
use crate::reply::ToolError;

pub(crate) struct CallGate<'c> {
    /// The name of the tool.
    pub(super) tool: &'c Arc<str>,
    pub(super) options: &'c Arc<Options>,
    pub(super) conversation: &'c Arc<Conversation>,
    pub(super) environment: &'c CallEnvironment,
    /// The guard, labelled with the tool's name.
    pub(super) view: Guarded<Arc<dyn Backend>>,
    pub(super) observer: Option<Arc<dyn Observer>>,
    /// Set for a trial run.
    pub(super) trial: Option<Arc<Trial>>,
}

impl CallGate<'_> {
    /// Must be called before code of the host runs, which a trial run must not do.
    pub(super) async fn before_host_code(&self) {
        if let Some(trial) = &self.trial {
            trial.stop::<()>().await;
        }
    }

    /// Creates the context for a tool that asks nothing up front. Its questions show
    /// the arguments, and have this description unless it is empty.
    pub(crate) fn context(&self, description: &str, arguments: &Arc<Value>) -> Context {
        let mut view = self.view.with_args(Arc::clone(arguments));
        if !description.is_empty() {
            view = view.with_description(description);
        }
        self.at(view, self.environment.non_interactive.clone())
    }

    /// Returns the context with the backend without a guard, for the preview of a tool.
    pub(crate) fn unguarded(&self, context: &Context) -> Context {
        let backend = self.view.unguarded();
        Context {
            backend: Arc::clone(backend),
            non_interactive: Arc::clone(backend),
            ..context.clone()
        }
    }

    /// Returns `true` if any access is not plainly allowed for the path as given.
    pub(crate) fn is_in_doubt(&self, accesses: &[Access]) -> bool {
        let policy = self.view.policy();
        let setting = policy.tools().get(self.tool);
        let in_doubt = |access: &Access| {
            access.path().is_none_or(|path| {
                let verdict = policy.judge(access.op, path, access.kind, access.bytes);
                verdict.action() != Action::Allow
            })
        };
        setting.action.is_some_and(|action| action != Action::Allow)
            || accesses.iter().any(in_doubt)
    }

    /// Asks if approval is needed, and returns the context with the permission.
    pub(crate) async fn authorize(
        &self,
        planned: PlannedAccesses<'_, Arc<dyn Backend>>,
        describe: Box<dyn FnOnce(Question) -> Question + Send + '_>,
    ) -> Result<Context, Error> {
        let non_interactive = &self.environment.non_interactive;
        Ok(match planned.authorize(describe).await? {
            Some(permit) => {
                let non_interactive = non_interactive.with_permit(permit.clone());
                self.at(self.view.with_permit(permit), non_interactive)
            }
            None => self.at(self.view.clone(), non_interactive.clone()),
        })
    }

    /// Creates the context for the tool. The kept outputs are layered above the guard,
    /// because they belong to the conversation.
    fn at(
        &self,
        view: Guarded<Arc<dyn Backend>>,
        non_interactive: Guarded<Arc<dyn Backend>>,
    ) -> Context {
        let scope = view.policy().layer::<Scope>().cloned();
        let over = |view: Guarded<Arc<dyn Backend>>| {
            Arc::new(self.conversation.with_outputs(Arc::new(view)))
        };
        Context {
            scope,
            backend: over(view),
            non_interactive: over(non_interactive),
            options: Arc::clone(self.options),
            conversation: Arc::clone(self.conversation),
            observer: self.observer.clone(),
            locked_path: None,
            host_names: self.environment.host_names.clone(),
        }
    }

    /// Converts a refusal for the model, for a tool without its own wording.
    pub(crate) fn failed(&self, error: Error) -> ToolError {
        ToolError::for_profile(self.options.profile, self.tool, error)
    }
}
