//! [`HostNames`]: host paths, as commands print them.

use std::cmp::Reverse;
use std::sync::Arc;

use backend_core::ops::StatOptions;
use backend_core::{Backend, ErrorKind, VPath};

/// The names that commands use for directories of the backend, where they differ.
///
/// A backend on a host directory shows it as `/`, but `pwd` prints the host's path. A
/// model that passes such a path to a tool means the file that the command sees.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostNames(Arc<[(VPath, VPath)]>);

impl HostNames {
    /// Collects the unambiguous names. If `/srv` exists in the backend itself, a path
    /// that begins with `/srv` belongs to the backend.
    pub(crate) async fn of(backend: &dyn Backend) -> Self {
        let Some(sandbox) = backend.as_sandbox() else {
            return Self::default();
        };
        let names = sandbox.command_names(&backend.working_dir());
        let mut clear = Vec::new();
        for (directory, there) in names.roots().iter().chain(names.aliases()) {
            let Some(first) = first_name(there) else {
                continue;
            };
            let found = backend.stat(&first, StatOptions::default()).await;
            if found.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
                clear.push((directory.clone(), there.clone()));
            }
        }
        clear.sort_by_key(|(_, there)| Reverse(there.as_str().len()));
        Self(clear.into())
    }

    /// Returns the backend path for `path` if it is a host name.
    pub(crate) fn to_backend(&self, path: &VPath) -> Option<VPath> {
        let mut names = self.0.iter();
        names.find_map(|(directory, there)| path.rebase(there, directory).ok())
    }
}

/// Returns the first component of a path as a path, or `None` for the root.
fn first_name(path: &VPath) -> Option<VPath> {
    let name = path.as_str().split('/').nth(1)?;
    (!name.is_empty()).then(|| VPath::root().join(name).ok())?
}
