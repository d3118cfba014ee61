//! Claiming a session: of several processes, the one whose sandbox gets its name.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use backend_core::{ErrorKind, Result, Sandbox as _};
use backend_daytona::instances::{self, Instance};
use backend_daytona::{DaytonaSandbox, InstanceState};
use sandbox_runtime::Runtime;

use super::DaytonaEngine;
use crate::engine::Claim;
use crate::id::SessionId;
use crate::names::SPACE;
use crate::notes;
use crate::record::Record;
use crate::request::{OpenRequest, fingerprint};

impl DaytonaEngine {
    pub(super) async fn claim_session(&self, request: &OpenRequest) -> Result<Claim> {
        let id = &request.id;
        // Only to save work: the service limits how many are created in a minute.
        if self.find(id).await?.is_some() {
            return Ok(Claim::Taken);
        }
        let runtime = request.runtime.as_ref().or(self.0.runtime.as_ref());
        let record = Record {
            runtime: runtime.map(fingerprint),
            ..Record::new(request, SystemTime::now())
        };
        let sandbox = match self.create(runtime, &record).await {
            Ok(sandbox) => sandbox,
            Err(error) if error.kind() == ErrorKind::Conflict => return Ok(Claim::Taken),
            Err(error) => {
                self.remove_failed(id).await;
                return Err(error);
            }
        };
        let name = || sandbox.name().to_owned();
        let instance = sandbox.instance_id().unwrap_or_else(name);
        if let Err(error) = self.complete(&instance, &sandbox, request).await {
            self.remove(id, &instance).await;
            return Err(error);
        }
        self.remember(id, instance, sandbox.clone());
        if let Some(known) = self.known().get_mut(id) {
            known.written = Some((record.last_activity, Instant::now()));
        }
        Ok(Claim::Created(Arc::new(sandbox)))
    }

    /// Creates the sandbox of a session. It is a `Conflict` if another one has its name.
    async fn create(&self, runtime: Option<&Runtime>, record: &Record) -> Result<DaytonaSandbox> {
        let names = &self.0.names;
        // A session may be idle for longer than usual.
        let idle = record.idle_timeout.unwrap_or_default();
        let mut builder = self
            .0
            .template
            .clone()
            .account(self.0.account.clone())
            .name(names.session(&record.id))
            .auto_stop(Some(self.0.auto_stop.max(idle.saturating_mul(2))))
            .auto_delete(self.0.keep_for)
            .label(SPACE, names.space());
        for (key, value) in notes::of(record)? {
            builder = builder.label(key, value);
        }
        if let Some(runtime) = runtime {
            builder = builder.runtime(runtime.clone());
        }
        builder.create().await
    }

    /// Deletes the sandbox of a claim if it could not be created, so that the next one begins
    /// anew. One that only takes long stays, and is waited for then.
    async fn remove_failed(&self, id: &SessionId) {
        let has_failed = |found: &Instance| matches!(found.state, InstanceState::Failed { .. });
        if let Ok(Some(found)) = self.find(id).await
            && has_failed(&found)
        {
            self.remove(id, &found.id).await;
        }
    }

    /// Deletes a sandbox that was never used.
    async fn remove(&self, id: &SessionId, instance: &str) {
        if let Err(error) = instances::delete(&self.0.account, instance).await {
            tracing::warn!(session = %id, "a sandbox was left behind: {}", error.chain());
        }
    }

    /// Gives a session that has its sandbox the variables of its commands.
    async fn complete(
        &self,
        instance: &str,
        sandbox: &DaytonaSandbox,
        request: &OpenRequest,
    ) -> Result<()> {
        if request.env.is_empty() {
            return Ok(());
        }
        sandbox.start().await?;
        self.keep_env(instance, &request.env).await
    }
}
