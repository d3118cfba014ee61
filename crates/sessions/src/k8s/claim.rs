//! Opening a session that does not run: of several processes, one gets the object of its name.

use std::sync::Arc;
use std::time::SystemTime;

use backend_core::{Error, ErrorKind, Result};
use backend_k8s::pods::objects::{self, Kind, Object};
use backend_k8s::pods::{self, Pod, PodPhase, Version};
use sandbox_runtime::Runtime;

use super::annotations::{self, Annotations, CLAIM, ENV};
use super::create::{Shape, Spare};
use super::env::Env;
use super::find::Changes;
use super::names;
use super::volumes::stored;
use super::{K8sEngine, has_ended};
use crate::engine::Claim;
use crate::error::other_tenant;
use crate::id::SessionId;
use crate::record::Record;
use crate::request::{OpenRequest, fingerprint};

/// A session that is being opened. Its variables may be secrets, so it is never shown.
struct Opening<'r> {
    record: Record,
    env: &'r Env,
}

impl Opening<'_> {
    /// The annotations of its pod.
    fn annotations(&self) -> Result<Annotations> {
        let mut all = annotations::of(&self.record)?;
        if !self.env.is_empty() {
            all.insert(ENV.to_owned(), "true".to_owned());
        }
        Ok(all)
    }
}

/// The outcome of a claim of a pod that is ready.
enum Takeover {
    /// It is that of the session.
    Won(Box<Pod>),
    /// Another process has the session, and the pod is as it was.
    Lost(Box<Pod>),
    /// Another process has the session, and the pod may have something of this claim.
    Spoiled,
}

impl K8sEngine {
    pub(super) async fn claim_session(&self, request: &OpenRequest) -> Result<Claim> {
        let runtime = request.runtime_or(self.0.runtime.as_ref())?;
        self.0.view.begin();
        let id = &request.id;
        let pods = &self.0.pods;
        let name = pods.names.session(id);
        let mut opening = Opening {
            record: Record {
                runtime: Some(fingerprint(&runtime)),
                ..Record::new(request, SystemTime::now())
            },
            env: &request.env,
        };
        // Most likely it is new, and a lease fails if it is not.
        if pods.volumes.is_none()
            && !self.0.view.has_session(id)
            && let Some(claim) = self.claim_spare(&runtime, &opening).await?
        {
            return Ok(claim);
        }
        // Both at once, because this is only to save work: what is created next decides.
        let kind = Kind::lease();
        let (pod, lease) = tokio::try_join!(
            pods::find(&pods.cluster, &name),
            objects::find(&pods.cluster, &kind, &name)
        )?;
        let runs = pod.as_ref().is_some_and(|pod| !has_ended(pod));
        let exists = pod.is_some() || lease.is_some();
        if runs || (exists && self.is_taken(id).await?) {
            return Ok(Claim::Taken);
        }
        let volumes = self.stored(Some(id)).await?;
        if let Some(volume) = volumes.first() {
            check_tenant(&mut opening.record, volume)?;
            let volume = Some(volume.name.clone());
            return self.claim_cold(&runtime, &opening, volume).await;
        }
        if let Some(claim) = self.claim_spare(&runtime, &opening).await? {
            return Ok(claim);
        }
        let volume = pods.volumes.as_ref().map(|_| name);
        self.claim_cold(&runtime, &opening, volume).await
    }

    /// Whether a session has a pod. One that has ended is removed if its files have not.
    async fn is_taken(&self, id: &SessionId) -> Result<bool> {
        let Some(held) = self.find(id).await? else {
            return Ok(false);
        };
        if !(self.0.pods.volumes.is_some() && has_ended(&held.pod)) {
            return Ok(true);
        }
        self.end(id, &held).await?;
        Ok(false)
    }

    /// Claims the session with a pod that is ready. `None` if there is none, or if it is of no
    /// use.
    async fn claim_spare(&self, runtime: &Runtime, opening: &Opening<'_>) -> Result<Option<Claim>> {
        let Some(pool) = self.0.pools.get(&fingerprint(runtime)) else {
            return Ok(None);
        };
        let spare = loop {
            let Some(spare) = pool.take() else {
                return Ok(None);
            };
            if !self.0.view.has_lost(&spare.pod.uid) {
                break spare;
            }
            pool.discard(spare).await;
        };
        match self.take_over(&spare, opening).await {
            Ok(Takeover::Won(pod)) => {
                let (sandbox, is_ready) = (Arc::new(spare.sandbox.clone()), is_ready(&pod));
                self.remember(&opening.record.id, *pod, spare.sandbox);
                Ok(Some(match is_ready {
                    true => Claim::Started(sandbox),
                    false => Claim::Created(sandbox),
                }))
            }
            Ok(Takeover::Lost(pod)) => {
                // It has nothing of the session.
                let spare = Spare { pod: *pod, ..spare };
                pool.give_back(spare).await;
                Ok(Some(Claim::Taken))
            }
            Ok(Takeover::Spoiled) => {
                pool.discard(spare).await;
                Ok(Some(Claim::Taken))
            }
            Err(error) => {
                tracing::warn!("a spare pod was of no use: {}", error.chain());
                // Its lease ends with it.
                pool.discard(spare).await;
                Ok(None)
            }
        }
    }

    /// Makes a pod that is ready that of a session.
    async fn take_over(&self, spare: &Spare, opening: &Opening<'_>) -> Result<Takeover> {
        let id = &opening.record.id;
        let newest = self.0.view.get(&spare.pod.uid);
        let pod = newest.as_ref().unwrap_or(&spare.pod);
        let (leased, marked) = if self.0.pods.volumes.is_some() {
            if !self.lease_without_files(id, pod).await? {
                return Ok(Takeover::Lost(Box::new(pod.clone())));
            }
            (true, self.mark(pod, opening).await)
        } else {
            // At once, because the marks mean nothing without the lease.
            let (lease, marked) = tokio::join!(self.lease(id, pod), self.mark(pod, opening));
            (lease?.is_some(), marked)
        };
        if !leased {
            return self.give_up(marked, opening).await;
        }
        let Some(pod) = marked? else {
            return Err(Error::unavailable("it was deleted"));
        };
        self.heal(&pod, &opening.record).await?;
        Ok(Takeover::Won(Box::new(pod)))
    }

    /// Creates the lease of a session that has no files. Returns `false` if it has some, or if
    /// another process has the session.
    async fn lease_without_files(&self, id: &SessionId, pod: &Pod) -> Result<bool> {
        let Some(lease) = self.lease(id, pod).await? else {
            return Ok(false);
        };
        // With the lease: another process may have had the session, and left its files.
        if self.stored(Some(id)).await?.is_empty() {
            return Ok(true);
        }
        let cluster = &self.0.pods.cluster;
        objects::delete(cluster, &Kind::lease(), &lease, Version::Any).await?;
        Ok(false)
    }

    /// Marks a pod as that of a session, which has its variables by then. `None` if it is gone.
    async fn mark(&self, pod: &Pod, opening: &Opening<'_>) -> Result<Option<Pod>> {
        if !opening.env.is_empty() {
            self.keep_env(pod, opening.env).await?;
        }
        let marks = opening.annotations()?.into_iter();
        let marks: Changes = marks.map(|(key, mark)| (key, Some(mark))).collect();
        self.note(pod, |_| Some(marks.clone())).await
    }

    /// Takes the marks off a pod that did not become that of the session.
    async fn give_up(
        &self,
        marked: Result<Option<Pod>>,
        opening: &Opening<'_>,
    ) -> Result<Takeover> {
        let has_variables = !opening.env.is_empty();
        let Some(pod) = marked.ok().flatten().filter(|_| !has_variables) else {
            return Ok(Takeover::Spoiled);
        };
        let marks = opening.annotations()?.into_keys();
        let marks: Changes = marks.map(|key| (key, None)).collect();
        let cleared = self.note(&pod, |_| Some(marks.clone())).await;
        Ok(match cleared {
            Ok(Some(pod)) => Takeover::Lost(Box::new(pod)),
            _ => Takeover::Spoiled,
        })
    }

    async fn claim_cold(
        &self,
        runtime: &Runtime,
        opening: &Opening<'_>,
        volume: Option<String>,
    ) -> Result<Claim> {
        let pods = &self.0.pods;
        let id = &opening.record.id;
        if let Some(volume) = &volume {
            pods.volume(volume, Some(id)).await?;
        }
        let mut annotations = opening.annotations()?;
        let claim = names::new_key();
        annotations.insert(CLAIM.to_owned(), claim.clone());
        let shape = Shape {
            name: pods.names.session(id),
            annotations,
            volume: volume.clone(),
            spare: None,
        };
        let sandbox = match pods.create(runtime, shape).await {
            Err(error) if is_taken(&error) => return Ok(Claim::Taken),
            created => created?,
        };
        let is_ours = |pod: &Pod| pod.annotations.get(CLAIM) == Some(&claim);
        let found = pods::find(&pods.cluster, &pods.names.session(id)).await?;
        let won = match found.filter(is_ours) {
            Some(pod) if self.lease(id, &pod).await?.is_some() => Some(pod),
            // Another process has leased a pod meanwhile, which may be this one.
            Some(_) => {
                let held = self.find_leased(id).await?;
                held.map(|held| held.pod).filter(is_ours)
            }
            None => None,
        };
        let Some(pod) = won else {
            self.give_way(id, is_ours).await?;
            return Ok(Claim::Taken);
        };
        match self.complete(&pod, opening, volume.as_deref()).await {
            Ok(()) => {
                self.remember(id, pod, sandbox.clone());
                Ok(Claim::Created(Arc::new(sandbox)))
            }
            Err(error) => {
                self.give_way(id, is_ours).await?;
                Err(error)
            }
        }
    }

    /// Gives a session that has its pod the rest: its variables, and the files that it had.
    async fn complete(&self, pod: &Pod, opening: &Opening<'_>, volume: Option<&str>) -> Result<()> {
        if !opening.env.is_empty() {
            self.keep_env(pod, opening.env).await?;
        }
        let Some(volume) = volume else {
            return Ok(());
        };
        if self.give_volume(volume, &opening.record).await? {
            return Ok(());
        }
        let message = "the session was purged meanwhile; open it again";
        Err(Error::unavailable(message).about(&opening.record.id))
    }

    /// Deletes the pod of a claim that did not succeed. Its volume may be that of the session.
    async fn give_way(&self, id: &SessionId, is_ours: impl Fn(&Pod) -> bool) -> Result<()> {
        let pods = &self.0.pods;
        let found = pods::find(&pods.cluster, &pods.names.session(id)).await?;
        if let Some(pod) = found.filter(is_ours) {
            pods.delete(&pod, Version::Any).await?;
        }
        Ok(())
    }
}

/// Whether a pod whose sandbox was started runs as it did then.
fn is_ready(pod: &Pod) -> bool {
    let is_up = pod.phase == PodPhase::Running && pod.ready && !pod.lost;
    is_up && pod.restart_count == 0
}

/// Checks the tenant of stored files, which is that of the session.
fn check_tenant(record: &mut Record, volume: &Object) -> Result<()> {
    let tenant = stored(volume, &record.id).tenant;
    let asked = record.tenant.take();
    if asked.is_some() && tenant.is_some() && asked != tenant {
        return Err(other_tenant(&record.id));
    }
    record.tenant = asked.or(tenant);
    Ok(())
}

/// Whether there is a pod of that name.
fn is_taken(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::Conflict)
}
