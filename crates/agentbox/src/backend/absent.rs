//! Backends that this build does not include. Their names are known, so that a config
//! file works with every build, and their errors name alternatives.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{BackendSpec, Opened, docker};
use crate::exit::Failure;

pub(super) fn check(spec: &BackendSpec) -> Result<Vec<&'static str>, Failure> {
    Err(failure(spec))
}

pub(super) fn open(spec: &BackendSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
    std::future::ready(Err(failure(spec))).boxed()
}

fn failure(spec: &BackendSpec) -> Failure {
    match spec.kind.name == docker::KIND.name {
        true => without_docker(),
        false => without_local(spec.kind.usage),
    }
}

/// Returns an error that names alternatives to local directories.
pub(crate) fn without_local(what: &str) -> Failure {
    Failure::environment(format!(
        "{what} needs Linux and a build with the feature local; use --backend state:FILE for \
         files in memory, or --backend docker:IMAGE for files and commands in a container"
    ))
}

/// Returns an error that names alternatives to containers.
fn without_docker() -> Failure {
    Failure::environment(
        "docker needs a build with the feature docker; build one, or use --backend local:DIR for \
         a directory of this machine, or --backend state:FILE for files in memory",
    )
}
