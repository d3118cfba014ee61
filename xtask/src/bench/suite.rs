//! The measured workloads, which `xtask/bench/suites.toml` lists by benchmark target.

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// The peers: their names in rows and tables, and in the report.
const PEERS: [(&str, &str); 7] = [
    ("python", "pydantic-ai-backend 0.2.29"),
    ("rg", "ripgrep 15.2.0"),
    ("tokio", "a bare tokio::process"),
    ("npm", "@modelcontextprotocol/server-filesystem 2026.8.31"),
    ("exec", "the Docker API by bollard"),
    ("cli", "the program docker"),
    ("local", "backend-local on the host"),
];

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

/// Returns the name of a peer for the report; of a package with its version.
pub(super) fn describe(peer: &str) -> &'static str {
    let known = PEERS.iter().find(|(name, _)| *name == peer);
    known.map_or("an unknown peer", |(_, description)| *description)
}

/// A benchmark target and its peers. The fields are described in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Suite {
    pub(super) name: String,
    pub(super) title: String,
    #[serde(default)]
    pub(super) turns: bool,
    pub(super) package: String,
    #[serde(default)]
    pub(super) features: Vec<String>,
    bench: Option<String>,
    script: Option<String>,
    pub(super) rows: Vec<Row>,
}

impl Suite {
    /// Whether it needs a Docker daemon.
    pub(super) fn needs_docker(&self) -> bool {
        self.name.starts_with(DOCKER)
    }

    pub(super) fn bench(&self) -> &str {
        self.bench.as_ref().unwrap_or(&self.name)
    }

    pub(super) fn script(&self) -> String {
        let default = || format!("xtask/bench/peer_{}.py", self.name);
        self.script.clone().unwrap_or_else(default)
    }
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
    pub(super) peer: Option<String>,
    pub(super) target: Option<Target>,
}

/// A performance goal.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Target {
    Faster(f64),
    Within(f64),
    Lighter(f64),
    Under(f64),
    Below(f64),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::provision::RIPGREP_VERSION;

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
    fn every_peer_is_known() {
        let known = PEERS.map(|(name, _)| name);
        let suites = suites().unwrap();
        let rows = suites.iter().flat_map(|suite| &suite.rows);
        for peer in rows.filter_map(|row| row.peer.as_deref()) {
            assert!(known.contains(&peer), "{peer}");
        }
        assert_eq!(describe("rg"), format!("ripgrep {RIPGREP_VERSION}"));
    }

    #[test]
    fn a_row_in_turns_names_its_suite_and_its_peer() {
        for suite in suites().unwrap().iter().filter(|suite| suite.turns) {
            for row in &suite.rows {
                assert!(row.id.starts_with(&suite.name), "{}", row.id);
                let ending = match row.peer.as_deref() {
                    None | Some("npm") => continue,
                    Some("python") => "py",
                    Some(peer) => peer,
                };
                assert!(row.id.ends_with(&format!("_{ending}")), "{}", row.id);
            }
        }
    }
}
