//! The states of a pod and the transitions between them.

use std::sync::Mutex;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Error, ErrorKind, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use sandbox_shell::{Lifecycle, Presence, StartReason};

use super::state::{Facts, Look, PodFacts, State};
use super::{Core, events};
use crate::cluster;
use crate::labels;
use crate::reason::{self, PodState};

#[async_trait]
impl Lifecycle for Core {
    type Facts = Facts;

    fn known(&self) -> &Mutex<State> {
        &self.state
    }

    async fn make_ready(&self, reason: StartReason) -> Result<()> {
        if !self.was_just_seen(reason) {
            match self.find().await? {
                Some(found) => self.resume(found, reason).await?,
                None if self.may_create(reason) => self.create().await?,
                None => return Err(self.deleted_why().await),
            }
        }
        let mut state = self.state();
        state.stopped = false;
        // After an explicit start, another one comes before the agent is connected.
        state.look = (reason == StartReason::Explicit).then(|| Look::now(None));
        Ok(())
    }

    async fn end(&self, mode: StopMode) -> Result<()> {
        if mode == StopMode::Keep && !self.config.keeps_files() {
            // A pod cannot be stopped and started again. Its commands have ended, and it
            // keeps the files.
            let mut state = self.state();
            state.stopped = true;
            state.set_not_running();
            return Ok(());
        }
        self.delete().await?;
        self.state().forget(self.config.initial_presence());
        Ok(())
    }
}

impl Core {
    /// Whether the pod was seen to run just now, so that a start need not look at it.
    fn was_just_seen(&self, reason: StartReason) -> bool {
        let mut state = self.state();
        let Some(look) = state.look.take().filter(Look::is_fresh) else {
            return false;
        };
        if let Some(pod) = look.pod {
            state.pod = Some(pod);
            state.set_seen();
            return true;
        }
        // A start that is asked for is one that looks.
        let is_up = state.presence == Presence::Running && state.suspect_until.is_none();
        reason == StartReason::OnDemand && is_up
    }

    /// Looks at the pod. Returns `None` if it does not exist.
    pub(super) async fn find(&self) -> Result<Option<Pod>> {
        let cluster = &self.config.cluster;
        let api: Api<Pod> = cluster.api()?;
        cluster.found(api.get(&self.config.name).await)
    }

    /// Whether a pod of this name is the one that is used, and no later one.
    pub(super) fn is_used(&self, state: &State, pod: &Pod) -> bool {
        let known = state.run().map(|run| &run.uid);
        let known = known.or(self.config.uid.as_ref());
        known.is_none_or(|uid| pod.metadata.uid.as_ref() == Some(uid))
    }

    /// Whether a pod may be created where there is none, or none that runs. The files of
    /// the old one must not get lost unnoticed.
    fn may_create(&self, reason: StartReason) -> bool {
        let is_asked = reason == StartReason::Explicit || !self.state().existed();
        self.config.recipe.is_some() && (is_asked || self.config.keeps_files())
    }

    /// Uses an existing pod, once it runs.
    pub(super) async fn resume(&self, found: Pod, reason: StartReason) -> Result<()> {
        if !self.is_used(&self.state(), &found) {
            if !self.may_create(reason) {
                return Err(self.deleted());
            }
            // Another program made it anew.
            self.state().forget(Presence::Unseen);
        }
        self.check(&found)?;
        self.ensure_policy().await?;
        match PodState::of(&found) {
            PodState::Running => self.use_pod(&found, reason),
            PodState::Starting(_) | PodState::Failing(_) => {
                let changes = self.changes()?;
                let found = self.running(found, changes, false).await?;
                self.use_pod(&found, reason)
            }
            PodState::Lost(text) => Err(self.unavailable(&text, "see whether that node runs")),
            PodState::Ended(_) | PodState::Deleting(_) if self.may_create(reason) => {
                self.replace(&found).await
            }
            PodState::Ended(text) | PodState::Deleting(text) => {
                self.state().presence = Presence::Seen;
                Err(self.unavailable(&text, self.next_after_end()))
            }
        }
    }

    /// Whether this object has created a pod. That it has tried to proves nothing: another
    /// process may have been faster.
    pub(super) fn has_created(&self, pod: &Pod) -> bool {
        let annotations = pod.metadata.annotations.as_ref();
        let creation = annotations.and_then(|all| all.get(labels::CREATION));
        creation == Some(&self.creation)
    }

    /// Refuses a pod that does not belong to this object.
    fn check(&self, found: &Pod) -> Result<()> {
        if self.has_created(found) {
            return Ok(());
        }
        if !labels::is_ours(&found.metadata) && !self.config.foreign {
            return Err(self.conflict(
                "is not a sandbox; choose another name, or attach to it with `allow_foreign`",
            ));
        }
        let Some(recipe) = &self.config.recipe else {
            return Ok(());
        };
        if recipe.settings.exclusive {
            return Err(self.taken());
        }
        let annotations = found.metadata.annotations.as_ref();
        let config = annotations.and_then(|all| all.get(labels::CONFIG));
        let labels = found.metadata.labels.as_ref();
        let network = labels.and_then(|all| all.get(labels::NETWORK));
        let is_selected = network.is_some_and(|label| label == recipe.settings.network.label());
        if is_selected && config == Some(&self.plan(recipe, None).fingerprint()) {
            return Ok(());
        }
        Err(self.conflict(
            "was created from another image or with other options; delete it, or choose another name",
        ))
    }

    fn conflict(&self, what: &str) -> Error {
        let message = format!("the pod {} {what}", self.config.name);
        Error::new(ErrorKind::Conflict, message)
    }

    /// The error for a name that must be free.
    pub(super) fn taken(&self) -> Error {
        self.conflict("exists already; attach to it, or choose another name")
    }

    /// Notes the pod that is used from now on. A restart that lost files is told once.
    pub(super) fn use_pod(&self, pod: &Pod, reason: StartReason) -> Result<()> {
        let mut known = PodFacts::of(pod);
        let mut state = self.state();
        let before = state.pod.take();
        let before = before.filter(|before| before.run.uid == known.run.uid);
        let Some(before) = before else {
            // A pod that is new has nothing of the one before it.
            state.pod = Some(known);
            state.set_seen();
            state.placed = false;
            state.architecture.clear();
            return Ok(());
        };
        let is_restarted = before.run != known.run;
        let loses_files = known.has_writable_root && reason == StartReason::OnDemand;
        known.restarted = match is_restarted {
            true => Some(reason::restart_reason(pod)),
            false => before.restarted,
        };
        state.pod = Some(known);
        state.set_seen();
        if !is_restarted {
            return Ok(());
        }
        // The volume for the agent has outlived the restart. Other directories have not.
        state.placed &= !self.config.foreign;
        if loses_files {
            let text = format!("was restarted: it {}", reason::restart_reason(pod));
            let next = "files outside its volumes are gone, and the next call uses what is left";
            return Err(self.unavailable(&text, next));
        }
        Ok(())
    }

    /// Deletes the pod that is used.
    async fn delete(&self) -> Result<()> {
        let known = self.state().run().map(|run| run.uid.clone());
        let uid = match known.or_else(|| self.config.uid.clone()) {
            Some(uid) => Some(uid),
            None => {
                let found = self.find().await?;
                let is_ours = |pod: &Pod| self.config.foreign || labels::is_ours(&pod.metadata);
                found.filter(is_ours).and_then(|pod| pod.metadata.uid)
            }
        };
        match uid {
            Some(uid) => self.delete_one(uid).await,
            None => Ok(()),
        }
    }

    /// Deletes one pod of this name, if it still exists.
    pub(super) async fn delete_one(&self, uid: String) -> Result<()> {
        let cluster = &self.config.cluster;
        let seconds = u32::try_from(self.config.grace.as_secs()).unwrap_or(u32::MAX);
        let options = DeleteParams::default()
            .grace_period(seconds)
            .preconditions(Preconditions {
                uid: Some(uid),
                resource_version: None,
            });
        let api: Api<Pod> = cluster.api()?;
        match api.delete(&self.config.name, &options).await {
            // 409: the name is that of another pod.
            Err(error) if !matches!(cluster::status(&error), Some(404 | 409)) => {
                Err(cluster.error(error))
            }
            _ => Ok(()),
        }
    }

    /// Returns why the pod does not answer, or `None` if it should.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find).
    pub(super) async fn diagnosis(&self) -> Result<Option<Error>> {
        let reason = match self.find().await? {
            Some(found) if self.is_used(&self.state(), &found) => self.pod_error(&found),
            _ => Some(self.deleted_why().await),
        };
        if reason.is_some() {
            self.state().set_not_running();
        }
        Ok(reason)
    }

    /// Returns the error for a pod that does not run, or was restarted since it was used.
    fn pod_error(&self, pod: &Pod) -> Option<Error> {
        let next = match PodState::of(pod) {
            PodState::Running => {
                let state = self.state();
                let before = state.run().map(|run| run.restarts);
                if before.is_none_or(|before| before == reason::restarts(pod)) {
                    return None;
                }
                drop(state);
                let text = format!("was restarted: it {}", reason::restart_reason(pod));
                return Some(self.unavailable(&text, "try again"));
            }
            PodState::Starting(_) | PodState::Failing(_) => "try again in a moment",
            PodState::Lost(_) => "see whether that node runs",
            PodState::Ended(_) | PodState::Deleting(_) => self.next_after_end(),
        };
        let state = PodState::of(pod);
        let text = state.reason().unwrap_or("is being started");
        Some(self.unavailable(text, next))
    }

    /// The error for a pod that no longer exists.
    pub(super) fn deleted(&self) -> Error {
        if self.config.recipe.is_some() && !self.state().existed() {
            return self.unavailable("has not been created yet", "the next call creates it");
        }
        self.unavailable("was deleted", self.next_after_end())
    }

    /// The same with the reason, if the cluster still knows it.
    async fn deleted_why(&self) -> Error {
        let uid = self.state().run().map(|run| run.uid.clone());
        let uid = uid.or_else(|| self.config.uid.clone());
        let cause = match uid {
            Some(uid) => events::eviction(&self.config.cluster, &uid).await,
            None => None,
        };
        match cause {
            Some(text) => self.unavailable(&text, self.next_after_end()),
            None => self.deleted(),
        }
    }

    /// The next step for a pod that has ended.
    fn next_after_end(&self) -> &'static str {
        match &self.config.recipe {
            Some(_) if self.config.keeps_files() => {
                "its files are kept, and the next call creates another"
            }
            Some(_) => {
                "its files are gone with it, and a new one is created when the sandbox, or the program that uses it, is started again"
            }
            None => "create a sandbox or attach to another pod",
        }
    }

    /// The error for a pod that cannot be used.
    pub(super) fn unavailable(&self, text: &str, next: &str) -> Error {
        let name = &self.config.name;
        Error::unavailable(format!("the pod {name} {text}; {next}"))
    }
}
