//! [`Route`]: a backend, where it shows in the composite, and under which names.

use std::sync::Arc;

use backend_core::ops::{Entry, Listing, LsOptions, StatOptions};
use backend_core::{Backend, Error, Operation, Quoted, Result, VPath};

use crate::failure::{NAME, is_about_backend};

/// A backend that answers for everything at and beneath a prefix.
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

    /// Lets the backend see the whole path, prefix included.
    #[must_use]
    pub fn full_paths(mut self) -> Self {
        self.base = self.prefix.clone();
        self
    }

    /// Routes the prefix to this directory of the backend, such as
    /// `/workspace` in a container.
    ///
    /// This chooses names and fences nothing in: a link in the backend may lead
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

    /// Where the backend shows.
    pub fn prefix(&self) -> &VPath {
        &self.prefix
    }

    /// What the prefix is to the backend.
    pub fn base(&self) -> &VPath {
        &self.base
    }

    /// The backend, in its own names.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Whether both sides use the same names.
    pub(crate) fn keeps_names(&self) -> bool {
        self.prefix == self.base
    }

    /// What the backend calls `path`.
    pub(crate) fn inside(&self, path: &VPath) -> Result<VPath> {
        if self.keeps_names() {
            return Ok(path.clone());
        }
        Ok(path.rebase(&self.prefix, &self.base)?)
    }

    /// What the composite calls `path` of the backend. An error if it has no
    /// name here.
    pub(crate) fn outside(&self, path: &VPath) -> Result<VPath> {
        if self.keeps_names() && path.starts_with(&self.base) {
            return Ok(path.clone());
        }
        Ok(path.rebase(&self.base, &self.prefix)?)
    }

    /// What a failed call to the backend hands to `map_err`: the error in the
    /// composite's names. One that is about the backend rather than the path
    /// names the route.
    pub(crate) fn relay(&self, operation: Operation, path: &VPath) -> impl FnOnce(Error) -> Error {
        move |error| {
            let at = error.path().and_then(|at| self.outside(at).ok());
            let at = at.as_ref().unwrap_or(path);
            let error = error.as_part_of(operation, at).relayed(NAME, at);
            match is_about_backend(error.kind()) {
                true => self.named(error),
                false => error,
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

    /// The backend's answer, in the composite's names.
    pub(crate) async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        let at = self.inside(path)?;
        let mut entry = self.backend.stat(&at, options).await?;
        entry.path = path.clone();
        Ok(entry)
    }

    /// The backend's listing, in the composite's names.
    pub(crate) async fn ls(&self, path: &VPath, mut options: LsOptions) -> Result<Listing> {
        let at = self.inside(path)?;
        if self.keeps_names() {
            return self.backend.ls(&at, options).await;
        }
        if options.exclude.is_none() {
            let mut listing = self.backend.ls(&at, options).await?;
            self.rename_entries(&mut listing.entries);
            return Ok(listing);
        }
        // The filter speaks of the composite's paths: it is applied here, and
        // the limit after it.
        let asked = options.clone();
        options.exclude = Default::default();
        options.limit = usize::MAX;
        let mut listing = self.backend.ls(&at, options).await?;
        self.rename_entries(&mut listing.entries);
        asked.listing(listing.entries, listing.skipped)
    }

    /// Gives entries the composite's names. One whose path would be too long
    /// cannot be named here and is left out.
    pub(crate) fn rename_entries(&self, entries: &mut Vec<Entry>) {
        if self.keeps_names() {
            return;
        }
        entries.retain_mut(|entry| match self.outside(&entry.path) {
            Ok(path) => {
                entry.path = path;
                true
            }
            Err(_) => false,
        });
    }
}
