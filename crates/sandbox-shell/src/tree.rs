//! Walks the files beneath a directory in path order, with few requests to the
//! machine.
//!
//! The walk needs one directory after the other. Here whole trees are listed
//! ahead, in pieces of limited size. Of a listing, only directories that are
//! known to be complete are used, and missing ones are requested again. So
//! listing ahead affects how long a search takes, never its result.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use backend_core::limits::{IGNORE_FILE_BYTES, PATH_DEPTH};
use backend_core::ops::{FileKind, Skipped};
use backend_core::search::{Step, Walk, WalkOptions};
use backend_core::{Error, Quoted, Result, VPath};
use bytes::Bytes;
use sandbox_wire::Machine;

use crate::failure::{broken, is_about_entry};
use crate::pool::Pool;
use crate::read::LISTING_BYTES;
use crate::record::records;
use crate::worker::Request;

mod ahead;
mod listing;

use ahead::Ahead;
pub(crate) use ahead::Content;
pub(crate) use listing::{Avoid, FileInfo};
use listing::{ListedDir, Sorter, ignore_files, last_name};

/// The maximum size of the listings in one answer, in bytes.
const AHEAD_BYTES: usize = 16 * 1024 * 1024;

/// Directories listed at once.
const BATCH: usize = 64;

/// Ignore files read at once.
const IGNORE_FILES: usize = 64;

/// A walk over the files beneath a directory.
pub(crate) struct Tree<'p, M> {
    pool: &'p Arc<Pool<M>>,
    start: VPath,
    /// The start's path without links.
    real_path: Bytes,
    walk: Walk<(), FileInfo>,
    avoid: Avoid,
    /// Whether ignore files are respected.
    ignoring: bool,
    /// Directories by their path from the start, which ends with a slash;
    /// `None` for those that cannot be read. In the order in which they are
    /// entered.
    listed: BTreeMap<String, Option<ListedDir>>,
    /// Directories that were found but not listed.
    seen: BTreeSet<String>,
    /// Ignore files by their path.
    ignore_files: BTreeMap<String, Option<Bytes>>,
    above: bool,
    batch: usize,
}

impl<'p, M: Machine> Tree<'p, M> {
    pub(crate) fn new(
        pool: &'p Arc<Pool<M>>,
        start: VPath,
        real_path: Bytes,
        options: WalkOptions,
    ) -> Self {
        let avoid = Avoid::of(&options);
        let ignoring = !options.ignored;
        Self {
            pool,
            ignoring,
            walk: Walk::new(start.clone(), options),
            start,
            real_path,
            avoid,
            listed: BTreeMap::new(),
            seen: BTreeSet::new(),
            ignore_files: BTreeMap::new(),
            above: false,
            batch: 0,
        }
    }

    /// Uses answers that were asked for ahead, where they are complete. Returns the
    /// files in them.
    pub(crate) async fn use_ahead(&mut self, ahead: Ahead) -> Result<BTreeMap<String, Bytes>> {
        self.above = true;
        self.ignore_files.extend(ahead.above);
        for (file, text) in &ahead.files {
            if matches!(last_name(file), ".gitignore" | ".ignore")
                && let Ok(path) = self.start.join(&format!("./{file}"))
            {
                self.ignore_files
                    .insert(path.to_string(), Some(text.clone()));
            }
        }
        if !ahead.listing.is_empty() {
            let keys = [String::new()];
            self.take(&keys, PATH_DEPTH, ahead::LISTING_BYTES, &ahead.listing)
                .await?;
            self.batch = 1;
        }
        Ok(ahead.files)
    }

    pub(crate) fn skipped(&self) -> Skipped {
        self.walk.skipped()
    }

    /// Returns the path without links of a path beneath the start.
    pub(crate) fn real_path(&self, path: &VPath) -> Vec<u8> {
        let inside = path.strip_prefix(&self.start).unwrap_or_default();
        self.real_path_of(inside)
    }

    fn real_path_of(&self, inside: &str) -> Vec<u8> {
        let mut real_path = self
            .real_path
            .strip_suffix(b"/")
            .unwrap_or(&self.real_path)
            .to_vec();
        if !inside.is_empty() {
            real_path.push(b'/');
            real_path.extend_from_slice(inside.as_bytes());
        }
        if real_path.is_empty() {
            real_path.push(b'/');
        }
        real_path
    }

    /// Returns the next file and its metadata.
    pub(crate) async fn next_file(&mut self) -> Result<Option<(VPath, FileInfo)>> {
        loop {
            match self.walk.step() {
                Step::Done => return Ok(None),
                Step::File { path, payload, .. } => return Ok(Some((path, payload))),
                Step::Enter { path, .. } => {
                    let inside = path.strip_prefix(&self.start).unwrap_or_default();
                    let key = key(inside);
                    self.enter(key).await?;
                }
                Step::IgnoreFile {
                    path, directory, ..
                } => {
                    let (path, is_above) = (path.clone(), directory.is_none());
                    if is_above && !self.above {
                        self.above = true;
                        self.read_above().await?;
                    }
                    let rules = self.ignore_file(&path).await?;
                    self.walk.ignore_file(rules.as_deref());
                }
            }
        }
    }

    async fn enter(&mut self, key: String) -> Result<()> {
        // Earlier directories were skipped.
        self.listed = self.listed.split_off(&key);
        self.seen = self.seen.split_off(&key);
        if !self.listed.contains_key(&key) {
            self.list(&key).await?;
        }
        match self.listed.remove(&key) {
            Some(Some(listed)) => {
                let directories = listed.children.iter();
                let directories = directories
                    .filter(|child| child.kind == FileKind::Directory)
                    .map(|child| format!("{key}{}/", child.name))
                    .filter(|key| !self.listed.contains_key(key));
                self.seen.extend(directories.collect::<Vec<_>>());
                self.walk.skip_names(listed.not_utf8);
                self.walk.entered((), listed.children);
            }
            Some(None) => self.walk.unreadable(),
            None if key.is_empty() => return Err(Error::not_found()),
            None => self.walk.unreadable(),
        }
        Ok(())
    }

    /// Lists a directory, and others that will be needed soon.
    async fn list(&mut self, wanted: &str) -> Result<()> {
        let mut keys = vec![wanted.to_owned()];
        // The start shows which directories matter, because some are ignored.
        let is_first = self.batch == 0;
        if !is_first {
            let others = self.seen.iter();
            let others =
                others.filter(|key| *key != wanted && !self.avoid.is_avoided(last_name(key)));
            keys.extend(others.take(self.batch - 1).cloned());
        }
        let is_cut = if is_first {
            self.fetch(&keys, 1, LISTING_BYTES).await?
        } else {
            self.fetch(&keys, PATH_DEPTH, AHEAD_BYTES).await?
        };
        self.batch = if is_cut {
            1
        } else {
            (self.batch * 2).clamp(1, BATCH)
        };
        if !self.listed.contains_key(wanted) {
            keys.truncate(1);
            if self.fetch(&keys, 1, LISTING_BYTES).await? {
                return Err(Error::too_large(format!(
                    "{} holds too many entries to be searched; search what is in it",
                    Quoted::new(wanted)
                )));
            }
        }
        Ok(())
    }

    /// Requests listings of trees. Returns whether they were too large.
    async fn fetch(&mut self, keys: &[String], depth: usize, most: usize) -> Result<bool> {
        let request = tree_request(&self.real_path_of(""), depth, most, self.avoid, keys);
        let parts = match self.pool.call(request).await {
            Ok(parts) => parts,
            // The start is gone or unreadable, and so are its contents.
            Err(error) if is_about_entry(&error) => {
                let unreadable = keys.iter().map(|key| (key.clone(), None));
                self.listed.extend(unreadable);
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        self.take(keys, depth, most, &parts).await
    }

    /// Takes listings of trees. Returns whether they were too large.
    async fn take(
        &mut self,
        keys: &[String],
        depth: usize,
        most: usize,
        parts: &[Bytes],
    ) -> Result<bool> {
        let [readable, rows] = parts else {
            return Err(broken("the listing is missing"));
        };
        let mut starts = Vec::new();
        for (key, readable) in keys.iter().zip(readable.iter()) {
            self.seen.remove(key);
            match readable {
                b'r' => starts.push(key.as_str()),
                _ => drop(self.listed.insert(key.clone(), None)),
            }
        }
        let is_cut = rows.len() >= most;
        let rows = records(rows, is_cut)?;
        let sorter = Sorter {
            avoid: self.avoid,
            reads_all: self.pool.is_root(),
            is_deep: depth > 1,
            is_cut,
        };
        let listed = sorter.sort(&starts, &rows);
        if self.ignoring {
            self.read_ignore_files(ignore_files(&listed)).await?;
        }
        let listed = listed.into_iter().map(|(key, listed)| (key, Some(listed)));
        self.listed.extend(listed);
        Ok(is_cut)
    }

    /// Reads the ignore files above the start, all at once.
    async fn read_above(&mut self) -> Result<()> {
        let paths = ignore_files_above(&self.start);
        for some in paths.chunks(IGNORE_FILES) {
            let paths = some.iter().map(|path| path.as_str().as_bytes().to_vec());
            let texts = self.read_small(paths.collect()).await?;
            let paths = some.iter().map(VPath::to_string);
            self.ignore_files.extend(paths.zip(texts));
        }
        Ok(())
    }

    /// Reads ignore files beneath the start ahead of time.
    async fn read_ignore_files(&mut self, mut files: Vec<String>) -> Result<()> {
        files.retain(|file| {
            let path = self.start.join(&format!("./{file}"));
            !path.is_ok_and(|path| self.ignore_files.contains_key(path.as_str()))
        });
        if files.is_empty() {
            return Ok(());
        }
        // Those of skipped directories are no longer needed.
        if self.ignore_files.len() > IGNORE_FILES {
            self.ignore_files.clear();
        }
        let paths = files.iter().map(|file| self.real_path_of(file)).collect();
        let texts = self.read_small(paths).await?;
        for (file, text) in files.iter().zip(texts) {
            if let Ok(path) = self.start.join(&format!("./{file}")) {
                self.ignore_files.insert(path.to_string(), text);
            }
        }
        Ok(())
    }

    /// Returns the content of an ignore file, or `None` if it cannot be read.
    async fn ignore_file(&mut self, path: &VPath) -> Result<Option<Bytes>> {
        if let Some(known) = self.ignore_files.remove(path.as_str()) {
            return Ok(known);
        }
        let real_path = match path.strip_prefix(&self.start) {
            Some(_) => self.real_path(path),
            None => path.as_str().as_bytes().to_vec(),
        };
        Ok(self.read_small(vec![real_path]).await?.pop().flatten())
    }

    async fn read_small(&self, paths: Vec<Vec<u8>>) -> Result<Vec<Option<Bytes>>> {
        let parts = match self.pool.call(cat_small(&paths)).await {
            Ok(parts) => parts,
            Err(error) if is_about_entry(&error) => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(contents(parts, paths.len()))
    }
}

/// Returns the request for listings of trees beneath a directory.
fn tree_request(
    real_path: &[u8],
    depth: usize,
    most: usize,
    avoid: Avoid,
    keys: &[String],
) -> Request {
    let inside = |key: &String| format!("./{}", key.strip_suffix('/').unwrap_or_default());
    Request::new("tree")
        .arg(real_path)
        .arg(depth.to_string())
        .arg(most.to_string())
        .arg(avoid.pattern())
        .args(keys.iter().map(inside))
        .limit(most + 1024)
}

/// Returns the request for the content of small files.
fn cat_small(paths: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Request {
    const BLOCK: usize = 64 * 1024;
    // One block more than the limit, to detect the end.
    let blocks = IGNORE_FILE_BYTES / BLOCK + 1;
    let paths: Vec<_> = paths.into_iter().collect();
    Request::new("cat")
        .arg(blocks.to_string())
        .args(&paths)
        .limit(paths.len() * (blocks * BLOCK + 1) + 1)
}

/// Returns the contents of so many files from the answer to such a request; `None` for
/// those that cannot be read.
fn contents(parts: Vec<Bytes>, files: usize) -> Vec<Option<Bytes>> {
    let text = |part: Bytes| (part.first() == Some(&b'+')).then(|| part.slice(1..));
    let mut texts: Vec<_> = parts.into_iter().map(text).collect();
    texts.resize(files, None);
    texts
}

/// Returns the paths of the ignore files above a directory.
fn ignore_files_above(start: &VPath) -> Vec<VPath> {
    let mut paths = Vec::new();
    for above in start.ancestors() {
        for name in [".gitignore", ".ignore"] {
            if let Ok(path) = above.child(name) {
                paths.push(path);
            }
        }
    }
    paths
}

/// Returns the key of a directory from its path beneath the start.
fn key(inside: &str) -> String {
    match inside {
        "" => String::new(),
        inside => format!("{inside}/"),
    }
}
