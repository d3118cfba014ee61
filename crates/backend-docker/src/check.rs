//! Validation of options. Every error says what would be valid.

use std::path::{Component, Path};

use backend_core::{Error, ErrorKind, Quoted, Result};
use sandbox_runtime::options;

use crate::labels::PREFIX;

/// The sockets of container engines.
const SOCKETS: [&str; 6] = [
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/var/run/crio/crio.sock",
    "/run/crio/crio.sock",
];

/// Returns the error for an invalid option unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::check::wrong(format!($($message)+)));
        }
    };
}

pub(crate) use ensure;

pub(crate) fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message.into()).on("docker")
}

/// Whether a text begins with a letter or digit and has only these and `others`.
pub(crate) fn is_word(text: &str, others: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric()) && has_only(text, others)
}

fn has_only(text: &str, others: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

/// Checks the name of a container, volume, network or OCI runtime.
pub(crate) fn name(what: &str, text: &str) -> Result<()> {
    ensure!(
        is_word(text, "_.-") && (2..=128).contains(&text.len()),
        "{} is not a valid name for {what}; use 2 to 128 letters, digits, '_', '.' and '-', a letter or digit first",
        Quoted::new(text)
    );
    Ok(())
}

/// Checks a container to attach to: a name or an id.
pub(crate) fn container(text: &str) -> Result<()> {
    name("a container", text)
}

pub(crate) fn network(text: &str) -> Result<()> {
    ensure!(
        text != "host",
        "the host's network is a relaxation; use Relaxation::HostNetwork"
    );
    name("a network", text)
}

pub(crate) fn label(key: &str, value: &str) -> Result<()> {
    let shown = Quoted::new(key);
    ensure!(
        (1..=256).contains(&key.len()) && has_only(key, "._-/"),
        "{shown} is not a valid label key; use letters, digits, '.', '_', '-' and '/'"
    );
    ensure!(
        !key.starts_with(PREFIX),
        "labels that begin with '{PREFIX}' are reserved for sandboxes; choose another key than {shown}"
    );
    ensure!(
        !value.contains('\0') && value.len() <= 64 * 1024,
        "the value of the label {key} holds a NUL character or is longer than 64 KiB; shorten it"
    );
    Ok(())
}

/// Checks `user`, `uid`, `user:group` or `uid:gid`.
pub(crate) fn user(text: &str) -> Result<()> {
    let is_part = |part: &str| {
        let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
        (1..=64).contains(&part.len())
            && !part.starts_with('-')
            && has_only(part, "_.-")
            && (!is_number || part.parse::<u32>().is_ok_and(|id| id < u32::MAX))
    };
    let mut parts = text.splitn(2, ':');
    ensure!(
        parts.all(is_part),
        "{} is not a valid user; write NAME, UID, NAME:GROUP or UID:GID",
        Quoted::new(text)
    );
    Ok(())
}

/// Checks a kernel capability, with its prefix or without.
pub(crate) fn capability(text: &str) -> Result<()> {
    options::capability(text.strip_prefix("CAP_").unwrap_or(text))
}

/// Checks that a seccomp profile is a JSON object.
pub(crate) fn seccomp(text: &str) -> Result<()> {
    let parsed = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text);
    parsed.map(drop).map_err(|source| {
        wrong("the seccomp profile is not a JSON object; give the profile's text, not its path")
            .with_source(source)
    })
}

pub(crate) fn tmpfs(options: &str) -> Result<()> {
    ensure!(
        options.len() <= 256 && has_only(options, "=,._-"),
        "{} are not valid tmpfs options; write them as size=64m,mode=1777",
        Quoted::new(options)
    );
    Ok(())
}

/// Checks a host path that is mounted into a sandbox: it must be absolute, and must not
/// lead to a container engine or to the kernel.
pub(crate) fn host_source(source: &Path, engine: Option<&Path>) -> Result<()> {
    let shown = source.to_string_lossy();
    let shown = Quoted::new(&shown);
    let has_parent = source
        .components()
        .any(|part| matches!(part, Component::ParentDir));
    ensure!(
        source.is_absolute() && !has_parent && source.to_str().is_some(),
        "{shown} cannot be mounted; give an absolute path without '..'"
    );
    let mut sockets = SOCKETS.iter().map(Path::new).chain(engine);
    ensure!(
        !sockets.any(|socket| socket.starts_with(source)),
        "{shown} holds the socket of a container engine, which is the whole host; mount another directory"
    );
    let mut kernel = ["/proc", "/sys", "/dev"].iter();
    ensure!(
        !kernel.any(|directory| source.starts_with(directory)),
        "{shown} exposes the host's kernel to the sandbox; mount another directory"
    );
    Ok(())
}

#[cfg(test)]
mod tests;
