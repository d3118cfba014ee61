//! The measured workloads, which `xtask/bench/suites.toml` lists by benchmark target.

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::provision::RIPGREP_VERSION;

/// The Python package used as a peer, and its version on PyPI.
pub(super) const PYTHON_PACKAGE: (&str, &str) = ("pydantic-ai-backend", "0.2.29");

/// The filesystem server of the MCP authors, and its version on npm.
pub(super) const NPM_PACKAGE: (&str, &str) =
    ("@modelcontextprotocol/server-filesystem", "2026.8.31");

/// The beginning of the names of suites that need a Docker daemon.
const DOCKER: &str = "docker";

/// Returns every suite, in the order of the report.
pub(super) fn suites() -> Result<Vec<Suite>> {
    #[derive(Deserialize)]
    struct Suites {
        suite: Vec<Suite>,
    }
    let all: Suites = toml::from_str(include_str!("../../bench/suites.toml"))
        .context("xtask/bench/suites.toml is not as it should be")?;
    Ok(all.suite)
}

/// A benchmark target and its peers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Suite {
    /// The name on the command line.
    pub(super) name: String,
    /// The heading of its section in the report.
    pub(super) title: String,
    pub(super) method: Method,
    pub(super) package: String,
    /// The features of the package that the target needs.
    #[serde(default)]
    pub(super) features: Vec<String>,
    /// The name of the `[[bench]]` target.
    pub(super) bench: String,
    /// The script of the Python peer, or a source that describes the workloads.
    pub(super) script: String,
    pub(super) rows: Vec<Row>,
}

impl Suite {
    /// Whether it needs a Docker daemon.
    pub(super) fn needs_docker(&self) -> bool {
        self.name.starts_with(DOCKER)
    }
}

/// The way a suite is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Method {
    /// Our side by criterion, then the peer by its script.
    Criterion,
    /// Our calls and the peer's in turns, by the benchmark target itself.
    Turns,
}

/// One workload compared with one peer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    /// The id in the benchmark target and in the peer's script.
    pub(super) id: String,
    /// The description for a Markdown table.
    pub(super) what: String,
    /// `None` if the row is about our own time or memory.
    pub(super) peer: Option<Peer>,
    pub(super) target: Option<Target>,
}

/// A peer that does the same work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Peer {
    Python,
    Rg,
    /// A bare `tokio::process`.
    Tokio,
    /// A server on Node.
    Npm,
    /// One exec through the Docker API per call.
    Exec,
    /// The `docker` program.
    Cli,
    /// Our backend for a local directory.
    Local,
}

impl Peer {
    /// Returns the peer's name for the report.
    pub(super) fn describe(self) -> String {
        let of_package = |(name, version)| format!("{name} {version}");
        match self {
            Self::Python => of_package(PYTHON_PACKAGE),
            Self::Rg => of_package(("ripgrep", RIPGREP_VERSION)),
            Self::Tokio => "a bare tokio::process".to_owned(),
            Self::Npm => of_package(NPM_PACKAGE),
            Self::Exec => "the Docker API by bollard".to_owned(),
            Self::Cli => "the program docker".to_owned(),
            Self::Local => "backend-local on the host".to_owned(),
        }
    }

    /// Returns the peer's name for a table.
    pub(super) fn short(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Rg => "rg",
            Self::Tokio => "tokio",
            Self::Npm => "npm",
            Self::Exec => "exec",
            Self::Cli => "cli",
            Self::Local => "local",
        }
    }
}

/// A performance goal.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Target {
    /// The peer takes at least this many times as long as we do.
    Faster(f64),
    /// We take at most this many times as long as the peer.
    Within(f64),
    /// The peer uses at least this many times as much memory as we do.
    Lighter(f64),
    /// We take less time than this, in nanoseconds.
    Under(f64),
    /// We use less memory than this, in bytes.
    Below(f64),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_no_description_ends_its_cell() {
        let suites = suites().unwrap();
        let mut ids = BTreeSet::new();
        for row in suites.iter().flat_map(|suite| &suite.rows) {
            assert!(ids.insert(&row.id), "{}", row.id);
            assert!(!row.what.replace("\\|", "").contains('|'), "{}", row.id);
        }
        let mut names = suites.iter().map(|suite| suite.name.as_str());
        assert!(names.any(|name| name == DOCKER));
    }

    #[test]
    fn a_row_in_turns_names_its_suite_and_its_peer() {
        for suite in suites().unwrap() {
            for row in suite.rows.iter().filter(|_| suite.method == Method::Turns) {
                assert!(row.id.starts_with(&suite.name), "{}", row.id);
                let ending = match row.peer {
                    None | Some(Peer::Npm) => continue,
                    Some(Peer::Python) => "py",
                    Some(peer) => peer.short(),
                };
                assert!(row.id.ends_with(&format!("_{ending}")), "{}", row.id);
            }
        }
    }
}
