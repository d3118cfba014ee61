//! Claiming a session: of several processes, the one whose container gets its name.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use backend_core::{Error, ErrorKind, Result};
use backend_docker::{DockerSandbox, containers as docker};
use sandbox_runtime::Runtime;

use super::containers::{Spare, blocking, remove};
use super::state::Kept;
use super::{DockerEngine, is_running};
use crate::engine::Claim;
use crate::error::other_tenant;
use crate::id::SessionId;
use crate::layout::in_use;
use crate::record::Record;
use crate::request::{OpenRequest, fingerprint};

/// How a container became that of a session.
enum Named {
    /// It has the session's name.
    Ours,
    /// Another container has it.
    Taken,
    /// It has the session's name, which another container will have again in a moment. It
    /// may have been seen with that name, so no other session gets it.
    TooEarly,
}

impl DockerEngine {
    pub(super) async fn claim_session(&self, request: &OpenRequest) -> Result<Claim> {
        let runtime = request.runtime_or(self.0.runtime.as_ref())?;
        let record = Record {
            runtime: Some(fingerprint(&runtime)),
            ..Record::new(request, SystemTime::now())
        };
        let mut session = Kept {
            record,
            env: request.env.clone(),
        };
        let name = self.0.containers.names.session(&request.id);
        if docker::find(&self.0.daemon, &name).await?.is_some() {
            return Ok(Claim::Taken);
        }
        // Only now: a session that exists can be opened, whatever the quota says.
        let stored = self.check_files(&mut session.record).await?;
        if !stored && let Some(claim) = self.claim_spare(&runtime, &session).await? {
            return Ok(claim);
        }
        self.claim_cold(request, &runtime, &session).await
    }

    /// Refuses a root that holds the sessions of another engine.
    pub(super) async fn check_root(&self) -> Result<()> {
        let Some(files) = self.0.files.clone() else {
            return Ok(());
        };
        blocking(move || files.check_engine()).await
    }

    /// Checks the id, the quota, and the tenant of stored files, which is that of the session.
    /// Returns whether it has stored files.
    async fn check_files(&self, record: &mut Record) -> Result<bool> {
        let Some(files) = self.0.files.clone() else {
            return Ok(false);
        };
        let (id, asked) = (record.id.clone(), record.tenant.clone());
        let (stored, tenant) = blocking(move || {
            files.check_name(&id)?;
            files.check_free(&id)?;
            files.check_quota()?;
            let tenant = files.tenant(&id)?;
            if asked.is_some() && tenant.is_some() && asked != tenant {
                return Err(other_tenant(&id));
            }
            // Last: a claim that is refused leaves nothing.
            files.mark_engine()?;
            Ok((files.is_stored(&id), asked.or(tenant)))
        })
        .await?;
        record.tenant = tenant;
        Ok(stored)
    }

    /// Writes another tenant for a session that does not run: into the record of its
    /// container, and beside its files. Returns `false` if it has neither.
    pub(super) async fn change_tenant(&self, id: &SessionId, tenant: &str) -> Result<bool> {
        let container = self.find(id).await?;
        if let Some(container) = &container {
            if is_running(container) {
                return Err(in_use(id));
            }
            let mut session = self.0.states.read_all(container, id).await?;
            session.record.tenant = Some(tenant.into());
            self.0.states.write(&container.id, &session).await?;
        }
        let (has_container, id) = (container.is_some(), id.clone());
        let (Some(files), tenant) = (self.0.files.clone(), tenant.to_owned()) else {
            return Ok(has_container);
        };
        blocking(move || {
            let has_files = files.is_session(&id) || (has_container && files.is_prepared(&id));
            if has_files {
                files.set_tenant(&id, &tenant)?;
            }
            Ok(has_files || has_container)
        })
        .await
    }

    /// Writes whose the files of a session are that has its container.
    async fn keep_tenant(&self, record: &Record) {
        let (Some(files), Some(tenant)) = (self.0.files.clone(), record.tenant.clone()) else {
            return;
        };
        let id = record.id.clone();
        if let Err(error) = blocking(move || files.set_tenant(&id, &tenant)).await {
            tracing::warn!(session = %record.id, "the tenant was not written: {}", error.chain());
        }
    }

    /// Claims the session with a container that is ready. `None` if there is none, or if
    /// it is of no use.
    async fn claim_spare(&self, runtime: &Runtime, session: &Kept) -> Result<Option<Claim>> {
        let Some(pool) = self.0.pools.get(&fingerprint(runtime)) else {
            return Ok(None);
        };
        let Some(spare) = pool.take() else {
            return Ok(None);
        };
        match self.name(&spare.sandbox, session).await {
            Ok(Named::Ours) => self.adopt(spare, &session.record).await.map(Some),
            Ok(Named::Taken) if session.env.is_empty() => {
                pool.give_back(spare).await;
                Ok(Some(Claim::Taken))
            }
            // It holds the variables of another session, or may have been seen.
            Ok(Named::Taken | Named::TooEarly) => {
                pool.discard(spare).await;
                Ok(Some(Claim::Taken))
            }
            Err(error) => {
                tracing::warn!("a spare container was of no use: {}", error.chain());
                pool.discard(spare).await;
                Ok(None)
            }
        }
    }

    /// Gives the directory of a container that has the session's name to the session.
    async fn adopt(&self, spare: Spare, record: &Record) -> Result<Claim> {
        let id = &record.id;
        if let Some(files) = self.0.files.clone() {
            let (key, id) = (spare.key.clone(), id.clone());
            if let Err(error) = blocking(move || files.adopt(&key, &id)).await {
                remove(&spare.sandbox).await;
                self.remove_link(Some(&spare.key)).await;
                return Err(error);
            }
        }
        self.keep_tenant(record).await;
        Ok(self.created(id, spare.sandbox))
    }

    async fn claim_cold(
        &self,
        request: &OpenRequest,
        runtime: &Runtime,
        session: &Kept,
    ) -> Result<Claim> {
        let id = &request.id;
        self.0.containers.image(runtime, request).await?;
        let workspace = self.prepare(id).await?;
        let claimed = self.create_named(runtime, session, workspace.as_deref());
        let error = match claimed.await {
            Ok(Some(sandbox)) => {
                self.keep_tenant(&session.record).await;
                return Ok(self.created(id, sandbox));
            }
            Ok(None) => return Ok(Claim::Taken),
            Err(error) => error,
        };
        // The process that won a race may have replaced the directory.
        let name = self.0.containers.names.session(id);
        match docker::find(&self.0.daemon, &name).await? {
            Some(_) => Ok(Claim::Taken),
            None => Err(error),
        }
    }

    async fn prepare(&self, id: &SessionId) -> Result<Option<PathBuf>> {
        let Some(files) = self.0.files.clone() else {
            return Ok(None);
        };
        let id = id.clone();
        blocking(move || files.prepare(&id)).await.map(Some)
    }

    /// Creates a container and gives it the session's name. `None` if another one has it.
    async fn create_named(
        &self,
        runtime: &Runtime,
        session: &Kept,
        workspace: Option<&Path>,
    ) -> Result<Option<DockerSandbox>> {
        let created = self.0.containers.create(runtime, workspace, None);
        let sandbox = created.await?;
        let named = match self.name(&sandbox, session).await {
            Ok(Named::Ours) => self.check_kept(&session.record.id).await.map(|()| true),
            Ok(Named::Taken | Named::TooEarly) => Ok(false),
            Err(error) => Err(error),
        };
        match named {
            Ok(true) => Ok(Some(sandbox)),
            Ok(false) => {
                remove(&sandbox).await;
                Ok(None)
            }
            Err(error) => {
                remove(&sandbox).await;
                Err(error)
            }
        }
    }

    /// Makes a container that of a session: first its record, then its name. So a
    /// container with a session's name is complete, whenever this process is killed.
    async fn name(&self, sandbox: &DockerSandbox, session: &Kept) -> Result<Named> {
        let container = sandbox.container();
        let written = self.0.states.write(container, session).await;
        written.map_err(lost)?;
        let id = &session.record.id;
        let name = self.0.containers.names.session(id);
        match docker::rename(&self.0.daemon, container, &name).await {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(Named::Taken),
            Err(error) => return Err(lost(error)),
        }
        // The session may have a container that is being ended, and does not have its own
        // name for a moment.
        let names = &self.0.containers.names;
        let ending = names.ending(id);
        match docker::find(&self.0.daemon, &ending).await? {
            None => Ok(Named::Ours),
            Some(_) => Ok(Named::TooEarly),
        }
    }

    /// Makes sure that no other process deleted the session's directory before the
    /// container had its name. From then on, none does.
    async fn check_kept(&self, id: &SessionId) -> Result<()> {
        let Some(files) = self.0.files.clone() else {
            return Ok(());
        };
        let session = id.clone();
        let kept = blocking(move || Ok(files.is_prepared(&session))).await?;
        if kept {
            return Ok(());
        }
        Err(Error::unavailable("the session was purged meanwhile; open it again").about(id))
    }

    fn created(&self, id: &SessionId, sandbox: DockerSandbox) -> Claim {
        self.remember(id, sandbox.clone());
        Claim::Created(Arc::new(sandbox))
    }
}

/// The error for a container that was removed from outside while it was given its name.
fn lost(error: Error) -> Error {
    if error.kind() != ErrorKind::NotFound {
        return error;
    }
    Error::unavailable("its container was removed while the session was opened; open it again")
        .with_source(error)
}
