//! The variables of other programs that affect sandboxes.

use crate::backend::kind::Kind;
use crate::backend::spec::BackendSpec;
use crate::files::from_here;
use crate::system;

/// The variables, their meaning, and the backends that read them.
const VARIABLES: &[(&str, Meaning, &[Kind])] = &[
    ("DAYTONA_API_KEY", Meaning::Secret, &[Kind::Daytona]),
    ("DAYTONA_API_URL", Meaning::Text, &[Kind::Daytona]),
    ("DAYTONA_JWT_TOKEN", Meaning::Secret, &[Kind::Daytona]),
    ("DAYTONA_ORGANIZATION_ID", Meaning::Text, &[Kind::Daytona]),
    ("DAYTONA_TARGET", Meaning::Text, &[Kind::Daytona]),
    ("DAYTONA_V0_API_URL", Meaning::Text, &[Kind::Daytona]),
    ("DOCKER_CONFIG", Meaning::Path, &[Kind::Docker]),
    ("DOCKER_HOST", Meaning::Text, &[Kind::Docker]),
    ("KUBECONFIG", Meaning::Paths, &[Kind::K8s]),
    // A pod's own cluster.
    ("KUBERNETES_SERVICE_HOST", Meaning::Text, &[Kind::K8s]),
    ("KUBERNETES_SERVICE_PORT", Meaning::Text, &[Kind::K8s]),
    (
        "SANDBOX_AGENT",
        Meaning::Path,
        &[Kind::Docker, Kind::K8s, Kind::Daytona],
    ),
];

#[derive(Debug, Clone, Copy)]
enum Meaning {
    Text,
    /// A path on this machine.
    Path,
    /// Several, as in `PATH`.
    Paths,
    /// It is not to be written into a file of another program.
    Secret,
}

impl Meaning {
    /// Returns a value that means the same in any directory; `None` for a secret.
    fn absolute(self, value: &str) -> Option<String> {
        Some(match self {
            Self::Secret => return None,
            Self::Text => value.to_owned(),
            Self::Path => from_here(value),
            Self::Paths => {
                let paths = std::env::split_paths(value);
                let paths = paths.map(|path| from_here(&path.to_string_lossy()));
                let paths = std::env::join_paths(paths).unwrap_or_default();
                paths.to_string_lossy().into_owned()
            }
        })
    }
}

/// Returns the variables that are set and that a backend reads, with values that mean the
/// same in any directory, and secrets without a value.
pub(super) fn set_for(spec: &BackendSpec) -> Vec<(&'static str, Option<String>)> {
    let is_read = |kinds: &[Kind]| kinds.iter().any(|kind| spec.may_include(*kind));
    let known = VARIABLES.iter().filter(|(.., kinds)| is_read(kinds));
    let set = known.filter_map(|(name, meaning, _)| {
        let value = system::variable(name)?.into_string().ok()?;
        Some((*name, meaning.absolute(&value)))
    });
    set.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn every_path_of_a_list_is_absolute() {
        let here = from_here("");
        let absolute = |meaning: Meaning, value| meaning.absolute(value).unwrap_or_default();
        let paths = absolute(Meaning::Paths, "/etc/a:b");
        assert_eq!(paths, format!("/etc/a:{here}/b"));
        assert_eq!(absolute(Meaning::Path, "/etc/a:b"), "/etc/a:b");
        assert_eq!(absolute(Meaning::Text, "a"), "a");
        assert_eq!(Meaning::Secret.absolute("hush"), None);
    }
}
