//! `stat` and `ls`: the entries of the children merged with the directories that
//! the routes add to the tree.
//!
//! A route's prefix and every directory above it always exist, whatever the
//! children hold. If the child that owns such a path has a directory there too, its
//! entries are shown next to the routes. Anything else that it has there is hidden,
//! and so is its entry with the name of a route.

use std::sync::Arc;

use backend_core::ops::{Entry, Listing, LsOptions, Skipped, StatOptions};
use backend_core::{Error, ErrorKind, Operation, Result, VPath};

use crate::backend::failed;
use crate::composite::Composite;
use crate::failure::{is_about_backend, is_absent};
use crate::route::Route;
use crate::table::{Lookup, Table};

impl Composite {
    pub(crate) async fn stat_in(
        &self,
        table: &Table,
        path: &VPath,
        options: StatOptions,
    ) -> Result<Entry> {
        let lookup = table.find(path);
        match lookup.route.stat(path, options).await {
            Ok(entry) if !lookup.is_route_dir() || (entry.is_dir() && !entry.link) => Ok(entry),
            Ok(_) => Ok(Entry::directory(path.clone())),
            Err(error) if lookup.is_route_dir() && is_absent(&error) => {
                Ok(Entry::directory(path.clone()))
            }
            Err(error) => Err(lookup.route.translate_error(Operation::Stat, path)(error)),
        }
    }

    pub(crate) async fn ls_in(
        &self,
        table: &Table,
        path: &VPath,
        options: LsOptions,
    ) -> Result<Listing> {
        let lookup = table.find(path);
        if lookup.has_routes_beneath() {
            return self.merged_listing(lookup, path, options).await;
        }
        match lookup.route.ls(path, options.clone()).await {
            Err(error) if lookup.is_route_dir() && is_absent(&error) => options
                .listing(Vec::new(), Skipped::default())
                .map_err(failed(Operation::Ls, path)),
            listed => {
                let listed = listed.map_err(lookup.route.translate_error(Operation::Ls, path));
                self.skip_failure(lookup.route, listed)
            }
        }
    }

    /// Merges the child's entries with those of the routes.
    async fn merged_listing(
        &self,
        lookup: Lookup<'_>,
        path: &VPath,
        options: LsOptions,
    ) -> Result<Listing> {
        let all = LsOptions::default().links(options.links).limit(usize::MAX);
        let mut listing = match lookup.route.ls(path, all).await {
            Ok(listing) => listing,
            Err(error) if is_absent(&error) => Listing::default(),
            Err(error) => {
                let error = lookup.route.translate_error(Operation::Ls, path)(error);
                self.record_failure(lookup.route, error)?;
                Listing::default()
            }
        };
        let mut entries = std::mem::take(&mut listing.entries);
        // The child has a file here, which lists itself. The directory hides it.
        entries.retain(|entry| entry.path != *path && !lookup.has_name(entry.name()));
        for name in lookup.names() {
            let child = path.child(name).map_err(Error::from);
            entries.push(Entry::directory(
                child.map_err(failed(Operation::Ls, path))?,
            ));
        }
        let merged = options.listing(entries, listing.skipped);
        merged.map_err(failed(Operation::Ls, path))
    }

    /// Records a child's failure if this call continues after failures.
    ///
    /// # Errors
    ///
    /// The failure itself, if the call does not.
    pub(crate) fn record_failure(&self, route: &Arc<Route>, error: Error) -> Result<()> {
        match self.failures() {
            Some(failures) if is_about_backend(error.kind()) => {
                failures.add(route.prefix(), error);
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Turns a child's failure into one that a walk skips, if this call continues
    /// after failures.
    pub(crate) fn skip_failure<T>(&self, route: &Arc<Route>, answer: Result<T>) -> Result<T> {
        let error = match answer {
            Err(error) if self.failures().is_some() => error,
            answer => return answer,
        };
        self.record_failure(route, error)?;
        Err(Error::new(
            ErrorKind::PermissionDenied,
            "the route does not answer; see its failure",
        ))
    }
}
