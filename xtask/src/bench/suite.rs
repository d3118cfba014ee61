//! The measured workloads, which `xtask/bench/suites.toml` lists by benchmark target.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// The peers: their names in rows and tables, and in the report.
const PEERS: [(&str, &str); 11] = [
    ("python", "pydantic-ai-backend 0.2.29"),
    ("rg", "ripgrep 15.2.0"),
    ("tokio", "a bare tokio::process"),
    ("npm", "@modelcontextprotocol/server-filesystem 2026.8.31"),
    ("exec", "the Docker API by bollard"),
    ("cli", "the program docker"),
    ("kube", "the Kubernetes API by kube"),
    ("kubectl", "the program kubectl"),
    ("local", "backend-local on the host"),
    ("read", "a file of the same size"),
    ("confined", "a confined command without a view"),
];

/// Returns every suite, in the order of the report.
pub(super) fn suites() -> Result<Vec<Suite>> {
    #[derive(Deserialize)]
    struct File {
        suites: Vec<Suite>,
        rows: BTreeMap<String, Vec<Row>>,
    }
    let mut file: File = toml::from_str(include_str!("../../bench/suites.toml"))
        .context("xtask/bench/suites.toml is not as it should be")?;
    for suite in &mut file.suites {
        suite.rows = file.rows.remove(&suite.name).unwrap_or_default();
    }
    Ok(file.suites)
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
    #[serde(default)]
    pub(super) brief: bool,
    pub(super) bench: String,
    #[serde(default)]
    pub(super) features: Vec<String>,
    #[serde(default)]
    pub(super) plots: Vec<Plot>,
    #[serde(skip)]
    pub(super) rows: Vec<Row>,
}

/// Curves of rows that differ in one number.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plot {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) x: String,
}

impl Suite {
    pub(super) fn needs_docker(&self) -> bool {
        self.name.starts_with("docker")
    }

    /// Whether it needs a Kubernetes cluster of our own.
    pub(super) fn needs_cluster(&self) -> bool {
        self.name.starts_with("k8s")
    }

    /// Whether it needs the program for sandboxes.
    pub(super) fn needs_agent(&self) -> bool {
        self.needs_docker() || self.needs_cluster() || self.name.starts_with("daytona")
    }

    /// Whether it needs fake nodes in that cluster.
    pub(super) fn needs_fake_nodes(&self) -> bool {
        self.name == "k8s_scale"
    }

    /// Returns the rows of a plot.
    pub(super) fn plotted(&self, plot: &str) -> impl Iterator<Item = &Row> {
        let is_in = move |row: &&Row| row.plot.as_deref() == Some(plot);
        self.rows.iter().filter(is_in)
    }

    pub(super) fn ids(&self) -> Vec<&str> {
        self.rows.iter().map(|row| row.id.as_str()).collect()
    }

    /// Returns the peers of its rows, each once.
    pub(super) fn peers(&self) -> Vec<&'static str> {
        let used = self.rows.iter().filter_map(|row| row.peer.as_deref());
        let used: BTreeSet<_> = used.collect();
        let names = PEERS.iter().map(|(name, _)| *name);
        names.filter(|name| used.contains(name)).collect()
    }
}

/// One workload compared with one peer. The id is that of the benchmark.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) what: String,
    pub(super) peer: Option<String>,
    pub(super) ratio: Option<f64>,
    pub(super) under: Option<f64>,
    pub(super) mib: Option<f64>,
    pub(super) unit: Option<String>,
    pub(super) plot: Option<String>,
    pub(super) x: Option<f64>,
    #[serde(default)]
    pub(super) slow: bool,
}

impl Row {
    /// Whether its figures are bytes.
    pub(super) fn is_memory(&self) -> bool {
        self.id.contains("_memory")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::provision::RIPGREP_VERSION;

    #[test]
    fn rows_have_ids_of_their_own_known_peers_and_no_ends_of_cells() {
        let suites: &[Suite] = suites().unwrap().leak();
        assert!(suites.iter().any(Suite::needs_docker));
        assert!(suites.iter().any(Suite::needs_cluster));
        assert!(suites.iter().any(Suite::needs_fake_nodes));
        let needs_only_agent = |suite: &Suite| suite.needs_agent() && !suite.needs_docker();
        assert!(suites.iter().any(needs_only_agent));
        let mut ids = BTreeSet::new();
        let rows = |suite: &'static Suite| suite.rows.iter().map(move |row| (suite, row));
        for (suite, row) in suites.iter().flat_map(rows) {
            assert!(ids.insert(&row.id), "{}", row.id);
            assert!(!row.what.replace("\\|", "").contains('|'), "{}", row.id);
            let is_known = |plot: &String| suite.plots.iter().any(|known| known.name == *plot);
            assert!(row.plot.iter().all(is_known), "{}", row.id);
            assert_eq!(row.plot.is_some(), row.x.is_some(), "{}", row.id);
            let Some(peer) = row.peer.as_deref() else {
                continue;
            };
            assert!(PEERS.iter().any(|(name, _)| *name == peer), "{peer}");
            if suite.turns && peer != "npm" {
                // The benchmark knows the peer by the id.
                assert!(row.id.starts_with(&suite.name), "{}", row.id);
                let ending = if peer == "python" { "py" } else { peer };
                assert!(row.id.ends_with(&format!("_{ending}")), "{}", row.id);
            }
        }
        assert_eq!(describe("rg"), format!("ripgrep {RIPGREP_VERSION}"));
    }

    #[test]
    fn every_suite_has_its_benchmark_and_python_its_rows() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let script = include_str!("../../bench/peer_apart.py");
        for suite in suites().unwrap() {
            assert!(root.join(&suite.bench).is_file(), "{}", suite.bench);
            for row in suite.rows.iter().filter(|row| row.peer.is_some()) {
                let is_there = script.contains(&format!("\"{}\": ", row.id));
                assert_eq!(is_there, !suite.turns, "{}", row.id);
            }
        }
    }
}
