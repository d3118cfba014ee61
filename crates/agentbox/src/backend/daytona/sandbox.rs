//! Passes the settings to the library.

use std::time::Duration;

use backend_daytona::{Attach, DaytonaBuilder, DaytonaSandbox};

use super::settings::{DaytonaSettings, volume};
use crate::exit::Failure;

/// Creates a builder with all settings except the account, and the image, snapshot or runtime.
pub(super) fn builder(settings: &DaytonaSettings) -> Result<DaytonaBuilder, Failure> {
    let (builder, agents) = (without_agents(settings)?, settings.agents()?);
    Ok(agents.into_iter().fold(builder, DaytonaBuilder::agent))
}

/// Creates the same without looking for agents, which may unpack them.
pub(super) fn without_agents(settings: &DaytonaSettings) -> Result<DaytonaBuilder, Failure> {
    let mut builder = DaytonaSandbox::builder()
        .mode(settings.mode)
        .network(settings.network.clone())
        .keep(settings.keep)
        .public(settings.public)
        .recover(settings.recover)
        .idle_timeout(settings.idle_timeout.map(Duration::from_secs));
    for (name, value) in &settings.env {
        builder = builder.env(name, value);
    }
    for (key, value) in &settings.labels {
        builder = builder.label(key, value);
    }
    for (variable, secret) in &settings.secrets {
        builder = builder.secret(variable, secret);
    }
    for text in &settings.volumes {
        builder = builder.volume(volume(text)?);
    }
    let after = |seconds: Option<u64>| seconds.map(|seconds| Some(Duration::from_secs(seconds)));
    let never = |after: Option<Duration>| after.filter(|after| !after.is_zero());
    apply! { builder,
        working_dir: &settings.work_dir,
        cpus: settings.cpus,
        memory: settings.memory.map(|size| size.0),
        disk: settings.disk.map(|size| size.0),
        gpus: settings.gpus,
        user: &settings.user,
        name: &settings.name,
        start_timeout: settings.start_timeout.map(Duration::from_secs),
        auto_stop: after(settings.auto_stop).map(never),
        auto_archive: after(settings.auto_archive),
        auto_delete: after(settings.auto_delete),
        ttl: after(settings.ttl),
    }
    Ok(builder)
}

/// Attaches to an existing sandbox, whose settings cannot be changed.
pub(super) fn attach(settings: &DaytonaSettings, id: &str) -> Result<Attach, Failure> {
    let mut attach = DaytonaSandbox::attach(id)
        // The user named this sandbox, so it may be one that others created.
        .allow_foreign(true)
        .mode(settings.mode)
        .recover(settings.recover);
    attach = settings.agents()?.into_iter().fold(attach, Attach::agent);
    apply! { attach,
        working_dir: &settings.work_dir,
        start_timeout: settings.start_timeout.map(Duration::from_secs),
    }
    Ok(attach)
}
