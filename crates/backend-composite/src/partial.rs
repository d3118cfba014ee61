//! Searches and listings that continue when a child fails.

use backend_core::ops::{GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions};
use backend_core::{Backend as _, Result, VPath};

use crate::composite::Composite;
use crate::failure::{Failures, RouteFailure};

impl Composite {
    /// As [`ls`](backend_core::Backend::ls), but failures of children are returned
    /// next to the entries of the others. Errors of the path or the options are errors.
    pub async fn ls_partial(
        &self,
        path: &VPath,
        options: LsOptions,
    ) -> Result<(Listing, Vec<RouteFailure>)> {
        let composite = self.tolerant();
        let listed = composite.ls(path, options).await;
        composite.with_failures(path, listed)
    }

    /// As [`glob`](backend_core::Backend::glob), but failures of children are
    /// returned next to the files of the others. Errors of the query are errors.
    pub async fn glob_partial(&self, query: GlobQuery) -> Result<(GlobResult, Vec<RouteFailure>)> {
        let composite = self.tolerant();
        let path = query.path.clone();
        let found = composite.glob(query).await;
        composite.with_failures(&path, found)
    }

    /// As [`grep`](backend_core::Backend::grep), but failures of children are
    /// returned next to the lines of the others. Errors of the query are errors.
    pub async fn grep_partial(&self, query: GrepQuery) -> Result<(GrepResult, Vec<RouteFailure>)> {
        let composite = self.tolerant();
        let path = query.path.clone();
        let found = composite.grep(query).await;
        composite.with_failures(&path, found)
    }

    /// Adds the failures of this call to its result. If a failure made the whole
    /// call fail, the result is empty.
    fn with_failures<T: Default>(
        &self,
        path: &VPath,
        answer: Result<T>,
    ) -> Result<(T, Vec<RouteFailure>)> {
        let take = || self.failures().map(Failures::take).unwrap_or_default();
        let known = take();
        match answer {
            Ok(answer) => Ok((answer, known)),
            Err(_) if !known.is_empty() => Ok((T::default(), known)),
            Err(error) => {
                self.record_failure(self.table().find(path).route, error)?;
                Ok((T::default(), take()))
            }
        }
    }
}
