//! Tests what a call would ask, without leaving a trace.

use std::sync::{Arc, Mutex};

use backend_core::Backend;

use super::guard::{Guarded, Shared};
use crate::approval::{ApprovalService, Approver, Grants};

impl<B> Guarded<B> {
    /// Returns a guard that judges like this one, to test what a call would ask.
    /// Questions go to `approver`, and no decision is recorded. Accesses that a grant
    /// covers are not asked about. Without an approver, every access that needs approval
    /// is refused.
    ///
    /// Allowed operations are performed on `backend`, so pass one that changes nothing.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use backend_core::BackendExt as _;
    /// use backend_state::StateBackend;
    /// use permissions::approval::Strict;
    /// use permissions::{Guarded, Policy, Preset};
    ///
    /// let files = StateBackend::new();
    /// let policy = Policy::builder().ruleset(&Preset::Default.ruleset(), &"/".parse()?).build();
    /// let guarded = Guarded::builder(files).policy(policy).build();
    /// let elsewhere = StateBackend::new();
    /// let trial = guarded.dry_run(elsewhere, Some(Arc::new(Strict)));
    /// let refusal = trial.write_file("/a", "b").await.unwrap_err();
    /// assert!(refusal.to_string().contains("Strict mode"), "{refusal}");
    /// # Ok(()) }
    /// ```
    pub fn dry_run<C: Backend>(
        &self,
        backend: C,
        approver: Option<Arc<dyn Approver>>,
    ) -> Guarded<C> {
        let service = approver.map(|approver| match &self.shared.service {
            Some(service) => service.with_approver(approver),
            None => ApprovalService::new(approver, Grants::new()),
        });
        Guarded {
            shared: Arc::new(Shared {
                backend,
                service,
                audit: None,
                session: Arc::clone(&self.shared.session),
                shells: Mutex::new(self.shells().clone()),
            }),
            policy: self.policy.clone(),
            permits: self.permits.clone(),
            tool: self.tool.clone(),
            setting: self.setting,
            words: self.words.clone(),
            args: self.args.clone(),
        }
    }
}
