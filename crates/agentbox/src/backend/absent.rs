//! Backends that this build does not have. They are known by name, so that a config file
//! counts everywhere, and say what to use instead.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{Opened, Wanted, docker};
use crate::exit::Failure;

pub(super) fn check(wanted: &Wanted) -> Result<Vec<&'static str>, Failure> {
    Err(failure(wanted))
}

pub(super) fn open(wanted: &Wanted) -> BoxFuture<'_, Result<Opened, Failure>> {
    std::future::ready(Err(failure(wanted))).boxed()
}

fn failure(wanted: &Wanted) -> Failure {
    match wanted.kind.name == docker::KIND.name {
        true => without_docker(),
        false => without_local(wanted.kind.usage),
    }
}

/// Says what to use instead of the directories of this machine.
pub(crate) fn without_local(what: &str) -> Failure {
    Failure::environment(format!(
        "{what} needs Linux and a build with the feature local; use --backend state:FILE for \
         files in memory, or --backend docker:IMAGE for files and commands in a container"
    ))
}

/// Says what to use instead of containers.
fn without_docker() -> Failure {
    Failure::environment(
        "docker needs a build with the feature docker; build one, or use --backend local:DIR for \
         a directory of this machine, or --backend state:FILE for files in memory",
    )
}
