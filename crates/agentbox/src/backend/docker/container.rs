//! Passes the settings to the library.

use std::time::Duration;

use backend_docker::{Attach, DockerBuilder, DockerSandbox, Mode, Network};
use sandbox_wire::agent::AgentBinary;

use super::settings::{DockerSettings, Volume};
use crate::exit::Failure;
use crate::files::read_text;

/// Creates a builder with all settings except the image or runtime.
pub(super) fn builder(settings: &DockerSettings) -> Result<DockerBuilder, Failure> {
    let mut builder = DockerSandbox::builder()
        .mode(settings.mode)
        .delivery(settings.delivery)
        .read_only_root(settings.read_only)
        .auto_remove(!settings.keep)
        .idle_timeout(settings.idle_timeout.map(Duration::from_secs));
    for agent in agents(settings)? {
        builder = builder.agent(agent);
    }
    if let Some(network) = &settings.network {
        builder = builder.network(match network.as_str() {
            "none" => Network::None,
            "bridge" => Network::Bridge,
            name => Network::Named(name.to_owned()),
        });
    }
    for relaxed in &settings.relax {
        builder = builder.relax(relaxed.0);
    }
    if let Some(file) = &settings.seccomp {
        builder = builder.seccomp_profile(read_text(file, "seccomp profile")?);
    }
    for text in &settings.volumes {
        builder = builder.volume(volume(text)?);
    }
    for text in &settings.tmpfs {
        let (target, options) = text.split_once(':').unwrap_or((text, ""));
        builder = builder.tmpfs(target, options);
    }
    // The daemon comes last, so that mistakes in the settings are reported even if
    // there is no daemon.
    Ok(apply_settings(builder, settings).daemon(settings.daemon()?))
}

/// Attaches to an existing container. The settings it was created with cannot be
/// changed.
pub(super) fn attach(settings: &DockerSettings, id: &str) -> Result<Attach, Failure> {
    let mut attach = DockerSandbox::attach(id)
        .daemon(settings.daemon()?)
        // The user named this container, so it may be one that others created.
        .allow_foreign(true)
        .mode(settings.mode)
        .delivery(settings.delivery);
    for agent in agents(settings)? {
        attach = attach.agent(agent);
    }
    if let Some(directory) = &settings.work_dir {
        attach = attach.working_dir(directory);
    }
    Ok(attach)
}

/// Returns the agents; does not look for them in portable mode.
fn agents(settings: &DockerSettings) -> Result<Vec<AgentBinary>, Failure> {
    match settings.mode {
        Mode::Portable => Ok(Vec::new()),
        _ => settings.agents(),
    }
}

/// Applies the settings that are passed on unchanged.
fn apply_settings(mut builder: DockerBuilder, settings: &DockerSettings) -> DockerBuilder {
    for (name, value) in &settings.env {
        builder = builder.env(name, value);
    }
    for (key, value) in &settings.labels {
        builder = builder.label(key, value);
    }
    for capability in &settings.capabilities {
        builder = builder.add_capability(capability);
    }
    if let Some(directory) = &settings.work_dir {
        builder = builder.working_dir(directory);
    }
    if let Some(size) = settings.memory {
        builder = builder.memory(size.0);
    }
    if let Some(size) = settings.swap {
        builder = builder.swap(size.0);
    }
    if let Some(cpus) = settings.cpus {
        builder = builder.cpus(cpus);
    }
    if let Some(shares) = settings.cpu_shares {
        builder = builder.cpu_shares(shares);
    }
    if let Some(pids) = settings.pids {
        builder = builder.pids_limit(pids);
    }
    if let Some(user) = &settings.user {
        builder = builder.user(user);
    }
    if let Some(runtime) = &settings.oci_runtime {
        builder = builder.oci_runtime(runtime);
    }
    if let Some(name) = &settings.name {
        builder = builder.name(name);
    }
    if let Some(file) = &settings.ca_bundle {
        builder = builder.ca_bundle(file);
    }
    builder
}

fn volume(text: &str) -> Result<backend_docker::Volume, Failure> {
    let read = Volume::parse(text)?;
    let volume = if read.is_dir() {
        backend_docker::Volume::host(read.source, read.target)
    } else {
        backend_docker::Volume::named(read.source, read.target)
    };
    Ok(volume.read_only(read.read_only))
}
