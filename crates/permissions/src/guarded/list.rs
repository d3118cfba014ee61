//! Operations on many paths: `ls`, `glob`, `grep`.
//!
//! The backend leaves out entries that the policy hides while it collects them, before
//! any limit applies. Through a link, this applies to the paths that the link leads to.
//! The paths as the caller sees them are checked against the policy and the caller's own
//! exclusions afterwards.

use backend_core::ops::{
    Entry, GlobQuery, GlobResult, GrepQuery, GrepResult, Links, Listing, LsOptions, StatOptions,
};
use backend_core::search::{Exclude, Glob};
use backend_core::{Backend, Error, Operation, Result, VPath};

use super::gate::Gate;
use super::guard::Guarded;
use super::link_resolution::{LastLink, LinkResolution};
use crate::access::Intent;
use crate::{Access, Action, Kind, Op};

impl<B: Backend> Guarded<B> {
    pub(super) async fn ls_judged(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
        let operation = Operation::Ls;
        let mut gate = Gate::new(self, operation, path);
        let mut route = LinkResolution::new(path, options.links, LastLink::Followed);
        loop {
            gate.authorize(&mut route, Intent::ls).await?;
            self.visible(&gate, path, route.at())?;
            let mut now = options.clone().links(Links::Refuse);
            now.exclude = self.excluded(Op::Ls, &options.exclude, &route);
            if route.moved() && now.limit > 0 {
                // The limit applies once the caller's paths have been filtered.
                now.limit = usize::MAX;
            }
            match self.backend().ls(route.at(), now).await {
                Ok(listing) if !route.moved() => return Ok(listing),
                Ok(listing) => return self.moved_listing(listing, &route, &options).await,
                Err(error) => self.follow_or_fail(&mut route, operation, error).await?,
            }
        }
    }

    /// Converts a listing to the path that the caller gave.
    async fn moved_listing(
        &self,
        listing: Listing,
        route: &LinkResolution,
        options: &LsOptions,
    ) -> Result<Listing> {
        let mut entries = Vec::with_capacity(listing.entries.len());
        for mut entry in listing.entries {
            let itself = entry.path == *route.at();
            if self.rename_entry(&mut entry, route) {
                if itself {
                    entry.link = route.is_link(self.backend()).await;
                }
                entries.push(entry);
            }
        }
        let mut seen = options.clone();
        seen.exclude = options.exclude.and(self.policy.exclude(Op::Ls));
        seen.listing(entries, listing.skipped)
    }

    pub(super) async fn glob_judged(&self, query: GlobQuery) -> Result<GlobResult> {
        let operation = Operation::Glob;
        let path = query.path.clone();
        let mut gate = Gate::new(self, operation, &path);
        let mut route = LinkResolution::new(&path, query.links, LastLink::Followed);
        loop {
            gate.authorize(&mut route, Intent::glob).await?;
            let mut now = query.clone().links(Links::Refuse);
            now.path = route.at().clone();
            now.exclude = self.excluded(Op::Glob, &query.exclude, &route);
            now.pattern = moved_pattern(&query.pattern, &route).map_err(|e| gate.failed(e))?;
            match self.backend().glob(now).await {
                Ok(found) if !route.moved() => return Ok(found),
                Ok(mut found) => {
                    let exclude = query.exclude.and(self.policy.exclude(Op::Glob));
                    found.files.retain_mut(|entry| {
                        self.rename_entry(entry, &route) && !exclude.hides(&entry.path)
                    });
                    return Ok(found);
                }
                Err(error) => self.follow_or_fail(&mut route, operation, error).await?,
            }
        }
    }

    pub(super) async fn grep_judged(&self, query: GrepQuery) -> Result<GrepResult> {
        let operation = Operation::Grep;
        let path = query.path.clone();
        let mut gate = Gate::new(self, operation, &path);
        let mut route = LinkResolution::new(&path, query.links, LastLink::Followed);
        gate.screen(Intent::grep(path.clone()))?;
        loop {
            let (kind, size) = match self.kind_at(route.at()).await {
                Ok(found) => found,
                Err(error) => {
                    let error = error.as_part_of(operation, &path);
                    self.follow_or_fail(&mut route, operation, error).await?;
                    continue;
                }
            };
            let intent = move |at| Intent::grep(at).kind(kind);
            gate.authorize(&mut route, intent).await?;
            if let Some(size) = size {
                gate.check_size(Op::Read, &route, size)?;
            }
            // A question about the file, or the root of the search, has been answered by
            // now. Entries that the answer allows must not be hidden.
            let answered = kind == Kind::File || gate.asked_by_rule(Op::Read);
            let mut now = query.clone().links(Links::Refuse);
            now.path = route.at().clone();
            if !answered {
                now.exclude = self.excluded(Op::Grep, &query.exclude, &route);
            } else if route.moved() {
                now.exclude = Exclude::none();
            }
            if let Some(files) = &query.files {
                let files = moved_pattern(files, &route).map_err(|e| gate.failed(e))?;
                now.files = Some(files);
            }
            match self.backend().grep(now).await {
                Ok(found) => {
                    let found = self.moved_matches(found, &route, &query, answered);
                    let granted = answered.then_some(&gate);
                    return self.readable_matches(found, &route, granted).await;
                }
                Err(error) => self.follow_or_fail(&mut route, operation, error).await?,
            }
        }
    }

    /// Returns the kind and size of the entry where a search starts, if they matter.
    async fn kind_at(&self, at: &VPath) -> Result<(Kind, Option<u64>)> {
        if !self.policy.has_path_layer() && self.policy.rules().is_none() {
            return Ok((Kind::Directory, None));
        }
        let options = StatOptions::default().links(Links::Refuse);
        let entry = self.backend().stat(at, options).await?;
        if entry.is_dir() {
            Ok((Kind::Directory, None))
        } else {
            Ok((Kind::File, entry.size))
        }
    }

    /// Converts matches to the path that the caller gave.
    fn moved_matches(
        &self,
        mut found: GrepResult,
        route: &LinkResolution,
        query: &GrepQuery,
        answered: bool,
    ) -> GrepResult {
        if !route.moved() {
            return found;
        }
        let mut exclude = query.exclude.clone();
        if !answered {
            exclude = exclude.and(self.policy.exclude(Op::Grep));
        }
        let files = std::mem::take(&mut found.files);
        for mut file in files {
            let Ok(shown) = file.path.rebase(route.at(), route.given()) else {
                continue;
            };
            if !exclude.hides(&shown) && !self.denies_reading(&shown) {
                file.path = shown;
                found.files.push(file);
            }
        }
        found
    }

    /// Drops files that may not be read: those over their mount's size limit and, if
    /// nothing was hidden before, those that the answer about the search does not cover.
    async fn readable_matches(
        &self,
        mut found: GrepResult,
        route: &LinkResolution,
        answered: Option<&Gate<'_, B>>,
    ) -> Result<GrepResult> {
        let files = std::mem::take(&mut found.files);
        for file in files {
            let at = file.path.rebase(route.given(), route.at())?;
            let readable = answered.is_none_or(|gate| {
                [Op::Grep, Op::Read]
                    .into_iter()
                    .all(|op| gate.includes(&Access::file(op, at.clone())))
            });
            if readable && self.within_size_limit(&at).await {
                found.files.push(file);
            }
        }
        found.matches = found.files.iter().map(|file| file.matches).sum();
        Ok(found)
    }

    /// Returns whether a file is within the size limit of its mount.
    async fn within_size_limit(&self, at: &VPath) -> bool {
        if self.policy.max_file_bytes(at).is_none() {
            return true;
        }
        let options = StatOptions::default().links(Links::Refuse);
        let Ok(entry) = self.backend().stat(at, options).await else {
            return false;
        };
        let verdict = self.policy.judge(Op::Read, at, Kind::File, entry.size);
        verdict.action() != Action::Deny
    }

    /// Returns the entries that the backend must leave out: the policy's, and the
    /// caller's if no link changed the paths.
    fn excluded(&self, op: Op, callers: &Exclude, route: &LinkResolution) -> Exclude {
        let ours = self.policy.exclude(op);
        if route.moved() {
            ours.clone()
        } else {
            callers.and(ours)
        }
    }

    /// Gives an entry the caller's path. Returns `false` if that is not a valid one.
    fn rename_entry(&self, entry: &mut Entry, route: &LinkResolution) -> bool {
        // A path that is too long cannot be used by the caller.
        let path = entry.path.rebase(route.at(), route.given());
        path.map(|path| entry.path = path).is_ok()
    }
}

/// Rewrites an absolute pattern beneath a link to one beneath the link's target.
fn moved_pattern(pattern: &str, route: &LinkResolution) -> Result<String> {
    if !route.moved() || !pattern.starts_with('/') {
        return Ok(pattern.to_owned());
    }
    let given = route.given().as_str();
    let rest = pattern
        .strip_prefix(given)
        .filter(|rest| rest.starts_with('/') && !given.contains(['*', '?', '[', '{', '\\']));
    match rest {
        Some(rest) => {
            let target = route.at().as_str().trim_end_matches('/');
            Ok(format!("{}{rest}", Glob::escape(target)))
        }
        None => Err(Error::invalid_input(
            "an absolute pattern through a link cannot be searched; use one relative to the path",
        )),
    }
}
