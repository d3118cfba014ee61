//! Validation of options. Every error says what would be valid.

use std::time::Duration;

use backend_core::{Error, ErrorKind, Quoted, Result, VPath};
use serde_json::Value;

use crate::labels::{MANAGED_BY, PREFIX};

/// The smallest memory limit that container runtimes accept.
pub(crate) const LEAST_MEMORY: u64 = 6 * 1024 * 1024;

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
    Error::new(ErrorKind::Config, message.into()).on("k8s")
}

fn has_only(text: &str, others: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

/// Whether a text begins and ends with a letter or digit and has only these and `others`.
fn is_word(text: &str, others: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(ends) && text.ends_with(ends) && has_only(text, others)
}

/// Checks the name of a pod. It is also a label and the pod's host name.
pub(crate) fn pod(text: &str) -> Result<()> {
    ensure!(
        is_word(text, "-") && is_small(text) && text.len() <= 63,
        "{} is not a valid name for a pod; use up to 63 small letters, digits and '-', a letter or digit first and last",
        Quoted::new(text)
    );
    Ok(())
}

/// Checks the name of another object: a namespace, a claim, a secret.
pub(crate) fn name(what: &str, text: &str) -> Result<()> {
    ensure!(
        is_word(text, "-.") && is_small(text) && text.len() <= 253,
        "{} is not a valid name for {what}; use small letters, digits, '-' and '.', a letter or digit first and last",
        Quoted::new(text)
    );
    Ok(())
}

fn is_small(text: &str) -> bool {
    !text.contains(|c: char| c.is_ascii_uppercase())
}

pub(crate) fn variable(name: &str, value: &str) -> Result<()> {
    let has_digit_first = name.starts_with(|first: char| first.is_ascii_digit());
    ensure!(
        !name.is_empty() && !has_digit_first && has_only(name, "_"),
        "{} is not a valid variable name; use letters, digits and '_', no digit first",
        Quoted::new(name)
    );
    ensure!(
        !value.contains('\0'),
        "the value of the variable {name} holds a NUL character; remove it"
    );
    Ok(())
}

/// Checks the key of a label, an annotation or a node selector: `name` or
/// `prefix.example/name`.
fn key(what: &str, text: &str) -> Result<()> {
    let (prefix, short) = text.split_once('/').unwrap_or(("a", text));
    ensure!(
        is_word(prefix, "-.") && is_small(prefix) && is_word(short, "-_.") && short.len() <= 63,
        "{} is not a valid key for {what}; write NAME or DOMAIN/NAME",
        Quoted::new(text)
    );
    Ok(())
}

fn unreserved(what: &str, text: &str) -> Result<()> {
    ensure!(
        !text.starts_with(PREFIX) && text != MANAGED_BY,
        "{} is reserved for sandboxes; choose another key for {what}",
        Quoted::new(text)
    );
    Ok(())
}

fn label_value(text: &str) -> Result<()> {
    ensure!(
        text.is_empty() || (is_word(text, "-_.") && text.len() <= 63),
        "{} is not a valid value for a label; use up to 63 letters, digits, '-', '_' and '.'",
        Quoted::new(text)
    );
    Ok(())
}

pub(crate) fn label(text: &str, value: &str) -> Result<()> {
    key("a label", text)?;
    unreserved("a label", text)?;
    label_value(value)
}

pub(crate) fn annotation(text: &str, value: &str) -> Result<()> {
    key("an annotation", text)?;
    unreserved("an annotation", text)?;
    ensure!(
        value.len() <= 64 * 1024,
        "the value of the annotation {text} is longer than 64 KiB; shorten it"
    );
    Ok(())
}

pub(crate) fn node_label(text: &str, value: &str) -> Result<()> {
    key("a node selector", text)?;
    label_value(value)
}

pub(crate) fn capability(text: &str) -> Result<()> {
    let is_good = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
    ensure!(
        (1..=32).contains(&text.len()) && text.bytes().all(is_good) && !text.starts_with("CAP_"),
        "{} is not a valid capability; write it as NET_BIND_SERVICE",
        Quoted::new(text)
    );
    ensure!(
        text != "ALL",
        "all capabilities at once make a privileged container; name those that are needed"
    );
    Ok(())
}

/// Checks that this can be an image reference. The node checks the full grammar.
pub(crate) fn image(text: &str) -> Result<()> {
    ensure!(
        is_word(text, "._-/:@") && text.len() <= 512,
        "{} is not a valid image reference; write NAME:TAG or NAME@DIGEST",
        Quoted::new(text)
    );
    Ok(())
}

pub(crate) fn object(what: &str, value: &Value) -> Result<()> {
    ensure!(
        value.is_object(),
        "{what} is not a JSON object; write it as in the manifest of a pod"
    );
    Ok(())
}

/// Checks the time after which an idle sandbox is stopped.
pub(crate) fn idle_timeout(idle: Option<Duration>) -> Result<()> {
    ensure!(
        idle != Some(Duration::ZERO),
        "an idle timeout of zero stops every sandbox at once; leave it out for none"
    );
    Ok(())
}

/// Checks a path in the sandbox for the working directory or a mount.
pub(crate) fn absolute_path(what: &str, text: &str) -> Result<VPath> {
    let shown = Quoted::new(text);
    ensure!(
        text.starts_with('/'),
        "{shown} is not a valid path for {what}; give an absolute path"
    );
    let path = VPath::parse(text)
        .map_err(|source| wrong(format!("{shown} is not a valid path for {what}: {source}")))?;
    let first = path.components().next().unwrap_or_default();
    ensure!(
        !["proc", "sys", "dev"].contains(&first),
        "{shown} is not a valid path for {what}; the kernel's own directories cannot be used"
    );
    Ok(path)
}

/// Checks a path in the sandbox that can be a mount point.
pub(crate) fn mount_point(text: &str) -> Result<VPath> {
    let path = absolute_path("a mount", text)?;
    ensure!(
        !path.is_root(),
        "nothing can be mounted on '/'; give a directory"
    );
    // Kubernetes separates parts of a mount by it.
    ensure!(
        !path.as_str().contains(':'),
        "'{path}' is not a valid path for a mount; leave out ':'"
    );
    Ok(path)
}

#[cfg(test)]
mod tests;
