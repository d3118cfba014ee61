//! What is measured: one table per benchmark target.

/// A benchmark target, and the peer that does the same work.
#[derive(Debug)]
pub(super) struct Suite {
    pub(super) package: &'static str,
    /// The name of the `[[bench]]` target.
    pub(super) bench: &'static str,
    /// The peer's package and version on PyPI.
    pub(super) peer_package: &'static str,
    pub(super) peer_version: &'static str,
    /// The script in `xtask/bench/` that prints the peer's times.
    pub(super) peer_script: &'static str,
    pub(super) rows: &'static [Row],
}

impl Suite {
    /// The peer as it is named in the report.
    pub(super) fn peer(&self) -> String {
        format!("{} {}", self.peer_package, self.peer_version)
    }
}

/// One workload.
#[derive(Debug)]
pub(super) struct Row {
    /// The id of the criterion benchmark, and the key in the peer's output.
    pub(super) id: &'static str,
    pub(super) what: &'static str,
    /// How many times faster than the peer we have to be.
    pub(super) target: Option<f64>,
}

/// The in-memory backend against the in-memory backend of the Python package.
pub(super) const STATE: Suite = Suite {
    package: "backend-state",
    bench: "state",
    peer_package: "pydantic-ai-backend",
    peer_version: "0.2.29",
    peer_script: "peer_state.py",
    rows: &[
        Row {
            id: "state_write",
            what: "write 1 KiB into a store of 20k files",
            target: None,
        },
        Row {
            id: "state_ls_20k",
            what: "list 200 entries in a store of 20k files",
            target: Some(20.0),
        },
        Row {
            id: "state_ls_1m",
            what: "list 200 entries in a store of 1M files",
            target: Some(20.0),
        },
        Row {
            id: "state_snapshot_1m",
            what: "keep the state of 1M files",
            target: None,
        },
        Row {
            id: "state_glob_20k",
            what: "glob `**/*.py`, 10k of 20k files match",
            target: None,
        },
        Row {
            id: "state_grep_20k",
            what: "grep 20k files, 400k lines match",
            target: Some(10.0),
        },
        Row {
            id: "state_window_100mb",
            what: "second read at line 1M of 100 MB in memory",
            target: None,
        },
        Row {
            id: "text_window_100mb",
            what: "50 lines at line 1M of a 100 MB file on disk",
            target: Some(10.0),
        },
    ],
};
