//! `glob` and `grep`: the machine lists and reads, the search happens here.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use backend_core::ops::{
    FileMatches, GlobQuery, GlobResult, GrepQuery, GrepResult, Links, Skipped,
};
use backend_core::search::{GlobCollector, Grep, GrepCollector, SkipReason};
use backend_core::{Error, Result, VPath};
use bytes::{Buf as _, Bytes};
use sandbox_wire::Machine;
use tokio::sync::mpsc;

use crate::failure::is_about_entry;
use crate::pool::Pool;
use crate::read::{Next, Pieces};
use crate::tree::{Avoid, Content, FileInfo, Tree};
use crate::worker::Request;

/// Files up to this size are read together with others.
const SMALL_BYTES: u64 = 15 * 64 * 1024;

/// Blocks of 64 KiB read of such a file: more than it has, to detect its end.
const SMALL_BLOCKS: usize = 16;

/// Limits of one batch: files, their bytes, and the bytes of their names.
const BATCH_FILES: usize = 256;
const BATCH_BYTES: u64 = 8 * 1024 * 1024;
const BATCH_NAMES: usize = 16 * 1024;

/// The size of the first batch: a search may end soon.
const FIRST_FILES: usize = 16;

/// Bytes read at once of a large file.
const LARGE_BYTES: u64 = 1024 * 1024;

impl<M: Machine> Pool<M> {
    pub(crate) async fn glob(self: &Arc<Self>, query: GlobQuery) -> Result<GlobResult> {
        let options = query.compile()?;
        let avoid = Avoid::of(&options);
        let look = self.look_ahead(&query.path, query.links, avoid, Content::Rules);
        let (start, ahead) = look.await?;
        match start.kind {
            b'd' => {}
            b'n' => return Err(Error::not_found()),
            _ => return Err(Error::not_a_directory()),
        }
        let mut tree = Tree::new(self, query.path.clone(), start.path, options);
        if let Some(ahead) = ahead {
            tree.use_ahead(ahead).await?;
        }
        let mut found = GlobCollector::new(&query);
        while let Some((path, row)) = tree.next_file().await? {
            if found.add(row.entry(path)).is_break() {
                break;
            }
        }
        Ok(found.finish(tree.skipped()))
    }

    pub(crate) async fn grep(self: &Arc<Self>, query: GrepQuery) -> Result<GrepResult> {
        let (options, grep) = query.compile()?;
        let avoid = Avoid::of(&options);
        let look = self.look_ahead(&query.path, query.links, avoid, Content::All);
        let (start, ahead) = look.await?;
        match start.kind {
            b'n' => return Err(Error::not_found()),
            b'o' => return Err(Error::not_a_file()),
            _ => {}
        }
        let mut search = Search {
            pool: self,
            grep,
            found: GrepCollector::new(&query),
            batch: Vec::new(),
            known: BTreeMap::new(),
            files: FIRST_FILES,
        };
        if start.kind != b'd' {
            if !query.exclude.hides(&query.path) {
                search.large(&query.path, &query.path, query.links).await?;
            }
            return Ok(search.found.finish(Skipped::default()));
        }
        let mut tree = Tree::new(self, query.path.clone(), start.path, options);
        if let Some(ahead) = ahead {
            search.known = tree.use_ahead(ahead).await?;
        }
        while let Some((path, row)) = tree.next_file().await? {
            let real_path = tree.real_path(&path);
            let inside = path.strip_prefix(&query.path).unwrap_or_default();
            let content = search.known.remove(inside);
            if search.file(path, &row, real_path, content).await? {
                return Ok(search.found.finish(tree.skipped()));
            }
        }
        search.flush().await?;
        Ok(search.found.finish(tree.skipped()))
    }
}

/// A file that waits to be searched.
struct Waiting {
    path: VPath,
    /// Its path without links.
    real_path: Vec<u8>,
    size: u64,
    /// Its content, if it is known already.
    content: Option<Bytes>,
}

struct Search<'p, M> {
    pool: &'p Arc<Pool<M>>,
    grep: Grep,
    found: GrepCollector,
    batch: Vec<Waiting>,
    /// Files that were read ahead, by their path from the start.
    known: BTreeMap<String, Bytes>,
    /// The number of files to read at once.
    files: usize,
}

impl<M: Machine> Search<'_, M> {
    /// Adds the next file. Returns whether the result is full.
    async fn file(
        &mut self,
        path: VPath,
        row: &FileInfo,
        real_path: Vec<u8>,
        content: Option<Bytes>,
    ) -> Result<bool> {
        // Empty files are skipped. In `/proc` all files claim to be empty, and
        // reading some of them would block.
        if row.size == 0 && (self.pool.is_root() || row.is_readable()) {
            return Ok(false);
        }
        if row.size > SMALL_BYTES {
            return Ok(self.flush().await? || self.large_entry(&path, &real_path).await?);
        }
        self.batch.push(Waiting {
            path,
            real_path,
            size: row.size,
            // It may have changed since it was listed, or have been cut.
            content: content.filter(|content| content.len() as u64 == row.size),
        });
        let bytes: u64 = self.batch.iter().map(|file| file.size).sum();
        let names: usize = self.batch.iter().map(|file| file.real_path.len()).sum();
        if self.batch.len() < self.files && bytes < BATCH_BYTES && names < BATCH_NAMES {
            return Ok(false);
        }
        self.files = (self.files * 4).min(BATCH_FILES);
        self.flush().await
    }

    /// Searches the waiting files. Returns whether the result is full.
    async fn flush(&mut self) -> Result<bool> {
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            return Ok(false);
        }
        let unknown = batch.iter().filter(|file| file.content.is_none());
        let unknown: Vec<_> = unknown.map(|file| &file.real_path).collect();
        let mut parts = Vec::new().into_iter();
        if !unknown.is_empty() {
            let request = Request::new("cat")
                .arg(SMALL_BLOCKS.to_string())
                .args(&unknown)
                .limit(unknown.len() * (SMALL_BLOCKS * 64 * 1024 + 1));
            parts = self.pool.call(request).await?.into_iter();
        }
        for file in &batch {
            if let Some(content) = &file.content {
                if self.search(&file.path, content) {
                    return Ok(true);
                }
                continue;
            }
            let part = parts.next().unwrap_or_default();
            let is_full = match part.split_first() {
                Some((b'+', rest)) if rest.len() as u64 > SMALL_BYTES => {
                    self.large_entry(&file.path, &file.real_path).await?
                }
                Some((b'+', rest)) => self.search(&file.path, rest),
                _ => self.found.add(Err(gone())),
            };
            if is_full {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Searches a file in memory. Returns whether the result is full.
    fn search(&mut self, path: &VPath, content: &[u8]) -> bool {
        let search = || self.grep.worker().search_slice(path, content);
        let searched = tokio::task::block_in_place(search);
        self.found.add(searched)
    }

    /// Searches a large file found by a walk.
    async fn large_entry(&mut self, path: &VPath, real_path: &[u8]) -> Result<bool> {
        let real = std::str::from_utf8(real_path).ok();
        let real = real.and_then(|real_path| VPath::parse(real_path).ok());
        let searched = match real {
            Some(real) => self.large(path, &real, Links::Refuse).await,
            None => self.large(path, path, Links::Follow).await,
        };
        match searched {
            Ok(is_full) => Ok(is_full),
            Err(error) if is_about_entry(&error) => Ok(self
                .found
                .add(Err(SkipReason::Unreadable(io::Error::other(error))))),
            Err(error) => Err(error),
        }
    }

    /// Searches a file while it is read.
    async fn large(&mut self, path: &VPath, real_path: &VPath, links: Links) -> Result<bool> {
        let mut pieces = Pieces::new(real_path, links, LARGE_BYTES);
        let mut next = pieces.next(self.pool).await?;
        let (send, pipe) = mpsc::channel(2);
        let reader = Reader {
            pipe,
            piece: Bytes::new(),
        };
        let (grep, path) = (self.grep.clone(), path.clone());
        let search = tokio::task::spawn_blocking(move || -> Result<FileMatches, SkipReason> {
            grep.worker().search_reader(&path, reader)
        });
        loop {
            let piece = match next {
                Next::Piece(piece) => Ok(piece),
                Next::End => break,
                Next::Changed => Err(io::Error::new(
                    io::ErrorKind::Interrupted,
                    "the file changed while it was read",
                )),
            };
            let is_over = piece.is_err();
            // The search may already be done.
            if send.send(piece).await.is_err() || is_over {
                break;
            }
            next = pieces.next(self.pool).await?;
        }
        drop(send);
        let searched = search.await.map_err(|error| {
            Error::internal("a search failed; please report this").with_source(error)
        })?;
        Ok(self.found.add(searched))
    }
}

fn gone() -> SkipReason {
    SkipReason::Unreadable(io::Error::from(io::ErrorKind::NotFound))
}

/// Pieces from a channel as one stream of bytes.
struct Reader {
    pipe: mpsc::Receiver<io::Result<Bytes>>,
    piece: Bytes,
}

impl io::Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pipe.blocking_recv() {
                Some(piece) => self.piece = piece?,
                None => return Ok(0),
            }
        }
        let count = self.piece.len().min(buffer.len());
        self.piece
            .split_to(count)
            .copy_to_slice(buffer.get_mut(..count).unwrap_or_default());
        Ok(count)
    }
}
