//! Validation of options. Every error says what would be valid.

use backend_core::{Error, ErrorKind, Quoted, Result, VPath};
use sandbox_runtime::options;
use serde_json::Value;

use crate::labels::{MANAGED_BY, PREFIX};

/// The longest name of an object.
const NAME_BYTES: usize = 253;
/// The longest value of a label, and the longest key after its prefix.
const LABEL_BYTES: usize = 63;

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

/// Whether a text begins and ends with a letter or digit and has only these and `others`.
fn is_word(text: &str, others: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(is_plain)
        && text.ends_with(is_plain)
        && text.chars().all(|c| is_plain(c) || others.contains(c))
}

/// Whether a text can be the name of an object, and so a part of a request's path.
fn is_name(text: &str) -> bool {
    let has_capitals = text.contains(|c: char| c.is_ascii_uppercase());
    text.len() <= NAME_BYTES && is_word(text, "-.") && !has_capitals && !text.contains("..")
}

/// Checks the name of a pod. It is also a label and the pod's host name.
pub(crate) fn pod(text: &str) -> Result<()> {
    ensure!(
        is_name(text) && !text.contains('.') && text.len() <= LABEL_BYTES,
        "{} is not a valid name for a pod; use up to 63 small letters, digits and '-', a letter or digit first and last",
        Quoted::new(text)
    );
    Ok(())
}

/// Checks the name of another object: a namespace, a claim, a secret.
pub(crate) fn name(what: &str, text: &str) -> Result<()> {
    ensure!(
        is_name(text),
        "{} is not a valid name for {what}; use small letters, digits, '-' and '.', a letter or digit first and last",
        Quoted::new(text)
    );
    Ok(())
}

/// Checks the key of a label, an annotation or a node selector: `name` or
/// `prefix.example/name`.
fn key(what: &str, text: &str) -> Result<()> {
    let (prefix, short) = text.split_once('/').unwrap_or(("a", text));
    ensure!(
        is_name(prefix) && is_word(short, "-_.") && short.len() <= LABEL_BYTES,
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
        text.is_empty() || (is_word(text, "-_.") && text.len() <= LABEL_BYTES),
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

pub(crate) fn object(what: &str, value: &Value) -> Result<()> {
    ensure!(
        value.is_object(),
        "{what} is not a JSON object; write it as in the manifest of a pod"
    );
    Ok(())
}

/// Checks a path in the sandbox that can be a mount point.
pub(crate) fn mount_point(text: &str) -> Result<VPath> {
    let path = options::mount_point(text)?;
    // Kubernetes separates parts of a mount by it.
    ensure!(
        !path.as_str().contains(':'),
        "'{path}' is not a valid path for a mount; leave out ':'"
    );
    Ok(path)
}

#[cfg(test)]
mod tests;
