//! Errors about backends that this build does not include. They name alternatives.

use crate::exit::Failure;
#[cfg(not(local))]
use crate::exit::environment;

/// Returns an error that names alternatives to local directories.
#[cfg(not(local))]
pub(crate) fn without_local(what: &str) -> Failure {
    environment!(
        "{what} needs Linux and a build with the feature local; use --backend state:FILE for \
         files in memory, or --backend docker:IMAGE for files and commands in a container"
    )
}

/// Returns an error that names alternatives to containers.
#[cfg(not(feature = "docker"))]
pub(crate) fn without_docker() -> Failure {
    Failure::environment(
        "docker needs a build with the feature docker; build one, or use --backend local:DIR for \
         a directory of this machine, or --backend state:FILE for files in memory",
    )
}

/// Returns an error that says how to get pods, and names the alternative.
#[cfg(any(test, not(feature = "k8s")))]
pub(crate) fn without_k8s() -> Failure {
    Failure::environment(
        "k8s needs a build with the feature k8s: a release has it, and so has what cargo install \
         --path crates/agentbox --features k8s builds from the sources; take one of them, or use \
         --backend docker:IMAGE for a container of this machine",
    )
}

/// Returns an error that says how to get hosted sandboxes, and names the alternative.
#[cfg(any(test, not(feature = "daytona")))]
pub(crate) fn without_daytona() -> Failure {
    Failure::environment(
        "daytona needs a build with the feature daytona: a release has it, and so has what cargo \
         install --path crates/agentbox --features daytona builds from the sources; take one of \
         them, or use --backend docker:IMAGE for a container of this machine",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_feature_is_named_and_how_to_get_it() {
        for (said, feature) in [(without_k8s(), "k8s"), (without_daytona(), "daytona")] {
            let said = said.to_string();
            let named = ["the feature", "--features"].map(|word| format!("{word} {feature}"));
            for part in named.iter().map(String::as_str).chain(["docker:IMAGE"]) {
                assert!(said.contains(part), "{said}");
            }
            assert!(!said.contains(". "), "one sentence: {said}");
        }
    }
}
