//! [`K8sSandbox`]: a pod as a backend.

mod backend;

use std::sync::Arc;

use backend_core::ops::StopMode;
use backend_core::{Operation, Result, Sandbox};
use sandbox_shell::{HostedSandbox, Sampler, Stats};

use crate::cluster;
use crate::machine::{K8sMachine, MachineConfig, Recipe};
use crate::options::Relaxation;
use crate::settings::{Settings, ValidSettings};

/// A pod as a backend. Clones share it.
///
/// The first operation creates the pod. If it was deleted from outside, evicted, or lost
/// with its node, operations are `Unavailable`, and only [`start`](Sandbox::start) creates
/// a new one: its files are gone, and that should not go unnoticed. Where the working
/// directory is on a [claim](crate::Volume::claim), its files are not gone, and the next
/// operation creates the pod again.
///
/// A pod cannot be stopped and started again. [`stop`](Sandbox::stop) with `Keep` ends all
/// commands and leaves the pod, which keeps its files and its place on its node; where the
/// working directory is on a claim, it deletes the pod. With `Purge` the pod is deleted in
/// both cases. Claims are never deleted.
///
/// When the last clone is dropped, a pod that it created is deleted, unless it has a name
/// or is [kept](crate::K8sBuilder::keep). This happens in the background, provided the
/// process lives long enough; call [`stop`](Sandbox::stop) to be sure. Pods that were
/// attached to are left as they are.
///
/// See [`K8sBuilder`](crate::K8sBuilder) for an example.
#[derive(Debug, Clone)]
pub struct K8sSandbox(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    hosted: HostedSandbox<K8sMachine>,
    relaxed: Vec<Relaxation>,
    sampler: Sampler,
}

impl K8sSandbox {
    pub(crate) fn new(valid: ValidSettings) -> Result<Self> {
        let settings = valid.settings.clone();
        Ok(Self::assemble(machine_config(valid)?, settings))
    }

    /// Creates a pod now, and refers to this one only.
    pub(crate) async fn create(valid: ValidSettings) -> Result<Self> {
        let settings = valid.settings.clone();
        let config = machine_config(valid)?;
        let machine = K8sMachine::new(config.clone());
        let created = cluster::run(async move { machine.create_new().await });
        let uid = created
            .await
            .map_err(|error| error.during(Operation::Start))?;
        let bound = MachineConfig {
            uid: Some(uid),
            recipe: None,
            ..config
        };
        Ok(Self::assemble(bound, settings))
    }

    pub(crate) fn assemble(config: MachineConfig, settings: Settings) -> Self {
        let machine = K8sMachine::new(config);
        let hosted = HostedSandbox::new(machine, settings.mode, settings.idle_timeout);
        Self(Arc::new(Inner {
            hosted,
            relaxed: settings.relaxed.into_iter().collect(),
            sampler: Sampler::default(),
        }))
    }

    /// Returns the pod's name.
    pub fn pod_name(&self) -> &str {
        self.0.hosted.machine().name()
    }

    /// Returns the parts of the hardening that were given up by
    /// [`relax`](crate::K8sBuilder::relax). An overlay can give up more.
    pub fn relaxations(&self) -> &[Relaxation] {
        &self.0.relaxed
    }

    /// Deletes the pod and its files, like [`stop`](Sandbox::stop) with `Purge`. Claims are
    /// kept.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the cluster does not answer.
    pub async fn remove(&self) -> Result<()> {
        self.stop(StopMode::Purge).await
    }

    /// Returns the current resource usage, as the sandbox sees it, without a request to
    /// the cluster. The CPU usage is measured since the previous call.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the pod is gone; `Unsupported` if it does not show its usage.
    pub async fn stats(&self) -> Result<Stats> {
        self.0.sampler.sample(&self.0.hosted).await
    }
}

/// Returns the configuration of a machine that creates its pod.
fn machine_config(valid: ValidSettings) -> Result<MachineConfig> {
    let ValidSettings {
        settings,
        cluster,
        image,
        working_dir,
    } = valid;
    let random = || format!("agentbox-{:016x}", fastrand::u64(..));
    Ok(MachineConfig {
        cluster,
        name: settings.name.clone().unwrap_or_else(random),
        working_dir,
        uid: None,
        foreign: false,
        agents: settings.located_agents()?,
        start_timeout: settings.start_timeout(),
        grace: settings.grace(),
        recipe: Some(Recipe { settings, image }),
    })
}
