//! The crates whose line coverage is measured.

use anyhow::Result;

use crate::metadata::Package;
use crate::test_all::stage::Ctx;

/// The measured crates by directory, and the share of lines in percent that the tests
/// of these crates must reach.
pub(super) const FLOORS: &[(&str, f64)] = &[
    ("backend-composite", 95.0),
    ("backend-core", 97.0),
    ("backend-local", 92.0),
    ("backend-run", 93.0),
    ("backend-state", 97.0),
    ("backend-sync", 86.0),
    ("command-line", 96.0),
    ("console-tools", 95.0),
    ("hashline", 98.0),
    ("permissions", 95.0),
    ("sandbox-runtime", 96.0),
    // Lower since the code that containers and pods share moved here: most tests of it are in
    // backend-docker and backend-k8s, which are not measured.
    ("sandbox-shell", 93.0),
    ("sandbox-wire", 90.0),
];

/// Returns the measured packages.
pub(super) fn packages(ctx: &Ctx) -> Result<Vec<Package>> {
    let mut packages = ctx.workspace.metadata()?.packages;
    packages.retain(|package| FLOORS.iter().any(|(name, _)| package.dir().ends_with(name)));
    Ok(packages)
}
