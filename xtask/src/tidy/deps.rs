//! The allowed dependencies between the crates of the workspace.
//!
//! The layers of the project are defined in this table and nowhere else. A new
//! dependency needs a change of the table, and with it a justification.

use crate::metadata::{Dependency, DependencyKind, Package};
use crate::tidy::findings::Finding;

/// The crates for backends that create sandboxes.
const SANDBOXES: &str = "agentbox-sandbox-runtime agentbox-sandbox-shell backend-core sandbox-wire";

/// Stands for all crates of the workspace.
const ANYTHING: &str = "*";

/// The workspace crates that each crate may use, including in its build script. External
/// ones are not restricted here.
const RULES: &[(&str, &str)] = &[
    ("agentbox-cli", ANYTHING),
    ("agentbox-command-line", "backend-core"),
    ("agentbox-hashline", ""),
    ("agentbox-permissions", "agentbox-command-line backend-core"),
    (
        "agentbox-sandbox-agent",
        "backend-core backend-local sandbox-wire",
    ),
    ("agentbox-sandbox-runtime", "backend-core"),
    (
        "agentbox-sandbox-shell",
        "backend-core backend-run sandbox-wire",
    ),
    (
        "agentbox-sessions",
        "agentbox-sandbox-runtime backend-core backend-daytona backend-docker backend-k8s \
         backend-local console-tools",
    ),
    ("backend-composite", "backend-core"),
    ("backend-core", ""),
    ("backend-daytona", SANDBOXES),
    ("backend-docker", SANDBOXES),
    ("backend-k8s", SANDBOXES),
    ("backend-local", "backend-core backend-run"),
    ("backend-run", "backend-core"),
    (
        "backend-mounts",
        "agentbox-permissions backend-composite backend-core backend-local",
    ),
    ("backend-state", "backend-core"),
    ("backend-sync", "backend-core console-tools"),
    ("backend-testkit", "backend-core"),
    (
        "console-mcp",
        "agentbox-permissions backend-core backend-mounts console-tools",
    ),
    ("console-rig", "backend-core console-tools"),
    (
        "console-testkit",
        "agentbox-permissions backend-core console-tools",
    ),
    (
        "console-tools",
        "agentbox-hashline agentbox-permissions backend-core backend-mounts",
    ),
    ("daytona-testkit", ""),
    ("examples", ANYTHING),
    ("predictive_analytics", ANYTHING),
    ("sandbox-wire", "backend-core backend-run"),
    ("web_app", ANYTHING),
    ("xtask", ANYTHING),
];

/// Further crates that the tests of any crate may use.
const FOR_TESTS: &[&str] = &["backend-core", "backend-state", "backend-testkit"];

/// Further crates for the tests of crates that wrap any backend.
const FOR_TESTS_OF_WRAPPERS: &[(&str, &str)] = &[
    ("agentbox-permissions", "backend-local"),
    ("agentbox-permissions", "backend-mounts"),
    ("agentbox-sandbox-shell", "backend-local"),
    ("agentbox-sessions", "daytona-testkit"),
    ("backend-composite", "backend-local"),
    ("backend-composite", "backend-sync"),
    ("backend-daytona", "backend-local"),
    ("backend-daytona", "console-testkit"),
    ("backend-daytona", "daytona-testkit"),
    ("backend-docker", "backend-local"),
    ("backend-docker", "console-testkit"),
    ("backend-k8s", "backend-local"),
    ("backend-k8s", "console-testkit"),
    ("backend-sync", "backend-local"),
    ("console-mcp", "backend-local"),
    ("console-testkit", "backend-local"),
    ("console-tools", "backend-local"),
    ("console-tools", "console-testkit"),
    ("sandbox-wire", "backend-local"),
];

/// External crates that a crate must not depend on: the core and the runtimes require no
/// async runtime and no transport.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("agentbox-sandbox-runtime", TRANSPORTS),
    ("backend-core", TRANSPORTS),
];

const TRANSPORTS: &[&str] = &["axum", "bollard", "hyper", "kube", "reqwest", "tokio"];

/// Checks every dependency of every member against the tables above.
pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let members: Vec<_> = packages
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    packages
        .iter()
        .flat_map(|package| check_package(package, &members))
        .collect()
}

fn check_package(package: &Package, members: &[&str]) -> Vec<Finding> {
    let name = package.name.as_str();
    let Some((_, allowed)) = RULES.iter().find(|(rule, _)| *rule == name) else {
        let message = "not in the table of allowed dependencies: add it to xtask/src/tidy/deps.rs";
        return vec![Finding::error(name, message)];
    };
    let check = |dependency: &Dependency| {
        let message = if members.contains(&dependency.name.as_str()) {
            check_member(dependency, name, allowed)
        } else {
            check_foreign(dependency, name)
        };
        message.map(|message| Finding::error(name, message))
    };
    package.dependencies.iter().filter_map(check).collect()
}

fn check_member(dependency: &Dependency, package: &str, allowed: &str) -> Option<String> {
    let name = dependency.name.as_str();
    let mut names = allowed.split(' ');
    let is_for_tests = dependency.kind == Some(DependencyKind::Dev);
    let is_known_to_tests =
        FOR_TESTS.contains(&name) || FOR_TESTS_OF_WRAPPERS.contains(&(package, name));
    if names.any(|it| it == ANYTHING || it == name) || (is_for_tests && is_known_to_tests) {
        return None;
    }
    let allowed = match allowed {
        "" => "none".to_owned(),
        names => names.replace(' ', ", "),
    };
    Some(format!(
        "must not depend on `{name}`; allowed crates of the workspace: {allowed}"
    ))
}

fn check_foreign(dependency: &Dependency, package: &str) -> Option<String> {
    let (_, forbidden) = FORBIDDEN.iter().find(|(name, _)| *name == package)?;
    let is_own = dependency.kind != Some(DependencyKind::Dev);
    (is_own && forbidden.contains(&dependency.name.as_str()))
        .then(|| format!("must not depend on `{}`", dependency.name))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::tidy::findings::shown;

    fn package(name: &str, dependencies: &[(&str, Option<DependencyKind>)]) -> Package {
        let dependency = |(name, kind): &(&str, _)| Dependency {
            name: (*name).to_owned(),
            kind: *kind,
        };
        Package {
            name: name.to_owned(),
            version: String::new(),
            manifest_path: PathBuf::new(),
            dependencies: dependencies.iter().map(dependency).collect(),
            features: Default::default(),
            targets: Vec::new(),
            publish: None,
        }
    }

    const MEMBERS: &[&str] = &[
        "backend-core",
        "backend-local",
        "backend-state",
        "backend-testkit",
    ];

    fn check_one(package: &Package) -> Vec<String> {
        shown(&check_package(package, MEMBERS))
    }

    #[test]
    fn an_edge_in_the_table_is_fine() {
        let package = package("backend-state", &[("backend-core", None), ("imbl", None)]);
        assert_eq!(check_one(&package), [""; 0]);
    }

    #[test]
    fn an_edge_outside_the_table_is_refused() {
        let state = package("backend-state", &[("backend-local", None)]);
        let expected = "backend-state: error: must not depend on `backend-local`; \
                        allowed crates of the workspace: backend-core";
        assert_eq!(check_one(&state), [expected]);
        let core = package(
            "backend-core",
            &[("backend-state", Some(DependencyKind::Build))],
        );
        assert!(check_one(&core)[0].ends_with("workspace: none"));
    }

    #[test]
    fn tests_may_use_the_testkit_but_not_another_backend() {
        let dev = Some(DependencyKind::Dev);
        let fine = [
            ("backend-testkit", dev),
            ("backend-state", dev),
            ("tokio", dev),
        ];
        assert_eq!(check_one(&package("backend-core", &fine)), [""; 0]);
        assert_eq!(
            check_one(&package("backend-core", &[("backend-local", dev)])).len(),
            1
        );
        assert_eq!(
            check_one(&package("backend-core", &[("backend-testkit", None)])).len(),
            1
        );
    }

    #[test]
    fn the_core_needs_no_runtime() {
        let core = package("backend-core", &[("tokio", None), ("bytes", None)]);
        assert_eq!(
            check_one(&core),
            ["backend-core: error: must not depend on `tokio`"]
        );
        assert_eq!(
            check_one(&package("backend-local", &[("tokio", None)])),
            [""; 0]
        );
    }

    #[test]
    fn an_unknown_crate_has_to_be_added() {
        let found = shown(&check(&[package("backend-new", &[])]));
        assert!(found[0].contains("add it to"), "{found:?}");
    }

    #[test]
    fn crates_above_the_layers_may_use_anything() {
        assert_eq!(
            check_one(&package("examples", &[("backend-local", None)])),
            [""; 0]
        );
    }
}
