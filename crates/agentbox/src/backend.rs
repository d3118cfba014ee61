//! The backends that the program can open, given as `NAME` or `NAME:ARGUMENT`.
//!
//! A new backend needs one more file, a variant of [`Kind`], and its arms here.

/// Passes each value that is there to a method of a builder.
#[cfg(any(local, containers))]
macro_rules! apply {
    ($builder:ident, $($method:ident: $value:expr),* $(,)?) => {
        $(if let Some(value) = $value {
            $builder = $builder.$method(value);
        })*
    };
}

#[cfg(any(
    test,
    not(all(local, feature = "daytona", feature = "docker", feature = "k8s"))
))]
pub(crate) mod absent;
#[cfg(containers)]
pub(crate) mod agents;
mod composite;
#[cfg(feature = "daytona")]
pub(crate) mod daytona;
#[cfg(feature = "docker")]
pub(crate) mod docker;
#[cfg(feature = "k8s")]
pub(crate) mod k8s;
pub(crate) mod kind;
#[cfg(local)]
pub(crate) mod local;
#[cfg(local)]
mod mounts;
pub(crate) mod open_backend;
#[cfg(containers)]
mod runtimes;
pub(crate) mod session_engine;
#[cfg(containers)]
mod size;
pub(crate) mod spec;
mod state;
#[cfg(containers)]
mod target;

use futures::FutureExt as _;
use futures::future::BoxFuture;

use self::kind::Kind;
use self::open_backend::OpenBackend;
use self::spec::BackendSpec;
use crate::exit::Failure;

pub(crate) fn open(spec: &BackendSpec) -> BoxFuture<'_, Result<OpenBackend, Failure>> {
    async move {
        match spec.kind {
            Kind::State => state::open(spec),
            Kind::Composite => composite::open(spec).await,
            #[cfg(local)]
            Kind::Local => local::open(spec),
            #[cfg(local)]
            Kind::Mounts => mounts::open(spec),
            #[cfg(not(local))]
            Kind::Local | Kind::Mounts => Err(absent::without_local(spec.kind.usage())),
            #[cfg(feature = "docker")]
            Kind::Docker => docker::open(spec).await,
            #[cfg(not(feature = "docker"))]
            Kind::Docker => Err(absent::without_docker()),
            #[cfg(feature = "k8s")]
            Kind::K8s => k8s::open(spec).await,
            #[cfg(not(feature = "k8s"))]
            Kind::K8s => Err(absent::without_k8s()),
            #[cfg(feature = "daytona")]
            Kind::Daytona => daytona::open(spec).await,
            #[cfg(not(feature = "daytona"))]
            Kind::Daytona => Err(absent::without_daytona()),
        }
    }
    .boxed()
}

/// Checks a specification without opening it. Returns the kinds of its backends.
pub(crate) fn check(spec: &BackendSpec) -> Result<Vec<Kind>, Failure> {
    match spec.kind {
        Kind::State => state::check(spec)?,
        Kind::Composite => return composite::check(spec),
        #[cfg(local)]
        Kind::Local => local::check(spec)?,
        #[cfg(local)]
        Kind::Mounts => mounts::check(spec)?,
        #[cfg(not(local))]
        Kind::Local | Kind::Mounts => return Err(absent::without_local(spec.kind.usage())),
        #[cfg(feature = "docker")]
        Kind::Docker => docker::check(spec)?,
        #[cfg(not(feature = "docker"))]
        Kind::Docker => return Err(absent::without_docker()),
        #[cfg(feature = "k8s")]
        Kind::K8s => k8s::check(spec)?,
        #[cfg(not(feature = "k8s"))]
        Kind::K8s => return Err(absent::without_k8s()),
        #[cfg(feature = "daytona")]
        Kind::Daytona => daytona::check(spec)?,
        #[cfg(not(feature = "daytona"))]
        Kind::Daytona => return Err(absent::without_daytona()),
    }
    Ok(vec![spec.kind])
}
