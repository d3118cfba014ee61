//! [`AgentSandboxEngine`]: sessions in pods that agent-sandbox keeps ready.
//!
//! A session is a `SandboxClaim` of its name: to create it is the lock between processes. The
//! record is in its annotations, and every change of them is for the version that was read. The
//! pod that it gets is used as it is; the agent is sent into it, unless its template brings it.

mod pod;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use backend_core::{Error, ErrorKind, Result};
use backend_k8s::pods::Version;
use backend_k8s::pods::objects::{self, Draft, Kind, Object};
use backend_k8s::{Cluster, K8sBuilder, K8sSandbox};
use serde_json::{Value, json};
use tokio::sync::{OnceCell, watch};
use tokio::time::sleep;

use super::TRIES;
use super::annotations::{self, ACTIVE, Annotations, ENV};
use super::env::{Env, Variables};
use super::names::{self, Names};
use crate::engine::{Attached, Claim, Engine};
use crate::error::contended;
use crate::id::SessionId;
use crate::record::{Record, RecordState, Usage};
use crate::request::OpenRequest;

/// The group and kind of claims. Their version is the one that the cluster recommends.
const GROUP: &str = "extensions.agents.x-k8s.io";
const KIND: &str = "SandboxClaim";
/// The version in which a claim names a template; in later ones it names a pool.
const FIRST_VERSION: &str = "v1alpha1";

/// The pause before a claim that is changing, and cannot be followed, is looked at again.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The time in which a claim is gone after it was deleted, with its pod.
const GONE_TIMEOUT: Duration = Duration::from_secs(120);

/// Options of an [`AgentSandboxEngine`], from
/// [`AgentSandboxEngine::builder`], which has an example.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct AgentSandboxEngineBuilder {
    cluster: Cluster,
    sandbox_template: String,
    warm_pool: String,
    template: K8sBuilder,
    space: String,
}

impl AgentSandboxEngineBuilder {
    backend_core::setters! {
        /// Sets the agent and the mode with which pods are used. Other options of the builder
        /// have no effect: the pods are those of the `SandboxTemplate`.
        fn template(self, template: K8sBuilder) { self.template = template }

        /// Names the space of the sessions: small letters and digits. Processes that name
        /// the same space in the same namespace share its sessions. `default` unless set.
        fn space(self, space: impl Into<String>) { self.space = space.into() }
    }

    /// Checks the options. Nothing is created yet.
    ///
    /// # Errors
    ///
    /// `Config` for an invalid option.
    pub fn build(self) -> Result<AgentSandboxEngine> {
        Ok(AgentSandboxEngine(Arc::new(Inner {
            names: Names::new(&self.space)?,
            cluster: self.cluster,
            sandbox_template: self.sandbox_template,
            warm_pool: self.warm_pool,
            template: self.template,
            kind: OnceCell::new(),
            known: Mutex::default(),
        })))
    }
}

/// Sessions in pods of [agent-sandbox](https://agent-sandbox.sigs.k8s.io), which a cluster must
/// have with its extensions. Clones share everything.
///
/// A session claims a pod of a `SandboxWarmPool`, or a new one of its `SandboxTemplate` if the
/// pool is empty. The container of the template must be called `sandbox` and keep running. The
/// variables of a session are given to its commands by our agent, so a claim with variables also
/// gets a pod that is ready.
///
/// A session's files end with its pod. Its runtime is the template: a request that names another
/// one is `Unsupported`.
#[derive(Debug, Clone)]
pub struct AgentSandboxEngine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    cluster: Cluster,
    names: Names,
    sandbox_template: String,
    warm_pool: String,
    template: K8sBuilder,
    kind: OnceCell<Kind>,
    /// The sandboxes that were handed out, with the ids of their claims.
    known: Mutex<HashMap<SessionId, (String, K8sSandbox)>>,
}

impl AgentSandboxEngine {
    /// Returns a builder for sessions from a `SandboxTemplate` and its `SandboxWarmPool`, both
    /// in the namespace of the cluster.
    ///
    /// ```no_run
    /// # async fn example() -> backend_core::Result<()> {
    /// use backend_k8s::Cluster;
    /// use sessions::AgentSandboxEngine;
    ///
    /// let cluster = Cluster::from_env().await?.with_namespace("agents");
    /// let engine = AgentSandboxEngine::builder(cluster, "python", "python-pool")
    ///     .space("chat")
    ///     .build()?;
    /// # let _ = engine;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(
        cluster: Cluster,
        sandbox_template: impl Into<String>,
        warm_pool: impl Into<String>,
    ) -> AgentSandboxEngineBuilder {
        AgentSandboxEngineBuilder {
            cluster,
            sandbox_template: sandbox_template.into(),
            warm_pool: warm_pool.into(),
            template: K8sBuilder::default(),
            space: "default".to_owned(),
        }
    }

    async fn kind(&self) -> Result<&Kind> {
        let discover = || async {
            let found = Kind::discover(&self.0.cluster, GROUP, KIND).await?;
            found.ok_or_else(|| {
                let message = "the cluster has no SandboxClaim; install agent-sandbox with its extensions, or use the other engine";
                Error::new(ErrorKind::Config, message)
            })
        };
        self.0.kind.get_or_try_init(discover).await
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, (String, K8sSandbox)>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, id: &SessionId) {
        // Dropped after the lock is released: it may have a connection to close.
        let known = self.known().remove(id);
        drop(known);
    }

    /// Finds the claim of a session. One that is being deleted is waited for.
    async fn find(&self, id: &SessionId) -> Result<Option<Object>> {
        let (kind, name) = (self.kind().await?, self.0.names.session(id));
        for _ in 0..TRIES {
            let Some(claim) = objects::find(&self.0.cluster, kind, &name).await? else {
                return Ok(None);
            };
            if !claim.is_ending {
                return self.checked(claim, id).map(Some);
            }
            self.gone(&claim).await?;
        }
        Err(contended(id))
    }

    fn checked(&self, claim: Object, id: &SessionId) -> Result<Object> {
        if annotations::is_of(&claim.annotations, id) {
            return Ok(claim);
        }
        let message = "a SandboxClaim has the name of the session and belongs to none; delete it";
        Err(Error::new(ErrorKind::Conflict, message).about(&claim.name))
    }

    /// Waits until a claim is gone, and with it its pod.
    async fn gone(&self, claim: &Object) -> Result<()> {
        let (kind, begun) = (self.kind().await?, Instant::now());
        while begun.elapsed() < GONE_TIMEOUT {
            let found = objects::find(&self.0.cluster, kind, &claim.name).await?;
            if found.is_none_or(|found| found.uid != claim.uid) {
                return Ok(());
            }
            sleep(POLL_INTERVAL).await;
        }
        let message = "its SandboxClaim is still being deleted; look at its pod and its node";
        Err(Error::unavailable(message).about(&claim.name))
    }

    /// Returns the sandbox of a claim: the one that was handed out before, if it is the same
    /// claim.
    async fn sandbox(&self, id: &SessionId, claim: &Object) -> Result<K8sSandbox> {
        let known = self.known().get(id).cloned();
        if let Some((uid, sandbox)) = known
            && uid == claim.uid
        {
            return Ok(sandbox);
        }
        let (named, _) = watch::channel(None);
        let pod = self.ready(claim, &named).await?;
        let sandbox = self.open(&pod).await?;
        self.remember(id, claim, &sandbox);
        Ok(sandbox)
    }

    fn remember(&self, id: &SessionId, claim: &Object, sandbox: &K8sSandbox) {
        let known = (claim.uid.clone(), sandbox.clone());
        let former = self.known().insert(id.clone(), known);
        drop(former);
    }

    async fn open(&self, pod: &str) -> Result<K8sSandbox> {
        let template = self.0.template.clone().cluster(self.0.cluster.clone());
        template.attach(pod).allow_foreign(true).open().await
    }

    fn variables<'a>(&'a self, claim: &'a Object) -> Variables<'a> {
        Variables {
            cluster: &self.0.cluster,
            space: self.0.names.space(),
            name: &claim.name,
            uid: &claim.uid,
        }
    }

    async fn keep_env(&self, claim: &Object, env: &Env) -> Result<()> {
        let (kind, variables) = (self.kind().await?, self.variables(claim));
        let own = |draft: Draft| draft.owned_by(kind, claim);
        variables.write(env, own).await
    }

    /// Changes an annotation of a session as its current ones demand. Returns `false` if the
    /// session is ending.
    async fn note(
        &self,
        id: &SessionId,
        change: impl Fn(&Annotations) -> Option<(&'static str, String)>,
    ) -> Result<bool> {
        let kind = self.kind().await?;
        for _ in 0..TRIES {
            let Some(claim) = self.find(id).await? else {
                return Ok(false);
            };
            let Some((key, value)) = change(&claim.annotations) else {
                return Ok(true);
            };
            let change = json!({"metadata": {"annotations": {(key): value}}});
            match objects::patch(&self.0.cluster, kind, &claim, change).await {
                Ok(noted) if noted.is_ending => {
                    self.gone(&noted).await?;
                    return Ok(false);
                }
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        Err(contended(id))
    }

    /// Ends a session, unless it was used after `since`.
    async fn end(&self, id: &SessionId, since: Option<SystemTime>) -> Result<bool> {
        let kind = self.kind().await?;
        let version = since.map_or(Version::Any, |_| Version::Read);
        for _ in 0..TRIES {
            let Some(claim) = self.find(id).await? else {
                self.forget(id);
                return Ok(false);
            };
            if since.is_some_and(|since| record(&claim, id).last_activity > since) {
                return Ok(false);
            }
            match objects::delete(&self.0.cluster, kind, &claim, version).await {
                // It was used, or its claim has changed in another way.
                Err(error) if error.kind() == ErrorKind::Conflict => continue,
                deleted => deleted?,
            };
            self.gone(&claim).await?;
            self.forget(id);
            return Ok(true);
        }
        Err(contended(id))
    }

    fn spec(&self, kind: &Kind) -> Value {
        if kind.version() == FIRST_VERSION {
            json!({"spec": {"sandboxTemplateRef": {"name": self.0.sandbox_template}}})
        } else {
            json!({"spec": {"warmPoolRef": {"name": self.0.warm_pool}}})
        }
    }

    /// Gives a session that has its claim the rest: its variables and its pod.
    async fn complete(&self, request: &OpenRequest, claim: &Object) -> Result<K8sSandbox> {
        let keep_env = async {
            match request.env.is_empty() {
                true => Ok(()),
                false => self.keep_env(claim, &request.env).await,
            }
        };
        let ((), sandbox) = tokio::try_join!(keep_env, self.started(claim))?;
        self.remember(&request.id, claim, &sandbox);
        Ok(sandbox)
    }
}

fn record(claim: &Object, id: &SessionId) -> Record {
    let state = RecordState::Running;
    annotations::record(&claim.annotations, id, claim.created, state)
}

#[async_trait]
impl Engine for AgentSandboxEngine {
    fn keeps_files(&self) -> bool {
        false
    }

    async fn claim(&self, request: &OpenRequest) -> Result<Claim> {
        if request.asked_runtime().is_some() {
            let message = "the sandboxes of this engine come from a SandboxTemplate; open the session without a runtime";
            return Err(Error::unsupported(message).about(&request.id));
        }
        let kind = self.kind().await?;
        let name = self.0.names.session(&request.id);
        let mut draft = Draft::new(name, self.spec(kind)).label(names::SPACE, self.0.names.space());
        for (key, value) in annotations::of(&Record::new(request, SystemTime::now()))? {
            draft = draft.annotation(key, value);
        }
        if !request.env.is_empty() {
            draft = draft.annotation(ENV, "true");
        }
        let claim = match objects::create(&self.0.cluster, kind, draft).await {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(Claim::Taken),
            created => created?,
        };
        match self.complete(request, &claim).await {
            Ok(sandbox) => Ok(Claim::Started(Arc::new(sandbox))),
            Err(error) => {
                let deleted = objects::delete(&self.0.cluster, kind, &claim, Version::Any).await;
                if let Err(error) = deleted {
                    tracing::warn!(session = %request.id, "a claim was left behind: {}", error.chain());
                }
                Err(error)
            }
        }
    }

    async fn attach(&self, id: &SessionId) -> Result<Option<Attached>> {
        let Some(claim) = self.find(id).await? else {
            self.forget(id);
            return Ok(None);
        };
        let env = if claim.annotations.contains_key(ENV) {
            self.variables(&claim).read().await?
        } else {
            Env::new()
        };
        let sandbox = Error::none_if_missing(self.sandbox(id, &claim).await)?;
        Ok(sandbox.map(|sandbox: K8sSandbox| {
            Attached::new(Arc::new(sandbox), record(&claim, id)).with_env(env)
        }))
    }

    async fn list(&self) -> Result<Vec<Record>> {
        let kind = self.kind().await?;
        let claims = objects::list(&self.0.cluster, kind, &self.0.names.all()).await?;
        let stay = claims.iter().filter(|claim| !claim.is_ending);
        let records = stay.filter_map(|claim| {
            let id = annotations::session(&claim.annotations)?;
            Some(record(claim, &id))
        });
        let mut records: Vec<_> = records.collect();
        records.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(records)
    }

    async fn record(&self, id: &SessionId) -> Result<Option<Record>> {
        let claim = self.find(id).await?;
        Ok(claim.map(|claim| record(&claim, id)))
    }

    async fn touch(&self, id: &SessionId, at: SystemTime) -> Result<bool> {
        let later = |annotations: &Annotations| {
            let is_later = annotations::active(annotations).is_none_or(|active| active < at);
            is_later.then(|| (ACTIVE, annotations::millis(at)))
        };
        self.note(id, later).await
    }

    async fn set_env(&self, id: &SessionId, env: &Env) -> Result<()> {
        let Some(claim) = self.find(id).await? else {
            return Ok(());
        };
        self.keep_env(&claim, env).await?;
        let marked = |annotations: &Annotations| {
            let is_new = !annotations.contains_key(ENV);
            is_new.then(|| (ENV, "true".to_owned()))
        };
        self.note(id, marked).await.map(drop)
    }

    async fn stop(&self, id: &SessionId) -> Result<bool> {
        self.end(id, None).await
    }

    async fn stop_if_unused_since(&self, id: &SessionId, since: SystemTime) -> Result<bool> {
        self.end(id, Some(since)).await
    }

    async fn purge(&self, id: &SessionId) -> Result<bool> {
        self.end(id, None).await
    }

    async fn usage(&self, id: &SessionId) -> Result<Option<Usage>> {
        let Some(claim) = self.find(id).await? else {
            return Ok(None);
        };
        let stats = match self.sandbox(id, &claim).await {
            Ok(sandbox) => sandbox.stats().await,
            Err(error) => Err(error),
        };
        Ok(Some(super::usage(stats)))
    }
}
