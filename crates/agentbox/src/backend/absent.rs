//! Errors about backends that this build does not include. They name alternatives.

use crate::exit::{Failure, environment};

/// Returns an error that names alternatives to local directories.
pub(crate) fn without_local(what: &str) -> Failure {
    environment!(
        "{what} needs Linux and a build with the feature local; use --backend state:FILE for \
         files in memory, or --backend docker:IMAGE for files and commands in a container"
    )
}

/// Returns an error that names alternatives to containers.
pub(super) fn without_docker() -> Failure {
    Failure::environment(
        "docker needs a build with the feature docker; build one, or use --backend local:DIR for \
         a directory of this machine, or --backend state:FILE for files in memory",
    )
}
