//! The default environment of every sandbox, which its runtime or user can override.

use std::collections::BTreeMap;

use sandbox_runtime::environment;

use crate::image::CaBundle;

#[derive(Debug, Default)]
pub(crate) struct EnvironmentSources<'a> {
    pub(crate) root: bool,
    /// The user's home, if neither the image nor the user sets one.
    pub(crate) home: Option<&'a str>,
    pub(crate) certificates: Option<&'a str>,
    pub(crate) runtime: Option<&'a BTreeMap<String, String>>,
}

/// Returns all variables as `NAME=value`. The user's values take precedence over the
/// runtime's, and those over the defaults.
pub(crate) fn merged(
    parts: &EnvironmentSources<'_>,
    own: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut all: BTreeMap<&str, &str> = environment(parts.root);
    if let Some(home) = parts.home {
        all.insert("HOME", home);
    }
    if let Some(path) = parts.certificates {
        let names = CaBundle::VARIABLES.into_iter().chain(["UV_SSL_CERT_FILE"]);
        all.extend(names.map(|name| (name, path)));
    }
    for set in parts.runtime.into_iter().chain([own]) {
        all.extend(set.iter().map(|(name, value)| (&**name, &**value)));
    }
    all.iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn the_user_beats_the_runtime_which_beats_the_defaults() {
        let runtime = set(&[("PAGER", "less"), ("LANG", "C")]);
        let parts = EnvironmentSources {
            runtime: Some(&runtime),
            ..EnvironmentSources::default()
        };
        let all = merged(&parts, &set(&[("LANG", "de_DE.UTF-8")]));
        for expected in ["PAGER=less", "LANG=de_DE.UTF-8", "GIT_PAGER=cat"] {
            assert!(all.iter().any(|one| one == expected), "{expected}");
        }
        assert_eq!(all.iter().filter(|one| one.starts_with("LANG=")).count(), 1);
    }

    #[test]
    fn only_root_uses_the_system_python() {
        let has = |root| {
            let parts = EnvironmentSources {
                root,
                ..EnvironmentSources::default()
            };
            merged(&parts, &BTreeMap::new()).contains(&"UV_SYSTEM_PYTHON=1".to_owned())
        };
        assert!(has(true) && !has(false));
    }

    #[test]
    fn certificates_reach_every_program_and_can_be_overridden() {
        let parts = EnvironmentSources {
            certificates: Some("/ca"),
            home: Some("/home/agent"),
            ..EnvironmentSources::default()
        };
        let all = merged(&parts, &set(&[("PIP_CERT", "/mine")]));
        assert!(all.contains(&"SSL_CERT_FILE=/ca".to_owned()));
        assert!(all.contains(&"PIP_CERT=/mine".to_owned()));
        assert!(all.contains(&"HOME=/home/agent".to_owned()));
    }
}
