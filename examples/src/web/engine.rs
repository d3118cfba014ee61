//! The engine of the sandboxes: containers where there is a Docker daemon, else confined
//! commands in a directory, or what `--backend` names.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backend_core::ErrorKind;
use backend_core::ops::ContentHash;
use backend_docker::image::{BuildOptions, CaBundle};
use backend_docker::{Daemon, DockerSandbox};
use backend_local::{Commands, Confinement, Environment, Landlock, Limits};
use sandbox_wire::agent::AgentBinary;
use sessions::{DockerEngine, Engine, LocalEngine};

use super::{Error, Program};

/// How long a daemon may take to say that it is there.
const DAEMON_TIME: Duration = Duration::from_secs(5);

/// Characters of a space's name, at most.
const SPACE_CHARS: usize = 32;

const MIB: u64 = 1024 * 1024;

/// The engine, and a description for the user.
pub(super) type Place = (Arc<dyn Engine>, String);

/// Opens the engine that `--backend` names.
pub(super) async fn open<P: Program>(backend: &str, files: &Path) -> Result<Place, Error> {
    let (kind, argument) = match backend.split_once(':') {
        Some((kind, argument)) => (kind, Some(argument)),
        None => (backend, None),
    };
    match kind {
        "auto" => match running_daemon().await {
            Some(daemon) => docker::<P>(daemon, argument, files).await,
            None => {
                let (engine, what) = local(files)?;
                Ok((engine, format!("{what}, because there is no Docker daemon")))
            }
        },
        "local" => local(files),
        "docker" => docker::<P>(Daemon::from_env()?, argument, files).await,
        "k8s" => k8s::<P>(argument).await,
        "daytona" => daytona::<P>(argument),
        _ => Err(
            format!("there is no backend {kind}; use auto, local, docker, k8s or daytona").into(),
        ),
    }
}

async fn running_daemon() -> Option<Daemon> {
    let daemon = Daemon::from_env().ok()?;
    let answered = tokio::time::timeout(DAEMON_TIME, daemon.info()).await;
    answered.ok()?.ok()?;
    Some(daemon)
}

/// Directories of this machine. Commands reach nothing else, and no network.
fn local(files: &Path) -> Result<Place, Error> {
    let commands = Commands::new()
        // The environment of this process holds the key of the model.
        .environment(Environment::empty())
        .confinement(Confinement::Landlock(Landlock::new()))
        .limits(Limits::default().file_bytes(256 * MIB));
    let opened = LocalEngine::builder(files)
        .commands(commands)
        .session_quota(512 * MIB)
        .open();
    let engine = opened.map_err(|error| match error.kind() {
        ErrorKind::Unsupported => Error::from(format!(
            "commands cannot be confined here: {}; use --backend docker",
            error.chain()
        )),
        _ => error.into(),
    })?;
    Ok((
        Arc::new(engine),
        "a confined directory of the server".to_owned(),
    ))
}

/// Containers, with files in directories of this machine.
async fn docker<P: Program>(
    daemon: Daemon,
    image: Option<&str>,
    files: &Path,
) -> Result<Place, Error> {
    let (runtime, described) = P::runtime(image)?;
    // Servers with the same directory share their sessions, and others have their own.
    let hash = ContentHash::of(files.as_os_str().as_encoded_bytes()).to_string();
    let mut space = format!("{}{hash}", space::<P>());
    space.truncate(SPACE_CHARS);
    let mut template = DockerSandbox::builder().memory(512 * MIB);
    let mut what = format!("a container of {described}");
    match AgentBinary::locate_from_env()? {
        Some(agent) => template = template.agent(agent),
        None => what += " without terminals, because SANDBOX_AGENT names no agent",
    }
    println!("making {what} ready");
    let engine = DockerEngine::builder(daemon)
        .space(space)
        .template(template)
        .images(images()?)
        .runtime(runtime.clone())
        .workspace_root(files)
        // One is ready for the next visitor. Warming it up fetches the image.
        .pool(runtime, 1)
        .build()?;
    engine.warm().await?;
    Ok((Arc::new(engine), what))
}

/// How images are built: with the certificates that this machine trusts, if it names some.
#[allow(clippy::disallowed_methods, reason = "a program reads its environment")]
fn images() -> Result<BuildOptions, Error> {
    let options = BuildOptions::new();
    Ok(match std::env::var_os("SSL_CERT_FILE") {
        Some(file) => options.with_ca_bundle(CaBundle::from_file(file)?),
        None => options,
    })
}

/// Returns the name of the program's sessions where others have sessions too: letters only.
fn space<P: Program>() -> String {
    P::NAME.replace('_', "")
}

#[cfg(feature = "k8s")]
async fn k8s<P: Program>(image: Option<&str>) -> Result<Place, Error> {
    let (runtime, described) = P::runtime(image)?;
    let mut template = backend_k8s::K8sSandbox::builder();
    if let Some(agent) = AgentBinary::locate_from_env()? {
        template = template.agent(agent);
    }
    let engine = sessions::K8sEngine::builder(backend_k8s::Cluster::from_env().await?)
        .space(space::<P>())
        .template(template)
        .runtime(runtime)
        .volumes(512 * MIB)
        .build()?;
    Ok((Arc::new(engine), format!("a pod of {described}")))
}

#[cfg(not(feature = "k8s"))]
#[allow(
    clippy::unused_async,
    clippy::extra_unused_type_parameters,
    reason = "as with the feature"
)]
async fn k8s<P: Program>(_: Option<&str>) -> Result<Place, Error> {
    Err("pods are not compiled in; build with --features k8s".into())
}

#[cfg(feature = "daytona")]
fn daytona<P: Program>(snapshot: Option<&str>) -> Result<Place, Error> {
    let mut template = backend_daytona::DaytonaSandbox::builder();
    if let Some(agent) = AgentBinary::locate_from_env()? {
        template = template.agent(agent);
    }
    if let Some(snapshot) = snapshot {
        template = template.snapshot(snapshot);
    }
    let engine = sessions::DaytonaEngine::builder(backend_daytona::Account::from_env()?)
        .space(space::<P>())
        .template(template)
        .build()?;
    Ok((Arc::new(engine), "a hosted sandbox of Daytona".to_owned()))
}

#[cfg(not(feature = "daytona"))]
#[allow(clippy::extra_unused_type_parameters, reason = "as with the feature")]
fn daytona<P: Program>(_: Option<&str>) -> Result<Place, Error> {
    Err("Daytona is not compiled in; build with --features daytona".into())
}
