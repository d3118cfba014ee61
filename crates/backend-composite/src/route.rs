//! [`Route`]: a backend, its prefix in the composite, and the translation of paths.

use std::sync::Arc;

use backend_core::ops::{Entry, Listing, LsOptions, StatOptions};
use backend_core::{Backend, Error, Operation, Quoted, Result, VPath};

use crate::failure::{NAME, is_about_backend};

/// A backend that handles everything at and beneath a prefix.
///
/// By default the backend sees the path below the prefix: `/notes/a.md` is `/a.md`
/// to a backend routed at `/notes`.
///
/// ```
/// # use std::sync::Arc;
/// # use backend_core::VPath;
/// # use backend_state::StateBackend;
/// use backend_composite::Route;
///
/// let notes = Arc::new(StateBackend::new());
/// let route = Route::new(VPath::parse("/notes/")?, notes);
/// assert_eq!(route.prefix().as_str(), "/notes");
/// assert_eq!(route.base().as_str(), "/");
/// assert_eq!(route.full_paths().base().as_str(), "/notes");
/// # Ok::<(), backend_core::PathError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Route {
    prefix: VPath,
    base: VPath,
    backend: Arc<dyn Backend>,
}

impl Route {
    /// Routes `prefix` to the root of `backend`.
    pub fn new(prefix: VPath, backend: Arc<dyn Backend>) -> Self {
        Self {
            prefix,
            base: VPath::root(),
            backend,
        }
    }

    /// Passes the whole path to the backend, including the prefix.
    #[must_use]
    pub fn full_paths(mut self) -> Self {
        self.base = self.prefix.clone();
        self
    }

    /// Routes the prefix to this directory of the backend, such as
    /// `/workspace` in a container.
    ///
    /// This only maps paths and confines nothing: a link in the backend may lead
    /// out of the directory.
    #[must_use]
    pub fn to_directory(mut self, base: VPath) -> Self {
        self.base = base;
        self
    }

    /// Routes the prefix to the backend's working directory.
    #[must_use]
    pub fn to_working_dir(self) -> Self {
        let base = self.backend.working_dir();
        self.to_directory(base)
    }

    /// Returns the path of the route in the composite.
    pub fn prefix(&self) -> &VPath {
        &self.prefix
    }

    /// Returns the path of the backend that the prefix maps to.
    pub fn base(&self) -> &VPath {
        &self.base
    }

    /// Returns the backend, which uses its own paths.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Whether both sides use the same paths.
    pub(crate) fn keeps_paths(&self) -> bool {
        self.prefix == self.base
    }

    /// Translates `path` of the composite into a path of the backend.
    pub(crate) fn to_child(&self, path: &VPath) -> Result<VPath> {
        if self.keeps_paths() {
            return Ok(path.clone());
        }
        Ok(path.rebase(&self.prefix, &self.base)?)
    }

    /// Translates `path` of the backend into a path of the composite. Fails if it has none.
    pub(crate) fn to_composite(&self, path: &VPath) -> Result<VPath> {
        if self.keeps_paths() && path.starts_with(&self.base) {
            return Ok(path.clone());
        }
        Ok(path.rebase(&self.base, &self.prefix)?)
    }

    /// Returns a function for `map_err` that translates an error of the backend
    /// into the composite's paths. An error about the backend itself, not about a
    /// path, names the route.
    pub(crate) fn translate_error(
        &self,
        operation: Operation,
        path: &VPath,
    ) -> impl FnOnce(Error) -> Error {
        move |error| {
            let at = error.path().and_then(|at| self.to_composite(at).ok());
            let at = at.as_ref().unwrap_or(path);
            let error = error.as_part_of(operation, at).relayed(NAME, at);
            if is_about_backend(error.kind()) {
                self.named(error)
            } else {
                error
            }
        }
    }

    /// Names the route in the error.
    pub(crate) fn named(&self, error: Error) -> Error {
        let prefix = Quoted::new(self.prefix.as_str());
        error.about(format_args!(
            "route {prefix} ({})",
            self.backend.info().name
        ))
    }

    /// Calls the backend's `stat` and translates the result into the composite's paths.
    pub(crate) async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        let at = self.to_child(path)?;
        let mut entry = self.backend.stat(&at, options).await?;
        entry.path = path.clone();
        Ok(entry)
    }

    /// Calls the backend's `ls` and translates the result into the composite's paths.
    pub(crate) async fn ls(&self, path: &VPath, mut options: LsOptions) -> Result<Listing> {
        let at = self.to_child(path)?;
        if self.keeps_paths() {
            return self.backend.ls(&at, options).await;
        }
        if options.exclude.is_none() {
            let mut listing = self.backend.ls(&at, options).await?;
            self.rename_entries(&mut listing.entries);
            return Ok(listing);
        }
        // The filter uses the composite's paths, so it is applied here, and the
        // limit after it.
        let asked = options.clone();
        options.exclude = Default::default();
        options.limit = usize::MAX;
        let mut listing = self.backend.ls(&at, options).await?;
        self.rename_entries(&mut listing.entries);
        asked.listing(listing.entries, listing.skipped)
    }

    /// Translates entries into the composite's paths. An entry whose path would be
    /// too long is left out.
    pub(crate) fn rename_entries(&self, entries: &mut Vec<Entry>) {
        if self.keeps_paths() {
            return;
        }
        entries.retain_mut(|entry| match self.to_composite(&entry.path) {
            Ok(path) => {
                entry.path = path;
                true
            }
            Err(_) => false,
        });
    }
}
