//! [`Presence`]: a lease that shows that this process lives.
//!
//! Pods that wait for a session belong to the process that is connected to them. When its
//! lease is no longer renewed, any other process deletes them.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use backend_core::{ErrorKind, Result};
use backend_k8s::Cluster;
use backend_k8s::pods::Version;
use backend_k8s::pods::objects::{self, Draft, Kind, Object};
use serde_json::json;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::annotations::{self, ACTIVE};
use super::names::{self, Names};
use crate::time::elapsed;

/// The time between two signs of life.
const RENEW_INTERVAL: Duration = Duration::from_secs(15);
/// The time without one after which a process is taken for dead.
const EXPIRES_AFTER: Duration = Duration::from_secs(60);

/// The sign of life of one process.
#[derive(Debug)]
pub(super) struct Presence {
    cluster: Cluster,
    names: Names,
    key: String,
    /// The task that renews the lease, once there is one.
    renewing: Mutex<Option<JoinHandle<()>>>,
}

impl Presence {
    pub(super) fn new(cluster: Cluster, names: Names) -> Arc<Self> {
        Arc::new(Self {
            cluster,
            names,
            key: names::new_key(),
            renewing: Mutex::new(None),
        })
    }

    /// A text that no other process has.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Makes sure that other processes see this one.
    pub(super) async fn announce(self: &Arc<Self>) -> Result<()> {
        let mut renewing = self.renewing.lock().await;
        if renewing.as_ref().is_some_and(|task| !task.is_finished()) {
            return Ok(());
        }
        self.renew().await?;
        *renewing = Some(tokio::spawn(renew_forever(Arc::downgrade(self))));
        Ok(())
    }

    async fn renew(&self) -> Result<()> {
        let (cluster, kind, name) = (&self.cluster, Kind::lease(), names::process(&self.key));
        let now = annotations::millis(SystemTime::now());
        if let Some(lease) = objects::find(cluster, &kind, &name).await? {
            let change = json!({"metadata": {"annotations": {(ACTIVE): now}}});
            return objects::patch(cluster, &kind, &lease, change)
                .await
                .map(drop);
        }
        let draft = Draft::new(name, json!({"spec": {"holderIdentity": self.key}}))
            .label(names::SPACE, self.names.space())
            .label(names::PROCESS, self.key.clone())
            .annotation(ACTIVE, now);
        objects::create(cluster, &kind, draft).await.map(drop)
    }

    /// Ends the sign of life.
    pub(super) async fn end(&self) -> Result<()> {
        let Some(task) = self.renewing.lock().await.take() else {
            return Ok(());
        };
        task.abort();
        let (kind, name) = (Kind::lease(), names::process(&self.key));
        match objects::find(&self.cluster, &kind, &name).await? {
            Some(lease) => objects::delete(&self.cluster, &kind, &lease, Version::Any)
                .await
                .map(drop),
            None => Ok(()),
        }
    }
}

async fn renew_forever(presence: Weak<Presence>) {
    loop {
        tokio::time::sleep(RENEW_INTERVAL).await;
        let Some(presence) = presence.upgrade() else {
            return;
        };
        match presence.renew().await {
            // Another process has taken this one for dead, or the next try succeeds.
            Err(error) if error.kind() != ErrorKind::Conflict => {
                tracing::warn!("a sign of life was not written: {}", error.chain());
            }
            _ => {}
        }
    }
}

/// Whether the process of a lease gave no sign of life for too long. Clocks of hosts must not
/// differ by more than half a minute.
pub(super) fn is_dead(lease: &Object, now: SystemTime) -> bool {
    let seen = annotations::active(&lease.annotations).unwrap_or(lease.created);
    elapsed(seen, now) > EXPIRES_AFTER
}
