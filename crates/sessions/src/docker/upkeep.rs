//! Work that is due from time to time: removing remains of killed processes, and sessions
//! that were stored for long enough.

use std::collections::BTreeSet;
use std::time::SystemTime;

use backend_core::ops::StopMode;
use backend_core::{Result, Sandbox as _};
use backend_docker::containers::{self as docker, Container};

use super::containers::blocking;
use super::{DockerEngine, names};
use crate::engine::Engine as _;
use crate::record::RecordState;

impl DockerEngine {
    /// Removes the containers that killed processes created for no session, and what is
    /// left of their directories.
    pub(super) async fn sweep(&self, now: SystemTime) -> Result<()> {
        let names = &self.0.containers.names;
        let all = docker::list(&self.0.daemon, names::SPACE, names.space()).await?;
        let mut used = BTreeSet::new();
        for container in all {
            let spare = names.spare_of(&container.name);
            if spare.is_some() && container.abandoned {
                if let Err(error) = self.sweep_one(&container).await {
                    tracing::warn!("a container was left behind: {}", error.chain());
                    used.extend(container.labels.get(names::SPARE).cloned());
                    used.insert(container.id);
                }
            } else {
                if let Some(id) = names.session_of(&container.name)
                    && container.name == names.ending(&id)
                    // A process that was ending it may have been killed.
                    && let Err(error) = self.find(&id).await
                {
                    tracing::warn!(session = %id, "a session has not ended: {}", error.chain());
                }
                used.extend(container.labels.get(names::SPARE).cloned());
                used.insert(container.id);
            }
        }
        let Some(files) = self.0.files.clone() else {
            return Ok(());
        };
        blocking(move || files.sweep(now, |key| used.contains(key))).await
    }

    /// Removes a container that no session uses, and its directory.
    pub(super) async fn sweep_one(&self, container: &Container) -> Result<()> {
        let template = self.0.containers.template.clone();
        let attach = template
            .daemon(self.0.daemon.clone())
            .attach(&*container.id);
        match attach.open().await {
            Ok(sandbox) => sandbox.stop(StopMode::Purge).await?,
            // Another process was faster, or it only has the labels of a session.
            Err(error) => {
                tracing::debug!("a container was not removed: {}", error.chain());
                return Ok(());
            }
        }
        let key = container.labels.get(names::SPARE);
        self.remove_link(key.map(String::as_str)).await;
        self.remove_record(&container.id).await
    }

    /// Purges the sessions that do not run and were not used for long enough.
    pub(super) async fn expire(&self, now: SystemTime) -> Result<()> {
        let files = self.0.files.as_ref();
        let Some(keep_for) = files.and_then(|files| files.keep_for) else {
            return Ok(());
        };
        for record in self.list().await? {
            let unused = now.duration_since(record.last_activity);
            if record.state != RecordState::Running && unused.is_ok_and(|time| time > keep_for) {
                let purged = self.purge_unused(&record.id, record.last_activity).await;
                if let Err(error) = purged {
                    // Its commands can make files that this process may not delete.
                    tracing::warn!(session = %record.id, error = %error.chain(), "a session past its time was not purged");
                }
            }
        }
        Ok(())
    }
}
