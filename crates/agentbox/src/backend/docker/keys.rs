//! The keys of the table `[docker]`, which every build knows.

/// The keys of the table, in order.
pub(super) const KEYS: &[&str] = &[
    "address",
    "agent",
    "base_images",
    "ca_bundle",
    "capabilities",
    "cpu_shares",
    "cpus",
    "delivery",
    "env",
    "idle_timeout",
    "image",
    "keep",
    "labels",
    "logins",
    "memory",
    "mode",
    "name",
    "network",
    "oci_runtime",
    "pids",
    "read_only",
    "relax",
    "runtime",
    "runtimes",
    "seccomp",
    "swap",
    "tmpfs",
    "user",
    "volumes",
    "work_dir",
];

/// The keys whose values are paths of this machine.
pub(super) const PATHS: &[&str] = &[
    "agent",
    "ca_bundle",
    "logins",
    "runtimes",
    "seccomp",
    "volumes",
];
