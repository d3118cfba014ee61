//! Passes the settings to the library.

use std::time::Duration;

use backend_k8s::{Attach, K8sBuilder, K8sSandbox, Mode, Volume};
use sandbox_wire::agent::AgentBinary;

use super::settings::{K8sSettings, claim, empty_dir, tmpfs, user};
use crate::agent;
use crate::exit::{Failure, usage};

/// Creates a builder with all settings except the cluster, and the image or runtime.
pub(super) fn builder(settings: &K8sSettings) -> Result<K8sBuilder, Failure> {
    let (builder, agents) = (without_agents(settings)?, agents(settings)?);
    Ok(agents.into_iter().fold(builder, K8sBuilder::agent))
}

/// Creates the same without looking for agents, which may unpack them.
pub(super) fn without_agents(settings: &K8sSettings) -> Result<K8sBuilder, Failure> {
    let mut builder = K8sSandbox::builder()
        .mode(settings.mode)
        .delivery(settings.delivery.clone())
        .network(settings.network)
        .pull_policy(settings.pull_policy)
        .keep(settings.keep)
        .mount_token(settings.api_access)
        .active_deadline(settings.active_deadline.map(Duration::from_secs))
        .idle_timeout(settings.idle_timeout.map(Duration::from_secs));
    for (name, value) in &settings.env {
        builder = builder.env(name, value);
    }
    for (key, value) in &settings.labels {
        builder = builder.label(key, value);
    }
    for (key, value) in &settings.annotations {
        builder = builder.annotation(key, value);
    }
    for (key, value) in &settings.node_selector {
        builder = builder.node_selector(key, value);
    }
    for (runtime, image) in &settings.runtime_images {
        builder = builder.runtime_image(runtime, image);
    }
    let relaxed = settings.relax.iter().copied();
    builder = relaxed.fold(builder, K8sBuilder::relax);
    let capabilities = settings.capabilities.iter();
    builder = capabilities.fold(builder, K8sBuilder::add_capability);
    let secrets = settings.pull_secrets.iter();
    builder = secrets.fold(builder, K8sBuilder::image_pull_secret);
    let tolerations = settings.tolerations.iter().cloned();
    builder = tolerations.fold(builder, K8sBuilder::toleration);
    builder = volumes(settings)?
        .into_iter()
        .fold(builder, K8sBuilder::volume);
    if let Some(text) = &settings.user {
        let (uid, gid) = user(text).ok_or_else(|| {
            usage!("{text:?} is not a valid user; write UID or UID:GID in user of [k8s]")
        })?;
        builder = builder.user(uid, gid);
    }
    if let Some(text) = &settings.owner_pod {
        let (name, uid) = text.split_once(':').ok_or_else(|| {
            usage!("{text:?} is not a valid pod; write NAME:UID in owner_pod of [k8s]")
        })?;
        builder = builder.owner_pod(name, uid);
    }
    apply! { builder,
        working_dir: &settings.work_dir,
        memory: settings.memory.map(|size| size.0),
        cpus: settings.cpus,
        request_memory: settings.request_memory.map(|size| size.0),
        request_cpus: settings.request_cpus,
        service_account: &settings.service_account,
        affinity: settings.affinity.clone(),
        runtime_class: &settings.runtime_class,
        overlay: settings.overlay.clone(),
        start_timeout: settings.start_timeout.map(Duration::from_secs),
        grace: settings.grace.map(Duration::from_secs),
        agent_image: &settings.agent_image,
        name: &settings.name,
    }
    Ok(builder)
}

/// Returns the volumes: claims, empty directories, and directories in memory.
fn volumes(settings: &K8sSettings) -> Result<Vec<Volume>, Failure> {
    let claims = settings.volumes.iter().map(|text| claim(text));
    let empty = settings.empty_dirs.iter().map(|text| empty_dir(text));
    let in_memory = settings.tmpfs.iter().map(|text| tmpfs(text));
    claims.chain(empty).chain(in_memory).collect()
}

/// Attaches to an existing pod, whose settings cannot be changed.
pub(super) fn attach(settings: &K8sSettings, pod: &str) -> Result<Attach, Failure> {
    let mut attach = K8sSandbox::attach(pod)
        // The user named this pod, so it may be one that others created.
        .allow_foreign(true)
        .mode(settings.mode);
    attach = agents(settings)?.into_iter().fold(attach, Attach::agent);
    apply! { attach, working_dir: &settings.work_dir }
    Ok(attach)
}

fn agents(settings: &K8sSettings) -> Result<Vec<AgentBinary>, Failure> {
    agent::for_sandbox(settings.agent.as_deref(), settings.mode == Mode::Portable)
}
