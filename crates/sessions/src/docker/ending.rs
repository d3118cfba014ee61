//! Ending a session as idle, so that no process ends what another one begins to use.
//!
//! The process that ends a session gives its container another name first, then reads the
//! time of the last use again, and stops the container only if nothing has changed. A
//! process that uses the session writes the time first, and then looks at the name. So one
//! of the two always sees the other: either the container is not stopped, or its user waits
//! until it is, and wakes it.

use std::time::{Duration, SystemTime};

use backend_core::{ErrorKind, Result};
use backend_docker::ContainerState;
use backend_docker::containers::{self as docker, Container};

use super::{DockerEngine, is_running};
use crate::engine::Engine as _;
use crate::id::SessionId;

/// The pause before a container that is changing is looked at again.
const PAUSE: Duration = Duration::from_millis(50);
/// How often one is looked at that is being removed.
const REMOVED_TIMES: u32 = 40;
/// How often one is looked at that is being ended. A process that takes longer was killed.
const ENDED_TIMES: u32 = 300;

impl DockerEngine {
    /// Finds the container of a session. One that is being removed or ended is waited for,
    /// and one that a killed process was ending gets its name back.
    pub(super) async fn find(&self, id: &SessionId) -> Result<Option<Container>> {
        let names = &self.0.containers.names;
        let (name, ending) = (names.session(id), names.ending(id));
        let mut removed_times = 0;
        for _ in 0..ENDED_TIMES {
            let found = docker::find(&self.0.daemon, &name).await?;
            // While there is such a container, the other name belongs to a claim that
            // gives way.
            if docker::find(&self.0.daemon, &ending).await?.is_none() {
                match found {
                    // It may have got its name back between the two questions.
                    None => return docker::find(&self.0.daemon, &name).await,
                    Some(found) if found.state == ContainerState::Changing => {
                        removed_times += 1;
                        if removed_times == REMOVED_TIMES {
                            return Ok(Some(found));
                        }
                    }
                    Some(found) => return Ok(Some(found)),
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.recover(id).await?;
        docker::find(&self.0.daemon, &name).await
    }

    /// Gives a container its name back that a killed process was ending.
    async fn recover(&self, id: &SessionId) -> Result<()> {
        let names = &self.0.containers.names;
        // In this order: what has the session's name while the other one is still there
        // belongs to a process that was killed before it gave way, and was never used.
        let claimed = docker::find(&self.0.daemon, &names.session(id)).await?;
        let Some(left) = docker::find(&self.0.daemon, &names.ending(id)).await? else {
            return Ok(());
        };
        if let Some(claimed) = claimed
            && claimed.id != left.id
        {
            self.sweep_one(&claimed).await?;
        }
        self.name_again(id, &left.id).await
    }

    /// Writes the time of a use. When it returns, no process is ending the session that did
    /// not see it.
    pub(super) async fn write_use(&self, id: &SessionId, at: SystemTime) -> Result<bool> {
        let known = self.known().get(id).and_then(|known| {
            let sandbox = known.sandbox.as_ref()?;
            Some(sandbox.container().to_owned())
        });
        let names = &self.0.containers.names;
        let container = match known {
            // By its id it is found under any name.
            Some(container) => container,
            None => match self.find(id).await? {
                Some(found) => found.id,
                None => return Ok(false),
            },
        };
        self.0.states.touch(&container, at).await?;
        let found = docker::find(&self.0.daemon, &container).await?;
        let Some(found) = found else {
            return Ok(false);
        };
        let is_ending = found.name == names.ending(id);
        if is_ending {
            self.find(id).await?;
        }
        Ok(!is_ending)
    }

    /// Ends a session that no process has used since `since`.
    pub(super) async fn end_unused(&self, id: &SessionId, since: SystemTime) -> Result<bool> {
        let Some(container) = self.find(id).await? else {
            return Ok(false);
        };
        // One that has ended without files that last is only to be removed.
        let has_ended = !is_running(&container) && self.keeps_files();
        if has_ended || self.is_used(id, &container, since).await? {
            return Ok(false);
        }
        if !self.begin_to_end(id, &container).await? {
            return Ok(false);
        }
        let ended = match self.is_used(id, &container, since).await {
            Ok(true) => Ok(false),
            Ok(false) => self.stop_container(id, &container).await,
            Err(error) => Err(error),
        };
        self.name_again(id, &container.id).await?;
        ended
    }

    /// Purges a session that does not run and that no process has used since `since`.
    pub(super) async fn purge_unused(&self, id: &SessionId, since: SystemTime) -> Result<bool> {
        let Some(container) = self.find(id).await? else {
            return self.purge_files(id).await;
        };
        if is_running(&container) || !self.begin_to_end(id, &container).await? {
            return Ok(false);
        }
        let purged = match docker::find(&self.0.daemon, &container.id).await {
            Ok(Some(found)) if !is_running(&found) => self.purge_locked(id, &found, since).await,
            // Another process has started or removed it.
            Ok(_) => Ok(false),
            Err(error) => Err(error),
        };
        self.name_again(id, &container.id).await?;
        purged
    }

    async fn purge_locked(
        &self,
        id: &SessionId,
        container: &Container,
        since: SystemTime,
    ) -> Result<bool> {
        if self.is_used(id, container, since).await? {
            return Ok(false);
        }
        self.purge_container(id, container).await?;
        Ok(true)
    }

    /// Gives a container the name of one that is being ended. Returns whether this process
    /// is the one that ends it.
    async fn begin_to_end(&self, id: &SessionId, container: &Container) -> Result<bool> {
        let ending = self.0.containers.names.ending(id);
        match docker::rename(&self.0.daemon, &container.id, &ending).await {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
            // Another process ends it, or has removed it.
            Err(_) => Ok(false),
        }
    }

    async fn is_used(
        &self,
        id: &SessionId,
        container: &Container,
        since: SystemTime,
    ) -> Result<bool> {
        let record = self.0.states.read(container, id).await?;
        Ok(record.last_activity > since)
    }

    /// Gives a container its session's name back. One that claims the session at this
    /// moment gives way.
    async fn name_again(&self, id: &SessionId, container: &str) -> Result<()> {
        let name = self.0.containers.names.session(id);
        for _ in 0..REMOVED_TIMES {
            match docker::rename(&self.0.daemon, container, &name).await {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
                // It has its name, another process gave it back, or it was removed.
                _ => return Ok(()),
            }
        }
        docker::rename(&self.0.daemon, container, &name).await
    }
}
