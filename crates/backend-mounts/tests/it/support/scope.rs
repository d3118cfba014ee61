//! Scopes over mounts, and short forms of what is compared.

use backend_core::VPath;
use backend_mounts::{Mode, Mount, Mounts, Scope};

/// A read-only mount.
pub(crate) fn mount(point: &str) -> Mount {
    let name = point.replace('/', "_");
    Mount::new(format!("/host/{name}"), point).unwrap()
}

/// A mount that can be written to without approval.
pub(crate) fn rw(point: &str) -> Mount {
    mount(point).mode(Mode::Rw).write_approval(false)
}

pub(crate) fn scope(mounts: impl IntoIterator<Item = Mount>) -> Scope {
    Scope::new(Mounts::new(mounts.into_iter().collect()).unwrap())
}

pub(crate) fn texts(roots: &[VPath]) -> Vec<&str> {
    roots.iter().map(VPath::as_str).collect()
}

pub(crate) fn strings(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}
