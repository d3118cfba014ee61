//! The variables of other programs that affect containers and pods.

use crate::backend::kind::Kind;
use crate::backend::spec::BackendSpec;
use crate::files::from_here;
use crate::system;

/// The variables, their meaning, and the backends that read them.
const VARIABLES: &[(&str, Meaning, &[Kind])] = &[
    ("DOCKER_CONFIG", Meaning::Path, &[Kind::Docker]),
    ("DOCKER_HOST", Meaning::Text, &[Kind::Docker]),
    ("KUBECONFIG", Meaning::Paths, &[Kind::K8s]),
    // A pod's own cluster.
    ("KUBERNETES_SERVICE_HOST", Meaning::Text, &[Kind::K8s]),
    ("KUBERNETES_SERVICE_PORT", Meaning::Text, &[Kind::K8s]),
    ("SANDBOX_AGENT", Meaning::Path, &[Kind::Docker, Kind::K8s]),
];

#[derive(Debug, Clone, Copy)]
enum Meaning {
    Text,
    /// A path on this machine.
    Path,
    /// Several, as in `PATH`.
    Paths,
}

impl Meaning {
    /// Returns a value that means the same in any directory.
    fn absolute(self, value: &str) -> String {
        match self {
            Self::Text => value.to_owned(),
            Self::Path => from_here(value),
            Self::Paths => {
                let paths = std::env::split_paths(value);
                let paths = paths.map(|path| from_here(&path.to_string_lossy()));
                let paths = std::env::join_paths(paths).unwrap_or_default();
                paths.to_string_lossy().into_owned()
            }
        }
    }
}

/// Returns the variables that are set and that a backend reads, with values that mean the
/// same in any directory.
pub(super) fn set_for(spec: &BackendSpec) -> Vec<(&'static str, String)> {
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
        let paths = Meaning::Paths.absolute("/etc/a:b");
        assert_eq!(paths, format!("/etc/a:{here}/b"));
        assert_eq!(Meaning::Path.absolute("/etc/a:b"), "/etc/a:b");
        assert_eq!(Meaning::Text.absolute("a"), "a");
    }
}
