//! Checks of the options that every kind of sandbox has. The errors say what would be valid,
//! and name no backend: its caller adds it.

use std::time::Duration;

use backend_core::{Quoted, Result, VPath};

use crate::error;

/// The smallest memory limit that container runtimes accept, in bytes.
const LEAST_MEMORY: u64 = 6 * 1024 * 1024;
/// The largest number of bytes that an option can be.
const MOST_BYTES: u64 = i64::MAX as u64 / 2;

/// Returns the error for an invalid option unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(error::config(format!($($message)+)));
        }
    };
}

fn has_only(text: &str, others: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

/// Checks that this can be an image reference. The container runtime checks the full grammar.
///
/// # Errors
///
/// `Config` for any other text.
pub fn image(text: &str) -> Result<()> {
    let ends = |c: char| c.is_ascii_alphanumeric();
    ensure!(
        text.starts_with(ends)
            && text.ends_with(ends)
            && has_only(text, "._-/:@")
            && text.len() <= 512,
        "{} is not a valid image reference; write NAME:TAG or NAME@DIGEST",
        Quoted::new(text)
    );
    Ok(())
}

/// Checks an environment variable.
///
/// # Errors
///
/// `Config` for a name that shells do not take, and for a value with a NUL character.
pub fn variable(name: &str, value: &str) -> Result<()> {
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

/// Checks a kernel capability, such as `NET_BIND_SERVICE`.
///
/// # Errors
///
/// `Config` for any other text, and for `ALL`.
pub fn capability(text: &str) -> Result<()> {
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

/// Checks a memory limit in bytes.
///
/// # Errors
///
/// `Config` if it is too small or too large.
pub fn memory(bytes: u64) -> Result<()> {
    ensure!(
        (LEAST_MEMORY..=MOST_BYTES).contains(&bytes),
        "a sandbox cannot have {bytes} bytes of memory; give at least {LEAST_MEMORY}"
    );
    Ok(())
}

/// Checks a number of CPUs.
///
/// # Errors
///
/// `Config` if it is too small or too large.
pub fn cpus(cpus: f64) -> Result<()> {
    ensure!(
        (0.01..=4096.0).contains(&cpus),
        "a sandbox cannot use {cpus} processors; give a number from 0.01"
    );
    Ok(())
}

/// Checks the time after which an idle sandbox is stopped.
///
/// # Errors
///
/// `Config` if it is zero.
pub fn idle_timeout(idle: Option<Duration>) -> Result<()> {
    ensure!(
        idle != Some(Duration::ZERO),
        "an idle timeout of zero stops every sandbox at once; leave it out for none"
    );
    Ok(())
}

/// Checks a path in the sandbox; `what` is what it is for.
///
/// # Errors
///
/// `Config` if it is not absolute, or one of the kernel's own directories.
pub fn absolute_path(what: &str, text: &str) -> Result<VPath> {
    let shown = Quoted::new(text);
    ensure!(
        text.starts_with('/'),
        "{shown} is not a valid path for {what}; give an absolute path"
    );
    let path = VPath::parse(text).map_err(|source| {
        error::config(format!("{shown} is not a valid path for {what}: {source}"))
    })?;
    let first = path.components().next().unwrap_or_default();
    ensure!(
        !["proc", "sys", "dev"].contains(&first),
        "{shown} is not a valid path for {what}; the kernel's own directories cannot be used"
    );
    Ok(path)
}

/// Checks a path in the sandbox that can be a mount point.
///
/// # Errors
///
/// As [`absolute_path`]; `Config` for `/`.
pub fn mount_point(text: &str) -> Result<VPath> {
    let path = absolute_path("a mount", text)?;
    ensure!(
        !path.is_root(),
        "nothing can be mounted on '/'; give a directory"
    );
    Ok(path)
}

#[cfg(test)]
mod tests {
    use backend_core::ErrorKind;

    use super::*;

    fn refused<T: std::fmt::Debug>(result: Result<T>) -> String {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        error.to_string()
    }

    #[test]
    fn variables_capabilities_and_images() {
        variable("A_1", "x=y\n").unwrap();
        for bad in ["", "1A", "A-B", "A=B", "A\0", "Ä"] {
            refused(variable(bad, ""));
        }
        refused(variable("A", "\0"));
        capability("NET_BIND_SERVICE").unwrap();
        for bad in ["", "net_raw", "A B", "CAP_CHOWN"] {
            refused(capability(bad));
        }
        assert!(refused(capability("ALL")).contains("privileged"));
        for good in ["a", "python:3.12-slim", "my.mirror:5000/a/b@sha256:00"] {
            image(good).unwrap();
        }
        for bad in ["", "-x", "a b", "a\n", "$x", "/a", "a:"] {
            refused(image(bad));
        }
    }

    #[test]
    fn limits() {
        memory(LEAST_MEMORY).unwrap();
        refused(memory(LEAST_MEMORY - 1));
        refused(memory(u64::MAX));
        cpus(0.5).unwrap();
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            refused(cpus(bad));
        }
        idle_timeout(None).unwrap();
        refused(idle_timeout(Some(Duration::ZERO)));
    }

    #[test]
    fn places() {
        assert_eq!(absolute_path("work", "/a//b/").unwrap().as_str(), "/a/b");
        let kernel = ["/proc/self", "/dev", "/sys/fs", "/a/../dev"];
        for bad in ["", "a", "~/x", "/a\0"].into_iter().chain(kernel) {
            refused(absolute_path("work", bad));
        }
        mount_point("/a").unwrap();
        refused(mount_point("/"));
    }
}
