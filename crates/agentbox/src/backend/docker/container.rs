//! Passes the settings to the library.

use std::time::Duration;

use backend_docker::{Attach, DockerBuilder, DockerSandbox, Mode, Network};
use sandbox_wire::agent::AgentBinary;

use super::settings::{DockerSettings, volume};
use crate::agent::{self, storage};
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
    builder = agents(settings)?
        .into_iter()
        .fold(builder, DockerBuilder::agent);
    if let Some(network) = &settings.network {
        builder = builder.network(match network.as_str() {
            "none" => Network::None,
            "bridge" => Network::Bridge,
            name => Network::Named(name.to_owned()),
        });
    }
    let relaxed = settings.relax.iter().copied();
    builder = relaxed.fold(builder, DockerBuilder::relax);
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
    for (name, value) in &settings.env {
        builder = builder.env(name, value);
    }
    for (key, value) in &settings.labels {
        builder = builder.label(key, value);
    }
    let capabilities = settings.capabilities.iter();
    builder = capabilities.fold(builder, DockerBuilder::add_capability);
    apply! { builder,
        working_dir: &settings.work_dir,
        memory: settings.memory.map(|size| size.0),
        swap: settings.swap.map(|size| size.0),
        cpus: settings.cpus,
        cpu_shares: settings.cpu_shares,
        pids_limit: settings.pids,
        user: &settings.user,
        oci_runtime: &settings.oci_runtime,
        name: &settings.name,
        ca_bundle: &settings.ca_bundle,
        socket_dir: storage::sockets(),
    }
    // Last, so that mistakes in the settings are reported even without a daemon.
    Ok(builder.daemon(settings.daemon()?))
}

/// Attaches to an existing container, whose settings cannot be changed.
pub(super) fn attach(settings: &DockerSettings, id: &str) -> Result<Attach, Failure> {
    let mut attach = DockerSandbox::attach(id)
        .daemon(settings.daemon()?)
        // The user named this container, so it may be one that others created.
        .allow_foreign(true)
        .mode(settings.mode)
        .delivery(settings.delivery);
    attach = agents(settings)?.into_iter().fold(attach, Attach::agent);
    apply! { attach,
        working_dir: &settings.work_dir,
        socket_dir: storage::sockets(),
    }
    Ok(attach)
}

fn agents(settings: &DockerSettings) -> Result<Vec<AgentBinary>, Failure> {
    agent::for_sandbox(settings.agent.as_deref(), settings.mode == Mode::Portable)
}
