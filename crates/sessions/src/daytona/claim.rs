//! Claiming a session: of several processes, the one whose sandbox gets its name.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use backend_core::{ErrorKind, Result};
use backend_daytona::{DaytonaSandbox, instances};
use sandbox_runtime::Runtime;

use super::DaytonaEngine;
use crate::engine::Claim;
use crate::names::SPACE;
use crate::notes;
use crate::record::Record;
use crate::request::{OpenRequest, fingerprint};

/// The longest time after which the service stops a session: a year.
const LONGEST_AUTO_STOP: Duration = Duration::from_secs(365 * 24 * 3600);

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
            Err(error) if error.kind() == ErrorKind::Conflict => return Ok(Claim::Taken),
            // One that failed is deleted; one that only takes long is waited for next time.
            created => created?,
        };
        let name = || sandbox.name().to_owned();
        let instance = sandbox.instance_id().unwrap_or_else(name);
        if let Err(error) = self.keep_env_of(request, &instance).await {
            if let Err(error) = instances::delete(&self.0.account, &instance).await {
                tracing::warn!(session = %id, "a sandbox was left behind: {}", error.chain());
            }
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
        let idle = record.idle_timeout.unwrap_or_default().saturating_mul(2);
        let auto_stop = self.0.auto_stop.max(idle).min(LONGEST_AUTO_STOP);
        let mut builder = self
            .0
            .template
            .clone()
            .account(self.0.account.clone())
            .name(names.session(&record.id))
            .auto_stop(auto_stop)
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

    /// Keeps the variables of a session that has its sandbox.
    async fn keep_env_of(&self, request: &OpenRequest, instance: &str) -> Result<()> {
        if request.env.is_empty() {
            return Ok(());
        }
        self.keep_env(instance, &request.env).await
    }
}
