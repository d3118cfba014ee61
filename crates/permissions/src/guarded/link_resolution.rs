//! [`LinkResolution`]: maps the path that the caller gave to the path that is used.

use backend_core::ops::{Links, ResolveOptions};
use backend_core::{Backend, Error, ErrorKind, Operation, Result, VPath};

/// Maximum number of restarts of a call because links change on its way.
const MAX_RESTARTS: usize = 8;

/// Treatment of a link in the last component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastLink {
    /// The link is followed.
    Followed,
    /// The operation applies to the link itself.
    Kept,
}

/// The path that a call uses, after following links.
#[derive(Debug)]
pub(super) struct LinkResolution {
    given: VPath,
    at: VPath,
    links: Links,
    last_link: LastLink,
    restarts: usize,
}

impl LinkResolution {
    pub(super) fn new(given: &VPath, links: Links, last_link: LastLink) -> Self {
        Self {
            given: given.clone(),
            at: given.clone(),
            links,
            last_link,
            restarts: 0,
        }
    }

    /// Returns the path as the caller gave it.
    pub(super) fn given(&self) -> &VPath {
        &self.given
    }

    /// Returns the path to use, with links refused.
    pub(super) fn at(&self) -> &VPath {
        &self.at
    }

    /// Returns whether links led to another path.
    pub(super) fn moved(&self) -> bool {
        self.at != self.given
    }

    /// Returns whether the caller wants links followed.
    pub(super) fn follows(&self) -> bool {
        self.links == Links::Follow
    }

    /// Follows every link of the given path, starting over.
    pub(super) async fn follow<B: Backend>(
        &mut self,
        backend: &B,
        operation: Operation,
    ) -> Result<()> {
        let resolved = match self.last_link {
            LastLink::Followed => {
                backend
                    .resolve(&self.given, ResolveOptions::default())
                    .await
            }
            LastLink::Kept => resolve_parent(backend, &self.given).await,
        };
        self.at = resolved.map_err(|error| error.as_part_of(operation, &self.given))?;
        Ok(())
    }

    /// Handles a failure. If a link was in the way, follows it, so that the call can be
    /// judged and tried again. Any other error is returned.
    pub(super) async fn follow_or_fail<B: Backend>(
        &mut self,
        backend: &B,
        operation: Operation,
        error: Error,
    ) -> Result<()> {
        if !is_link(&error) || !self.follows() {
            return Err(if self.moved() {
                error.as_part_of(operation, &self.given)
            } else {
                error
            });
        }
        self.count_restart(backend, operation)?;
        self.follow(backend, operation).await
    }

    /// Counts a restart, and fails after too many.
    pub(super) fn count_restart<B: Backend>(
        &mut self,
        backend: &B,
        operation: Operation,
    ) -> Result<()> {
        if self.restarts == MAX_RESTARTS {
            let error = Error::new(
                ErrorKind::Conflict,
                "links on the path keep changing; try again later",
            );
            return Err(error.at(operation, &self.given).on(backend.info().name));
        }
        self.restarts += 1;
        Ok(())
    }

    /// Returns whether the path as given is itself a link.
    pub(super) async fn is_link<B: Backend>(&self, backend: &B) -> bool {
        self.moved()
            && resolve_parent(backend, &self.given)
                .await
                .is_ok_and(|path| path != self.at)
    }
}

/// Follows every link above the last component.
async fn resolve_parent<B: Backend>(backend: &B, path: &VPath) -> Result<VPath> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(path.clone());
    };
    let parent = backend.resolve(&parent, ResolveOptions::default()).await?;
    Ok(parent.child(name)?)
}

/// Returns whether an error means that a link is in the way.
pub(super) fn is_link(error: &Error) -> bool {
    error.kind() == ErrorKind::IsALink
}
