//! Glob and grep, built from listings and reads.

use futures_core::future::BoxFuture;

use crate::backend::Backend;
use crate::derived::files::{failed, read_all};
use crate::error::{Error, ErrorKind, Operation, Result};
use crate::limits::IGNORE_FILE_BYTES;
use crate::ops::{
    Entry, GlobQuery, GlobResult, GrepQuery, GrepResult, Links, LsOptions, ReadOptions, Skipped,
    StatOptions,
};
use crate::path::VPath;
use crate::search::{
    Child, Exclude, GlobCollector, GrepCollector, SkipReason, Step, Walk, WalkOptions,
};

/// Implements [`Backend::glob`] by listing one directory after another.
pub async fn glob_by_walk<B: Backend + ?Sized>(
    backend: &B,
    query: GlobQuery,
) -> Result<GlobResult> {
    let found: Result<_> = async {
        let options = query.compile()?;
        let stat = StatOptions::default().links(query.links);
        if !backend.stat(&query.path, stat).await?.is_dir() {
            return Err(Error::not_a_directory());
        }
        let mut walk = AsyncWalk::new(backend, &query.path, options);
        let mut found = GlobCollector::new(&query);
        while let Some(entry) = walk.next_file().await? {
            if found.add(entry).is_break() {
                break;
            }
        }
        Ok(found.finish(walk.walk.skipped()))
    }
    .await;
    found.map_err(failed(backend, Operation::Glob, &query.path))
}

/// Implements [`Backend::grep`] by reading one file after another, each as a whole.
pub async fn grep_by_read<B: Backend + ?Sized>(
    backend: &B,
    query: GrepQuery,
) -> Result<GrepResult> {
    let found: Result<_> = async {
        let (options, grep) = query.compile()?;
        let stat = StatOptions::default().links(query.links);
        let start = backend.stat(&query.path, stat).await?;
        let mut worker = grep.worker();
        let mut found = GrepCollector::new(&query);
        if !start.is_dir() {
            if !query.exclude.hides(&query.path) {
                let content = read_all(backend, &query.path, query.links).await?;
                found.add(worker.search_bytes(&query.path, &content));
            }
            return Ok(found.finish(Default::default()));
        }
        let mut walk = AsyncWalk::new(backend, &query.path, options);
        while let Some(entry) = walk.next_file().await? {
            let searched = match read_all(backend, &entry.path, Links::Refuse).await {
                Ok(content) => worker.search_bytes(&entry.path, &content),
                Err(error) => Err(entry_skip_reason(error)?),
            };
            if found.add(searched) {
                break;
            }
        }
        Ok(found.finish(walk.walk.skipped()))
    }
    .await;
    found.map_err(failed(backend, Operation::Grep, &query.path))
}

/// Implements [`Backend::grep`] by listing one directory after another and passing
/// each file to `search`, which need not read it as a whole. `search` answers a
/// query for one file as [`Backend::grep`] does.
pub async fn grep_by_file<'s, B: Backend + ?Sized>(
    backend: &B,
    query: GrepQuery,
    search: impl Fn(GrepQuery) -> BoxFuture<'s, Result<GrepResult>> + Send + Sync,
) -> Result<GrepResult> {
    let found: Result<_> = async {
        let (options, _) = query.compile()?;
        let stat = StatOptions::default().links(query.links);
        let start = backend.stat(&query.path, stat).await?;
        if !start.is_dir() {
            if query.exclude.hides(&query.path) {
                return Ok(GrepResult::default());
            }
            return search(unfiltered(&query)).await;
        }
        let mut walk = AsyncWalk::new(backend, &query.path, options);
        let mut found = GrepCollector::new(&query);
        let (mut skipped, mut truncated) = (Skipped::default(), false);
        while let Some(entry) = walk.next_file().await? {
            let mut one = unfiltered(&query).links(Links::Refuse);
            one.path = entry.path;
            let is_full = match search(one).await {
                Ok(answer) => {
                    skipped += answer.skipped;
                    truncated = answer.truncated;
                    let mut files = answer.files.into_iter();
                    files.any(|file| found.add(Ok(file))) || truncated
                }
                Err(error) => found.add(Err(entry_skip_reason(error)?)),
            };
            if is_full {
                break;
            }
        }
        let mut found = found.finish(walk.walk.skipped());
        found.skipped += skipped;
        found.truncated |= truncated;
        Ok(found)
    }
    .await;
    found.map_err(failed(backend, Operation::Grep, &query.path))
}

/// Returns the query for a single file that the walk has already selected.
fn unfiltered(query: &GrepQuery) -> GrepQuery {
    let mut one = query.clone();
    one.files = None;
    one.exclude = Exclude::default();
    one
}

/// Separates errors of one entry, which a search skips, from errors of the backend,
/// which end the search.
fn entry_skip_reason(error: Error) -> Result<SkipReason> {
    match error.kind() {
        ErrorKind::NotFound
        | ErrorKind::IsADirectory
        | ErrorKind::NotADirectory
        | ErrorKind::IsALink
        | ErrorKind::InvalidInput
        | ErrorKind::PermissionDenied
        | ErrorKind::TooLarge => Ok(SkipReason::Unreadable(std::io::Error::other(error))),
        _ => Err(error),
    }
}

/// Drives the shared walk with the backend's `ls` and `read`.
struct AsyncWalk<'b, B: ?Sized> {
    backend: &'b B,
    walk: Walk<(), Entry>,
    start: VPath,
}

impl<'b, B: Backend + ?Sized> AsyncWalk<'b, B> {
    fn new(backend: &'b B, start: &VPath, options: WalkOptions) -> Self {
        Self {
            backend,
            walk: Walk::new(start.clone(), options),
            start: start.clone(),
        }
    }

    async fn next_file(&mut self) -> Result<Option<Entry>> {
        loop {
            match self.walk.step() {
                Step::Done => return Ok(None),
                Step::File { payload, .. } => return Ok(Some(payload)),
                Step::Enter { path, .. } => {
                    let path = path.clone();
                    self.enter(&path).await?;
                }
                Step::IgnoreFile { path, .. } => {
                    let path = path.clone();
                    let options = ReadOptions::default()
                        .links(Links::Refuse)
                        .max_bytes(IGNORE_FILE_BYTES as u64);
                    match self.backend.read(&path, options).await {
                        Ok(rules) => self.walk.ignore_file(Some(&rules.data)),
                        Err(error) => {
                            entry_skip_reason(error)?;
                            self.walk.ignore_file(None);
                        }
                    }
                }
            }
        }
    }

    async fn enter(&mut self, path: &VPath) -> Result<()> {
        let all = LsOptions::default().limit(usize::MAX);
        match self.backend.ls(path, all).await {
            Ok(listing) => {
                self.walk.skip_names(listing.skipped.not_utf8);
                let children = listing.entries.into_iter().filter(|entry| !entry.link);
                let children = children.map(|entry| Child {
                    name: entry.name().to_owned(),
                    kind: entry.kind,
                    payload: entry,
                });
                self.walk.entered((), children.collect());
                Ok(())
            }
            Err(error) if *path == self.start => Err(error),
            Err(error) => {
                entry_skip_reason(error)?;
                self.walk.unreadable();
                Ok(())
            }
        }
    }
}
