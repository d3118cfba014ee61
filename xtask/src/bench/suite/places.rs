//! Suites for containers, composite trees, and blocking calls.

use super::{Method, Peer, Row, Suite, Target, alone};

/// A row about containers.
const fn docker(id: &'static str, what: &'static str, peer: Peer, target: Target) -> Row {
    Row {
        id,
        what,
        peer,
        target: Some(target),
    }
}

/// Containers with our agent against other ways into a container.
pub(in crate::bench) const DOCKER: Suite = Suite {
    name: "docker",
    title: "A Docker container",
    method: Method::Interleaved,
    package: "backend-docker",
    bench: "docker",
    peer_script: "xtask/bench/peer_docker.py",
    rows: &[
        docker(
            "docker_read_exec",
            "read 1 KiB",
            Peer::Exec,
            Target::Faster(100.0),
        ),
        docker(
            "docker_read_py",
            "read 1 KiB",
            Peer::Python,
            Target::Faster(100.0),
        ),
        docker(
            "docker_write_exec",
            "write 1 KiB over a file",
            Peer::Exec,
            Target::Faster(100.0),
        ),
        docker(
            "docker_write_py",
            "write 1 KiB over a file",
            Peer::Python,
            Target::Faster(100.0),
        ),
        alone("docker_read_1mib", "read 1 MiB", 10e6),
        docker(
            "docker_execute_cli",
            "run `true` in a shell",
            Peer::Cli,
            Target::Faster(10.0),
        ),
        docker(
            "docker_grep_local",
            "grep `fn main` in 10k files",
            Peer::Local,
            Target::Within(1.5),
        ),
        docker(
            "docker_start_exec",
            "from nothing to the end of the first command (exec: create, start, exec)",
            Peer::Exec,
            Target::Within(1.15),
        ),
    ],
};

/// A row without a target, for comparison by the reader.
const fn plain(id: &'static str, what: &'static str) -> Row {
    Row {
        id,
        what,
        peer: Peer::Nobody,
        target: None,
    }
}

/// Several backends as one tree.
pub(in crate::bench) const COMPOSITE: Suite = Suite {
    name: "composite",
    title: "Several backends as one tree",
    method: Method::Criterion,
    package: "backend-composite",
    bench: "composite",
    peer_script: "crates/backend-composite/benches/composite.rs",
    rows: &[
        alone(
            "composite_route_1k",
            "find the route among 1,000 prefixes",
            1_000.0,
        ),
        plain(
            "composite_read_1k",
            "a small read in memory through 1,000 routes",
        ),
        plain("composite_read_direct", "the same read without routes"),
        alone("composite_read_added", "what the routes add", 1_000.0),
    ],
};

/// Blocking calls.
pub(in crate::bench) const SYNC: Suite = Suite {
    name: "sync",
    title: "Calls from programs without async",
    method: Method::Criterion,
    package: "backend-sync",
    bench: "sync",
    peer_script: "crates/backend-sync/benches/sync.rs",
    rows: &[
        plain("sync_bare_stat", "`stat` in memory, awaited"),
        alone(
            "sync_stat_plain_thread",
            "the same, blocking, from a plain thread",
            15_000.0,
        ),
        alone(
            "sync_stat_in_current_thread",
            "the same, blocking, from inside a runtime of one thread",
            50_000.0,
        ),
        alone(
            "sync_stat_in_multi_thread",
            "the same, blocking, from inside a runtime of several threads",
            50_000.0,
        ),
    ],
};
