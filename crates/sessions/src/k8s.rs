//! [`K8sEngine`]: sessions in pods, found again by any process.
//!
//! A session is a lease of its name on a pod, and names are unique: to create it is the lock
//! between processes. The record is in annotations, and every change of them is for the version that
//! was read. So a process that is killed leaves nothing that another one cannot use or delete.

mod agent_sandbox;
mod annotations;
mod builder;
mod claim;
mod create;
mod ending;
mod env;
mod find;
mod names;
mod presence;
mod rights;
mod upkeep;
mod view;
mod volumes;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_core::{Error, Result};
use backend_k8s::pods::objects::Object;
use backend_k8s::pods::{self, Pod, PodPhase};
use backend_k8s::{Cluster, K8sSandbox, Stats};
use sandbox_runtime::Runtime;

use crate::engine::{Attached, Claim, Engine};
use crate::id::SessionId;
use crate::pool::Pool;
use crate::record::{Record, Usage};
use crate::request::{OpenRequest, fingerprint};

pub use agent_sandbox::{AgentSandboxEngine, AgentSandboxEngineBuilder};
pub use builder::K8sEngineBuilder;
use create::{Pods, Spares};
use env::Env;
use presence::Presence;
use view::View;

/// How often a change is tried that others got ahead of.
const TRIES: u32 = 20;

/// Sessions in pods of a Kubernetes namespace. Clones share everything.
///
/// Any number of processes, on any hosts, can use the sessions of one
/// [space](K8sEngineBuilder::space) at once. If two open one id at the same moment, one pod
/// remains, and both use it.
///
/// A session that is stopped has no pod. With [volumes](K8sEngineBuilder::volumes) its files are
/// kept, and the next call starts another pod on them; without, they end with the pod.
///
/// All hosts must have about the same time: sessions are ended by the time of their last use.
#[derive(Debug, Clone)]
pub struct K8sEngine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    runtime: Option<Runtime>,
    pods: Arc<Pods>,
    keep_for: Option<Duration>,
    presence: Arc<Presence>,
    view: View,
    /// Pods that are ready, by the fingerprint of their runtime.
    pools: BTreeMap<String, Pool<Spares>>,
    known: Mutex<HashMap<SessionId, Known>>,
}

/// A session that this process uses.
#[derive(Debug)]
struct Known {
    /// Its pod, as it was when this process changed it last.
    pod: Pod,
    /// The sandbox that was handed out: its agent stays connected.
    sandbox: K8sSandbox,
}

impl K8sEngine {
    /// Returns a builder for sessions in the namespace of a cluster.
    ///
    /// ```no_run
    /// # async fn example() -> backend_core::Result<()> {
    /// use backend_k8s::{Cluster, K8sSandbox, Runtime};
    /// use sessions::K8sEngine;
    ///
    /// let python = Runtime::from_image("python", "python:3.12-slim");
    /// let engine = K8sEngine::builder(Cluster::from_env().await?)
    ///     .space("chat")
    ///     .runtime(python.clone())
    ///     .template(K8sSandbox::builder().memory(512 * 1024 * 1024))
    ///     .volumes(1024 * 1024 * 1024)
    ///     .pool(python, 4)
    ///     .build()?;
    /// engine.warm().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(cluster: Cluster) -> K8sEngineBuilder {
        K8sEngineBuilder::new(cluster)
    }

    /// Fills the pools, and returns when they are full. Otherwise the first claim begins to
    /// fill them in the background.
    ///
    /// # Errors
    ///
    /// Any of creating a pod.
    pub async fn warm(&self) -> Result<()> {
        self.0.view.begin();
        for pool in self.0.pools.values() {
            pool.fill().await?;
        }
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, Known>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, id: &SessionId, pod: Pod, sandbox: K8sSandbox) {
        let former = self.known().insert(id.clone(), Known { pod, sandbox });
        // After the lock is released: it may have a connection to close.
        drop(former);
    }

    fn forget(&self, id: &SessionId) {
        let known = self.known().remove(id);
        drop(known);
    }

    /// Returns the pod of a session that this process uses, as it was seen last.
    fn known_pod(&self, id: &SessionId) -> Option<Pod> {
        let pod = self.known().get(id)?.pod.clone();
        Some(self.0.view.get(&pod.uid).unwrap_or(pod))
    }

    /// Takes over a newer version of a session's pod.
    fn update(&self, id: &SessionId, pod: Pod) {
        if let Some(known) = self.known().get_mut(id)
            && known.pod.uid == pod.uid
        {
            known.pod = pod;
        }
    }

    /// Reads the pods of the space.
    async fn read_pods(&self) -> Result<Vec<Arc<Pod>>> {
        let pods = &self.0.pods;
        let all = pods::list(&pods.cluster, &pods.names.all()).await?;
        Ok(all.into_iter().map(Arc::new).collect())
    }

    /// Returns the pods of the space as they were reported last, or reads them if nothing
    /// reports them.
    async fn recent_pods(&self) -> Result<Vec<Arc<Pod>>> {
        self.0.view.begin();
        self.0.view.reported().await;
        match self.0.view.all() {
            Some(all) => Ok(all),
            None => self.read_pods().await,
        }
    }

    /// Returns the sandbox on a pod: the one that was handed out before, if it is the same pod.
    async fn sandbox(&self, id: &SessionId, pod: &Pod) -> Result<K8sSandbox> {
        let known = self.known().get(id).and_then(|known| {
            let is_same = known.pod.uid == pod.uid;
            is_same.then(|| known.sandbox.clone())
        });
        if let Some(known) = known {
            return Ok(known);
        }
        let template = self.0.pods.template.clone();
        let attach = template
            .cluster(self.0.pods.cluster.clone())
            .attach(&*pod.name)
            .uid(&*pod.uid);
        let sandbox = attach.open().await?;
        self.remember(id, pod.clone(), sandbox.clone());
        Ok(sandbox)
    }
}

/// Returns what a sandbox uses. If it ends at this moment, that is not known, which is no
/// failure.
fn usage(stats: Result<Stats>) -> Usage {
    let mut usage = Usage::default();
    if let Ok(stats) = stats {
        usage.memory_bytes = Some(stats.memory);
        usage.cpu = stats.cpu_percent.map(|percent| percent / 100.0);
    }
    usage
}

/// Returns the records of all sessions: those with a pod, and those with stored files only.
fn records(pods: &[Arc<Pod>], volumes: &[Object]) -> Vec<Record> {
    let mut found: BTreeMap<SessionId, Record> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !pod.deleting) {
        let Some(id) = annotations::session(&pod.annotations) else {
            continue;
        };
        let record = find::record(pod, &id);
        let other = found.get(&id).map(|other| other.last_activity);
        // One that lost the session is there for a moment.
        if other.is_none_or(|other| other < record.last_activity) {
            found.insert(id, record);
        }
    }
    for volume in volumes {
        if let Some(id) = annotations::session(&volume.annotations) {
            let record = volumes::stored(volume, &id);
            found.entry(id).or_insert(record);
        }
    }
    found.into_values().collect()
}

/// Whether a pod has come to its end: nothing starts it again.
fn has_ended(pod: &Pod) -> bool {
    matches!(pod.phase, PodPhase::Succeeded | PodPhase::Failed)
}

impl K8sEngineBuilder {
    /// Checks the options. Nothing is created yet.
    ///
    /// # Errors
    ///
    /// `Config` for an invalid option.
    pub fn build(self) -> Result<K8sEngine> {
        let (names, volumes) = self.check()?;
        let pods = Arc::new(Pods {
            cluster: self.cluster.clone(),
            template: self.template,
            names: names.clone(),
            grace: self.grace,
            volumes,
        });
        let view = View::new(self.cluster.clone(), names.space().to_owned());
        let presence = Presence::new(self.cluster, names);
        let pool = |(runtime, size): (Runtime, usize)| {
            let key = fingerprint(&runtime);
            let spares = Spares {
                pods: Arc::clone(&pods),
                presence: Arc::clone(&presence),
                runtime,
            };
            (key, Pool::new(spares, size))
        };
        let pools = self.pools.into_iter().map(pool).collect();
        Ok(K8sEngine(Arc::new(Inner {
            runtime: self.runtime,
            pods,
            keep_for: self.keep_for,
            presence,
            view,
            pools,
            known: Mutex::default(),
        })))
    }
}

#[async_trait]
impl Engine for K8sEngine {
    fn keeps_files(&self) -> bool {
        self.0.pods.volumes.is_some()
    }

    async fn claim(&self, request: &OpenRequest) -> Result<Claim> {
        self.claim_session(request).await
    }

    async fn attach(&self, id: &SessionId) -> Result<Option<Attached>> {
        self.0.view.begin();
        let Some(held) = self.find_leased(id).await? else {
            self.forget(id);
            return Ok(None);
        };
        let record = held.record(id);
        self.heal(&held.pod, &record).await?;
        let env = self.env_of(&held.pod).await?;
        let sandbox = Error::none_if_missing(self.sandbox(id, &held.pod).await)?;
        Ok(sandbox
            .map(|sandbox: K8sSandbox| Attached::new(Arc::new(sandbox), record).with_env(env)))
    }

    async fn list(&self) -> Result<Vec<Record>> {
        let (pods, volumes) = tokio::try_join!(self.read_pods(), self.stored(None))?;
        Ok(records(&pods, &volumes))
    }

    async fn list_recent(&self) -> Result<Vec<Record>> {
        let (pods, volumes) = tokio::try_join!(self.recent_pods(), self.stored(None))?;
        Ok(records(&pods, &volumes))
    }

    async fn record(&self, id: &SessionId) -> Result<Option<Record>> {
        if let Some(held) = self.find(id).await? {
            return Ok(Some(held.record(id)));
        }
        let volumes = self.stored(Some(id)).await?;
        Ok(volumes.first().map(|volume| volumes::stored(volume, id)))
    }

    async fn touch(&self, id: &SessionId, at: SystemTime) -> Result<bool> {
        self.write_use(id, at).await
    }

    async fn set_env(&self, id: &SessionId, env: &Env) -> Result<()> {
        let Some(held) = self.find(id).await? else {
            return Ok(());
        };
        self.keep_env(&held.pod, env).await?;
        let marked = |annotations: &annotations::Annotations| {
            let is_new = !annotations.contains_key(annotations::ENV);
            let change = || (annotations::ENV.to_owned(), Some("true".to_owned()));
            is_new.then(|| find::Changes::from([change()]))
        };
        // If it has ended meanwhile, it has no variables.
        if let Some(pod) = self.note(&held.pod, marked).await? {
            self.update(id, pod);
        }
        Ok(())
    }

    async fn stop(&self, id: &SessionId) -> Result<bool> {
        match self.find(id).await? {
            Some(held) => self.end(id, &held).await,
            None => {
                self.forget(id);
                Ok(false)
            }
        }
    }

    async fn stop_if_unused_since(&self, id: &SessionId, since: SystemTime) -> Result<bool> {
        self.end_unused(id, since).await
    }

    async fn purge(&self, id: &SessionId) -> Result<bool> {
        self.purge_session(id).await
    }

    async fn usage(&self, id: &SessionId) -> Result<Option<Usage>> {
        let Some(held) = self.find(id).await? else {
            let volumes = self.stored(Some(id)).await?;
            return Ok(volumes.first().map(|_| Usage::default()));
        };
        let stats = match self.sandbox(id, &held.pod).await {
            Ok(sandbox) => sandbox.stats().await,
            Err(error) => Err(error),
        };
        Ok(Some(usage(stats)))
    }

    async fn maintain(&self, now: SystemTime) -> Result<()> {
        for pool in self.0.pools.values() {
            pool.refill();
        }
        // What cannot be deleted must not keep the rest.
        let swept = self.sweep(now).await;
        self.expire(now).await?;
        swept
    }

    async fn close(&self) -> Result<()> {
        for pool in self.0.pools.values() {
            pool.close().await;
        }
        self.0.presence.end().await
    }
}

#[cfg(test)]
mod tests;
