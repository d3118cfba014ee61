//! `glob` and `grep` across routes.
//!
//! The result is that of a single backend with all the files. A search within one
//! child is passed to that child. One that spans several children runs in all of
//! them concurrently, and their results are merged. Where the merged result could
//! differ (an ignore file above a route applies to the files in it, or a pattern
//! cannot be translated into a child's paths), the shared walk over the composite's
//! own listings is used instead. It is slower, but always correct. [`plan`] decides which.

use std::sync::Arc;

use backend_core::derived::{glob_by_walk, grep_by_file};
use backend_core::ops::{
    FileMatches, GlobOrder, GlobQuery, GlobResult, GrepQuery, GrepResult, Skipped,
};
use backend_core::search::{GlobCollector, GrepCollector};
use backend_core::{Backend as _, Error, Operation, Result, VPath};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};

use crate::composite::Composite;
use crate::failure::{is_about_backend, is_absent};
use crate::route::Route;
use crate::table::Table;

mod plan;

use plan::{Part, Plan, Scope};
pub(crate) use plan::{hidden_by, moved_exclude};

/// Number of children searched concurrently.
const AT_ONCE: usize = 16;

impl Composite {
    pub(crate) async fn glob_in(&self, table: &Arc<Table>, query: GlobQuery) -> Result<GlobResult> {
        let scope = Scope::of_glob(&query)?;
        let this = self.with_fixed_routes(table);
        let parts = match this.plan(table, &scope).await? {
            Plan::Walk => return glob_by_walk(&this, query).await,
            Plan::Parts(parts) => parts,
        };
        let asked = parts.iter();
        let asked = asked.map(|part| this.glob_part(part, &query).boxed());
        let answers = this.answers(&parts, asked.collect()).await?;
        Ok(merge_globs(answers, &query))
    }

    async fn glob_part(&self, part: &Part, query: &GlobQuery) -> Result<GlobResult> {
        let mut query = query.clone().generated(part.generated);
        let Some(native) = &part.native else {
            query.path = part.start.clone();
            return glob_by_walk(self, query).await;
        };
        query.path = native.start.clone();
        query.exclude = native.exclude.clone();
        // The results of all routes are merged by time.
        query.metadata |= query.order == GlobOrder::NewestFirst;
        if let Some(pattern) = &native.pattern {
            query.pattern.clone_from(pattern);
        }
        let found = part.route.backend().glob(query).await;
        let translate_error = part.route.translate_error(Operation::Glob, &part.start);
        let mut found = part.or_empty(found).map_err(translate_error)?;
        part.route.rename_entries(&mut found.files);
        Ok(found)
    }

    pub(crate) async fn grep_in(&self, table: &Arc<Table>, query: GrepQuery) -> Result<GrepResult> {
        let scope = Scope::of_grep(&query)?;
        let this = self.with_fixed_routes(table);
        let parts = match this.plan(table, &scope).await? {
            Plan::Walk => return this.grep_files(table, query).await,
            Plan::Parts(parts) => parts,
        };
        let asked = parts.iter();
        let asked = asked.map(|part| this.grep_part(table, part, &query).boxed());
        let answers = this.answers(&parts, asked.collect()).await?;
        // A child that stopped at the maximum of bytes does not tell where its next
        // line would be among the lines of the others.
        let stopped = |found: &GrepResult| found.truncated && found.matches < query.max_matches;
        if answers.len() > 1 && answers.iter().any(stopped) {
            return this.grep_files(table, query).await;
        }
        Ok(merge_greps(answers, &query))
    }

    async fn grep_part(&self, table: &Table, part: &Part, query: &GrepQuery) -> Result<GrepResult> {
        let mut query = query.clone().generated(part.generated);
        let Some(native) = &part.native else {
            query.path = part.start.clone();
            return self.grep_files(table, query).await;
        };
        query.path = native.start.clone();
        query.exclude = native.exclude.clone();
        if native.pattern.is_some() {
            query.files.clone_from(&native.pattern);
        }
        let found = part.route.backend().grep(query).await;
        let translate_error = part.route.translate_error(Operation::Grep, &part.start);
        let found = part.or_empty(found).map_err(translate_error)?;
        Ok(renamed(&part.route, found))
    }

    /// Runs the shared walk. Each file is searched by its own child, so no content
    /// is transferred to the composite.
    async fn grep_files(&self, table: &Table, query: GrepQuery) -> Result<GrepResult> {
        let search = |query| self.grep_file(table, query).boxed();
        grep_by_file(self, query, search).await
    }

    async fn grep_file(&self, table: &Table, mut query: GrepQuery) -> Result<GrepResult> {
        let route = table.find(&query.path).route;
        let path = std::mem::replace(&mut query.path, VPath::root());
        query.path = route.to_child(&path)?;
        let found = route.backend().grep(query).await;
        let found = found.map_err(route.translate_error(Operation::Grep, &path));
        // As a read of the file would do.
        let found = self.skip_failure(route, found)?;
        Ok(renamed(route, found))
    }

    /// Returns this composite with a fixed set of routes.
    fn with_fixed_routes(&self, table: &Arc<Table>) -> Self {
        match self.failures() {
            // Already created for this call.
            Some(_) => self.clone(),
            None => self.frozen(Arc::clone(table), None),
        }
    }

    /// Asks a few parts at a time and returns their answers in order, without those of
    /// parts that failed if this call continues after failures.
    async fn answers<T>(
        &self,
        parts: &[Part],
        asked: Vec<BoxFuture<'_, Result<T>>>,
    ) -> Result<Vec<T>> {
        let answers: Vec<_> = stream::iter(asked).buffered(AT_ONCE).collect().await;
        let mut found = Vec::with_capacity(parts.len());
        for (part, answer) in parts.iter().zip(answers) {
            match answer {
                Ok(answer) => found.push(answer),
                Err(error) => self.skip_part(part, parts.len(), error)?,
            }
        }
        Ok(found)
    }

    /// Continues without a part that failed, if this call does that.
    fn skip_part(&self, part: &Part, parts: usize, error: Error) -> Result<()> {
        let error = match parts {
            1 => error,
            // Such an error already names its route.
            _ if is_about_backend(error.kind()) => error,
            _ => part.route.named(error),
        };
        self.record_failure(&part.route, error)
    }
}

impl Part {
    /// Treats a missing directory as empty if the routes require a directory there.
    fn or_empty<T: Default>(&self, answer: Result<T>) -> Result<T> {
        match answer {
            Err(error) if self.is_route_dir && is_absent(&error) => Ok(T::default()),
            answer => answer,
        }
    }
}

/// Translates a child's result into the composite's paths.
fn renamed(route: &Route, mut found: GrepResult) -> GrepResult {
    if route.keeps_paths() {
        return found;
    }
    let files = std::mem::take(&mut found.files);
    let outside = |mut file: FileMatches| {
        file.path = route.to_composite(&file.path).ok()?;
        Some(file)
    };
    found.files = files.into_iter().filter_map(outside).collect();
    found.matches = found.files.iter().map(|file| file.matches).sum();
    found
}

fn merge_globs(mut answers: Vec<GlobResult>, query: &GlobQuery) -> GlobResult {
    if answers.len() == 1 {
        return answers.pop().unwrap_or_default();
    }
    let mut skipped = Skipped::default();
    let mut truncated = false;
    let mut files = Vec::new();
    for answer in answers {
        skipped += answer.skipped;
        truncated |= answer.truncated;
        files.extend(answer.files);
    }
    if query.order == GlobOrder::Path {
        files.sort_unstable_by(|one, two| one.path.cmp(&two.path));
    }
    let mut found = GlobCollector::new(query);
    for file in files {
        if found.add(file).is_break() {
            break;
        }
    }
    let mut found = found.finish(skipped);
    found.truncated |= truncated;
    found
}

fn merge_greps(mut answers: Vec<GrepResult>, query: &GrepQuery) -> GrepResult {
    if answers.len() == 1 {
        return answers.pop().unwrap_or_default();
    }
    let mut skipped = Skipped::default();
    let mut truncated = false;
    let mut files = Vec::new();
    for answer in answers {
        skipped += answer.skipped;
        truncated |= answer.truncated;
        files.extend(answer.files);
    }
    files.sort_unstable_by(|one, two| one.path.cmp(&two.path));
    let mut found = GrepCollector::new(query);
    for file in files {
        if found.add(Ok(file)) {
            break;
        }
    }
    let mut found = found.finish(skipped);
    found.truncated |= truncated;
    found
}
