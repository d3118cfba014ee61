//! The sessions of a backend: where they are kept, for a server and for `agentbox sessions`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sessions::{Engine, SessionManager, SessionManagerBuilder};

#[cfg(not(all(local, feature = "daytona", feature = "docker", feature = "k8s")))]
use super::absent;
#[cfg(feature = "daytona")]
use super::daytona;
#[cfg(feature = "docker")]
use super::docker;
#[cfg(feature = "k8s")]
use super::k8s;
use super::kind::Kind;
#[cfg(local)]
use super::local;
use super::spec::BackendSpec;
use super::state;
use crate::exit::{Failure, environment, usage};
use crate::system;

/// Starts to build the manager of a server's sessions. `root` is the directory that holds
/// their files, if they are in one.
pub(crate) async fn manager(
    spec: &BackendSpec,
    root: Option<&Path>,
) -> Result<SessionManagerBuilder, Failure> {
    let builder = SessionManager::builder();
    match spec.kind {
        Kind::State => Ok(builder.factory(state::session_factory(spec, root)?)),
        #[cfg(feature = "docker")]
        Kind::Docker => {
            let engine = docker::serving_engine(spec, root).await?;
            Ok(builder.engine(Arc::new(engine)))
        }
        #[cfg(feature = "k8s")]
        Kind::K8s => {
            let engine = k8s::serving_engine(spec, root).await?;
            Ok(builder.engine(Arc::new(engine)))
        }
        #[cfg(feature = "daytona")]
        Kind::Daytona => {
            let engine = daytona::serving_engine(spec, root)?;
            Ok(builder.engine(Arc::new(engine)))
        }
        #[cfg(local)]
        Kind::Local => {
            let engine = local::serving_engine(spec, root)?;
            Ok(builder.engine(Arc::new(engine)))
        }
        _ => Ok(builder.engine(engine(spec, root).await?)),
    }
}

/// Returns the engine that keeps the sessions of servers with the same settings.
#[cfg_attr(
    not(feature = "k8s"),
    allow(clippy::unused_async, reason = "pods are asked for")
)]
pub(crate) async fn engine(
    spec: &BackendSpec,
    root: Option<&Path>,
) -> Result<Arc<dyn Engine>, Failure> {
    #[cfg(not(any(local, containers)))]
    let _ = root;
    match spec.kind {
        #[cfg(local)]
        Kind::Local => Ok(Arc::new(local::session_engine(spec, root)?)),
        #[cfg(not(local))]
        Kind::Local => Err(absent::without_local("--workspaces")),
        #[cfg(feature = "docker")]
        Kind::Docker => Ok(Arc::new(docker::session_engine(spec, root)?)),
        #[cfg(not(feature = "docker"))]
        Kind::Docker => Err(absent::without_docker()),
        #[cfg(feature = "k8s")]
        Kind::K8s => Ok(Arc::new(k8s::session_engine(spec, root).await?)),
        #[cfg(not(feature = "k8s"))]
        Kind::K8s => Err(absent::without_k8s()),
        #[cfg(feature = "daytona")]
        Kind::Daytona => Ok(Arc::new(daytona::session_engine(spec, root)?)),
        #[cfg(not(feature = "daytona"))]
        Kind::Daytona => Err(absent::without_daytona()),
        Kind::State => Err(Failure::usage(
            "sessions of state are in the memory of their server; only --backend local, docker, k8s \
             and daytona keep them elsewhere",
        )),
        Kind::Composite | Kind::Mounts => Err(without_sessions(spec)),
    }
}

/// Checks that a server can have sessions, without opening anything.
pub(crate) fn check(spec: &BackendSpec, root: Option<&Path>) -> Result<(), Failure> {
    match spec.kind {
        Kind::State => state::session_factory(spec, root).map(|_| ()),
        #[cfg(local)]
        Kind::Local => local::check_sessions(spec, root),
        #[cfg(not(local))]
        Kind::Local => Err(absent::without_local("--workspaces")),
        Kind::Docker => super::check(spec).map(|_| ()),
        #[cfg(feature = "k8s")]
        Kind::K8s => k8s::check_sessions(spec, root),
        #[cfg(not(feature = "k8s"))]
        Kind::K8s => Err(absent::without_k8s()),
        #[cfg(feature = "daytona")]
        Kind::Daytona => daytona::check_sessions(spec, root),
        #[cfg(not(feature = "daytona"))]
        Kind::Daytona => Err(absent::without_daytona()),
        Kind::Composite | Kind::Mounts => Err(without_sessions(spec)),
    }
}

fn without_sessions(spec: &BackendSpec) -> Failure {
    usage!(
        "{} has no sessions; use --backend local, docker:IMAGE, k8s:IMAGE, daytona:IMAGE or state, or \
         leave out --workspaces and names of tokens",
        spec.kind.usage()
    )
}

/// Creates the directory that holds the files of sessions if it is missing, and returns it
/// with links resolved.
pub(crate) fn make_root(directory: &Path) -> Result<PathBuf, Failure> {
    let made = system::make_directories(directory, 0o700);
    let found = made.and_then(|()| directory.canonicalize());
    found.map_err(|error| {
        environment!(
            "{} cannot hold the files of sessions: {error}; name another directory with \
             --workspaces",
            directory.display()
        )
    })
}
