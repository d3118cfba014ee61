//! Backends that this build does not have. They are known by name, so that a config file
//! counts everywhere, and say what to use instead.

use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{Opened, Wanted};
use crate::exit::Failure;

pub(super) fn check(wanted: &Wanted) -> Result<Vec<&'static str>, Failure> {
    Err(failure(wanted.kind.usage))
}

pub(super) fn open(wanted: &Wanted) -> BoxFuture<'_, Result<Opened, Failure>> {
    std::future::ready(Err(failure(wanted.kind.usage))).boxed()
}

/// What to do without the directories of this machine.
pub(crate) fn failure(what: &str) -> Failure {
    Failure::environment(format!(
        "{what} needs Linux and a build with the feature local; use --backend state:FILE for \
         files in memory, or --backend docker:IMAGE for files and commands in a container"
    ))
}
