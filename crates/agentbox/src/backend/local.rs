//! `local:DIR`: a directory of this machine, with commands.

#[cfg(local)]
mod directory;

#[cfg(not(local))]
use super::absent::{check, open};
use super::{Argument, Kind};

#[cfg(local)]
use self::directory::{check, open};

pub(super) const KIND: Kind = Kind {
    name: "local",
    usage: "local:DIR",
    argument: Argument::Directory,
    keys: &[
        "allowed_directories",
        "commands",
        "confinement",
        "cpu_seconds",
        "environment",
        "file_bytes",
        "memory_bytes",
        "network",
        "processes",
        "read",
        "read_only",
        "shell",
        "variables",
        "write",
    ],
    paths: &["allowed_directories", "read", "write"],
    check,
    open,
};
