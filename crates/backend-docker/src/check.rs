//! Validation of options. Every error says what would be valid.

use std::path::{Component, Path};
use std::time::Duration;

use backend_core::{Error, ErrorKind, Quoted, Result, VPath};

/// The smallest memory limit that a daemon accepts.
pub(crate) const LEAST_MEMORY: u64 = 6 * 1024 * 1024;

/// The error for an invalid option.
pub(crate) fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message.into()).on("docker")
}

fn quoted(text: &str) -> Quoted {
    Quoted::new(text)
}

/// Whether a daemon accepts this as the name of an object.
fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        && (2..=128).contains(&text.len())
}

/// Checks the name of a container, volume, network or OCI runtime.
pub(crate) fn name(what: &str, text: &str) -> Result<()> {
    if is_name(text) {
        return Ok(());
    }
    Err(wrong(format!(
        "{} is not a valid name for {what}; use 2 to 128 letters, digits, '_', '.' and '-', a letter or digit first",
        quoted(text)
    )))
}

/// Checks a container to attach to: a name or an id.
pub(crate) fn container(text: &str) -> Result<()> {
    name("a container", text)
}

/// Checks the name of a network.
pub(crate) fn network(text: &str) -> Result<()> {
    if text == "host" {
        return Err(wrong(
            "the host's network is a relaxation; use Relaxation::HostNetwork",
        ));
    }
    name("a network", text)
}

/// Checks an environment variable.
pub(crate) fn variable(name: &str, value: &str) -> Result<()> {
    let mut bytes = name.bytes();
    let first = bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_');
    if !first || !bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(wrong(format!(
            "{} is not a valid variable name; use letters, digits and '_', no digit first",
            quoted(name)
        )));
    }
    if value.contains('\0') {
        return Err(wrong(format!(
            "the value of the variable {name} holds a NUL character; remove it"
        )));
    }
    Ok(())
}

/// Checks a label set by the user.
pub(crate) fn label(key: &str, value: &str) -> Result<()> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
    if key.is_empty() || key.len() > 256 || !key.bytes().all(good) {
        return Err(wrong(format!(
            "{} is not a valid label key; use letters, digits, '.', '_', '-' and '/'",
            quoted(key)
        )));
    }
    if key.starts_with(crate::labels::PREFIX) {
        return Err(wrong(format!(
            "labels that begin with '{}' are reserved for sandboxes; choose another key than {}",
            crate::labels::PREFIX,
            quoted(key)
        )));
    }
    if value.contains('\0') || value.len() > 64 * 1024 {
        return Err(wrong(format!(
            "the value of the label {key} holds a NUL character or is longer than 64 KiB; shorten it"
        )));
    }
    Ok(())
}

/// Checks `user`, `uid`, `user:group` or `uid:gid`.
pub(crate) fn user(text: &str) -> Result<()> {
    let part = |part: &str| {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        let number = part.bytes().all(|byte| byte.is_ascii_digit());
        !part.is_empty()
            && part.len() <= 64
            && !part.starts_with('-')
            && part.bytes().all(good)
            && (!number || part.parse::<u32>().is_ok_and(|id| id < u32::MAX))
    };
    let (name, group) = match text.split_once(':') {
        Some((name, group)) => (name, Some(group)),
        None => (text, None),
    };
    if part(name) && group.is_none_or(part) {
        return Ok(());
    }
    Err(wrong(format!(
        "{} is not a valid user; write NAME, UID, NAME:GROUP or UID:GID",
        quoted(text)
    )))
}

/// Checks a kernel capability.
pub(crate) fn capability(text: &str) -> Result<()> {
    let short = text.strip_prefix("CAP_").unwrap_or(text);
    let good = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
    if short.is_empty() || short.len() > 32 || !short.bytes().all(good) {
        return Err(wrong(format!(
            "{} is not a valid capability; write it as NET_BIND_SERVICE",
            quoted(text)
        )));
    }
    if short == "ALL" {
        return Err(wrong(
            "all capabilities at once make a privileged container; name those that are needed",
        ));
    }
    Ok(())
}

/// Checks that a daemon can take this for an image reference. The daemon checks the
/// full grammar.
pub(crate) fn image(text: &str) -> Result<()> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    let first = text
        .bytes()
        .next()
        .is_some_and(|first| first.is_ascii_alphanumeric());
    if first && text.len() <= 512 && text.bytes().all(good) {
        return Ok(());
    }
    Err(wrong(format!(
        "{} is not a valid image reference; write NAME:TAG or NAME@DIGEST",
        quoted(text)
    )))
}

/// Checks that a seccomp profile is a JSON object.
pub(crate) fn seccomp(text: &str) -> Result<()> {
    let parsed = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text);
    parsed.map(drop).map_err(|source| {
        wrong("the seccomp profile is not a JSON object; give the profile's text, not its path")
            .with_source(source)
    })
}

/// Checks the options of a tmpfs.
pub(crate) fn tmpfs(options: &str) -> Result<()> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"=,._-".contains(&byte);
    if options.len() <= 256 && options.bytes().all(good) {
        return Ok(());
    }
    Err(wrong(format!(
        "{} are not valid tmpfs options; write them as size=64m,mode=1777",
        quoted(options)
    )))
}

/// Checks the time after which an idle sandbox is stopped.
pub(crate) fn idle_timeout(idle: Option<Duration>) -> Result<()> {
    if idle.is_some_and(|idle| idle.is_zero()) {
        return Err(wrong(
            "an idle timeout of zero stops every sandbox at once; leave it out for none",
        ));
    }
    Ok(())
}

/// Checks a path in the sandbox for the working directory or a mount.
pub(crate) fn absolute_path(what: &str, text: &str) -> Result<VPath> {
    if !text.starts_with('/') {
        return Err(wrong(format!(
            "{} is not a valid path for {what}; give an absolute path",
            quoted(text)
        )));
    }
    let path = VPath::parse(text).map_err(|source| {
        wrong(format!(
            "{} is not a valid path for {what}: {source}",
            quoted(text)
        ))
    })?;
    let taken = ["/proc", "/sys", "/dev"];
    let first = path.components().next().unwrap_or_default().to_owned();
    if taken.iter().any(|taken| taken[1..] == first) {
        return Err(wrong(format!(
            "{} is not a valid path for {what}; the kernel's own directories cannot be used",
            quoted(text)
        )));
    }
    Ok(path)
}

/// Checks a path in the sandbox that can be a mount point.
pub(crate) fn mount_point(text: &str) -> Result<VPath> {
    let path = absolute_path("a mount", text)?;
    if path.is_root() {
        return Err(wrong("nothing can be mounted on '/'; give a directory"));
    }
    Ok(path)
}

/// Checks a host path that is mounted into a sandbox: it must be absolute, and must not
/// lead to a container engine or to the kernel.
pub(crate) fn host_source(source: &Path, engine: Option<&Path>) -> Result<()> {
    let shown = source.to_string_lossy();
    let lexical = source
        .components()
        .all(|part| !matches!(part, Component::ParentDir));
    if !source.is_absolute() || !lexical || source.to_str().is_none() {
        return Err(wrong(format!(
            "{} cannot be mounted; give an absolute path without '..'",
            quoted(&shown)
        )));
    }
    let sockets = [
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/podman/podman.sock",
        "/var/run/crio/crio.sock",
        "/run/crio/crio.sock",
    ];
    let mut sockets = sockets.iter().map(Path::new).chain(engine);
    if sockets.any(|socket| socket.starts_with(source)) {
        return Err(wrong(format!(
            "{} holds the socket of a container engine, which is the whole host; mount another directory",
            quoted(&shown)
        )));
    }
    if ["/proc", "/sys", "/dev"]
        .iter()
        .any(|kernel| source.starts_with(kernel))
    {
        return Err(wrong(format!(
            "{} exposes the host's kernel to the sandbox; mount another directory",
            quoted(&shown)
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
