//! Expands the globs of a command line.

use backend_core::ops::LsOptions;
use backend_core::{Backend, VPath};
use command_line::NamedPath;
use command_line::glob::name_matches;

use super::guard::Guarded;

/// Maximum number of entries examined for a line, and of paths that one glob expands to.
pub(super) const MAX_ENTRIES: usize = 10_000;
const MAX_PATHS: usize = 1_024;

impl<B: Backend> Guarded<B> {
    /// Returns the paths that a glob matches now, or `None` if there are too many. `budget`
    /// is the number of entries that may still be examined for the line.
    pub(super) async fn expand(
        &self,
        glob: &NamedPath,
        budget: &mut usize,
    ) -> Option<Vec<NamedPath>> {
        let start = glob
            .path
            .components()
            .filter(|name| !name.is_empty())
            .count();
        let names = glob.text.split('/').filter(|name| !name.is_empty());
        let mut found = vec![glob.path.clone()];
        for name in names.skip(start) {
            let mut next = Vec::new();
            for directory in &found {
                if name.contains(['*', '?', '[']) {
                    next.extend(self.matching_entries(directory, name, budget).await?);
                } else {
                    next.extend(directory.child(name));
                }
            }
            if next.len() > MAX_PATHS {
                return None;
            }
            found = next;
        }
        let named = |path: VPath| {
            let rest = path.strip_prefix(&glob.path).unwrap_or_default();
            let spelled = glob.spelled.as_ref().map(|above| format!("{above}/{rest}"));
            let mut named = glob.clone();
            named.text = path.to_string();
            named.glob = false;
            named.spelled = spelled;
            named.path = path;
            named
        };
        Some(found.into_iter().map(named).collect())
    }

    /// Returns the entries of `directory` that match a name with wildcards. A directory
    /// that cannot be listed yields no matches, as in the shell.
    async fn matching_entries(
        &self,
        directory: &VPath,
        name: &str,
        budget: &mut usize,
    ) -> Option<Vec<VPath>> {
        let mut options = LsOptions::default();
        options.limit = MAX_ENTRIES;
        let Ok(listing) = self.backend().ls(directory, options).await else {
            return Some(Vec::new());
        };
        *budget = budget.checked_sub(listing.entries.len() + 1)?;
        if listing.is_truncated() {
            return None;
        }
        let matches = |path: &VPath| path.file_name().is_some_and(|it| name_matches(name, it));
        let paths = listing.entries.into_iter().map(|entry| entry.path);
        Some(
            paths
                .filter(|path| path != directory && matches(path))
                .collect(),
        )
    }
}
