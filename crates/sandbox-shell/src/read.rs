//! Reading: `resolve`, `stat`, `ls`, `read`, `read_text`.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend_core::limits::TEMPORARY_PREFIX;
use backend_core::ops::{
    Entry, FileBytes, FileKind, Links, Listing, LsOptions, ReadOptions, Skipped, TextOptions,
};
use backend_core::text::{Progress, TextWindow, WindowScanner};
use backend_core::{Error, ErrorKind, Result, VPath};
use bytes::Bytes;
use futures::FutureExt as _;
use sandbox_wire::Machine;

use crate::failure::broken;
use crate::pool::Pool;
use crate::record::{Record, records};
use crate::worker::Request;

/// The maximum size of one directory's listing: some hundred thousand entries.
pub(crate) const LISTING_BYTES: usize = 64 * 1024 * 1024;

/// Files are read in whole blocks of this size.
const BLOCK: u64 = 64 * 1024;

/// Bytes read at once for a window of lines, at first and later.
const FIRST_BYTES: u64 = 4 * BLOCK;
const MORE_BYTES: u64 = 64 * BLOCK;

/// Numbers above this count as infinite. Shells cannot count further.
const UNBOUNDED: u64 = 1 << 60;

/// Retries after a concurrent change of the file before giving up.
const ATTEMPTS: usize = 8;

/// The age at which a temporary file counts as left behind.
const STALE: Duration = Duration::from_secs(60 * 60);

/// Leftover files removed at once.
const STALE_REMOVED: usize = 100;

/// A resolved path: the kind of the entry, and its path without links.
pub(crate) struct ResolvedPath {
    /// The script's letter for it: d, f, o, or n for nothing.
    pub(crate) kind: u8,
    pub(crate) path: Bytes,
}

impl ResolvedPath {
    /// Reads the answer of the script.
    pub(crate) fn parse(answer: &Bytes) -> Result<Self> {
        match answer.first() {
            Some(&kind) => Ok(Self {
                kind,
                path: answer.slice(1..),
            }),
            None => Err(broken("the resolved path is missing")),
        }
    }
}

impl<M: Machine> Pool<M> {
    pub(crate) async fn resolve_entry(
        self: &Arc<Self>,
        path: &VPath,
        links: Links,
    ) -> Result<ResolvedPath> {
        let request = Request::at("resolve", path, links);
        ResolvedPath::parse(&self.ask(request).await?)
    }

    pub(crate) async fn resolve(self: &Arc<Self>, path: &VPath) -> Result<VPath> {
        let resolved = self.resolve_entry(path, Links::Follow).await?;
        let text = std::str::from_utf8(&resolved.path).map_err(|source| {
            Error::new(
                ErrorKind::InvalidPath,
                "a symbolic link leads to a name that is not UTF-8; rename what it leads to",
            )
            .with_source(source)
        })?;
        Ok(VPath::parse(text)?)
    }

    pub(crate) async fn stat(self: &Arc<Self>, path: &VPath, links: Links) -> Result<Entry> {
        let request = Request::at("stat", path, links);
        parse_stat(path, &self.ask(request).await?)
    }

    pub(crate) async fn ls(self: &Arc<Self>, path: &VPath, options: LsOptions) -> Result<Listing> {
        if options.limit == 0 {
            return options.listing(Vec::new(), Skipped::default());
        }
        let request = Request::at("ls", path, options.links).limit(LISTING_BYTES);
        let answer = self.ask(request).await?;
        if answer.first() != Some(&b'd') {
            let entry = parse_stat(path, &answer)?;
            return options.listing(vec![entry], Skipped::default());
        }
        let begins = answer.windows(2).position(|pair| pair == b"//");
        let begins = begins.unwrap_or(answer.len());
        let directory = answer.slice(1..begins);
        let rows = answer.slice(begins..);
        let mut found = DirListing::default();
        for record in records(&rows, false)? {
            found.add(path, &record);
        }
        if found.links {
            self.resolve_links(path, &directory, &mut found).await?;
        }
        self.remove_stale(&directory, &found.stale);
        options.listing(found.entries, found.skipped)
    }

    /// Replaces the descriptions of links by those of their targets.
    async fn resolve_links(
        self: &Arc<Self>,
        path: &VPath,
        directory: &Bytes,
        found: &mut DirListing,
    ) -> Result<()> {
        let request = Request::new("targets")
            .arg(or_root(directory))
            .limit(LISTING_BYTES);
        let answer = self.ask(request).await?;
        let targets: std::collections::HashMap<_, _> = records(&answer, false)?
            .into_iter()
            .filter(|record| record.kind != FileKind::Link)
            .filter_map(|record| Some((child(path, record.name)?, record)))
            .collect();
        for entry in &mut found.entries {
            if entry.link
                && let Some(target) = targets.get(&entry.path)
            {
                *entry = target.entry(entry.path.clone()).with_link(true);
            }
        }
        Ok(())
    }

    /// Removes temporary files left behind by writers, without waiting for it.
    fn remove_stale(self: &Arc<Self>, directory: &Bytes, stale: &[String]) {
        if stale.is_empty() {
            return;
        }
        let request = Request::new("discard").arg(or_root(directory)).args(stale);
        let pool = Arc::clone(self);
        tokio::spawn(async move { drop(pool.call(request).await) }.boxed());
    }

    /// Reads a part of a file, from `start` to `end`, with the file's identity.
    async fn part(
        self: &Arc<Self>,
        path: &VPath,
        links: Links,
        (start, end, most): (u64, Option<u64>, u64),
    ) -> Result<Part> {
        let (start, most) = (start.min(UNBOUNDED), most.min(UNBOUNDED));
        let end = end.filter(|end| *end < UNBOUNDED);
        let wanted = end.map_or(most, |end| end.saturating_sub(start).min(most));
        let limit = usize::try_from(wanted + 2 * BLOCK + 512).unwrap_or(usize::MAX);
        let request = Request::at("read", path, links)
            .arg(start.to_string())
            .arg(end.map_or("-1".to_owned(), |end| end.to_string()))
            .arg(most.to_string())
            .limit(limit);
        let answer = self.ask(request).await?;
        let line = answer.iter().position(|byte| *byte == b'\n');
        let line = line.ok_or_else(|| broken("invalid file information"))?;
        let known = std::str::from_utf8(answer.get(..line).unwrap_or_default());
        let (size, identity) = known
            .ok()
            .and_then(|known| known.split_once(' '))
            .ok_or_else(|| broken("invalid file information"))?;
        let skip = usize::try_from(start % BLOCK).unwrap_or_default();
        Ok(Part {
            size: size
                .parse()
                .map_err(|_| broken("invalid file information"))?,
            identity: identity.to_owned(),
            data: answer.slice((line + 1 + skip).min(answer.len())..),
        })
    }

    pub(crate) async fn read(
        self: &Arc<Self>,
        path: &VPath,
        options: ReadOptions,
    ) -> Result<FileBytes> {
        let range = options.range;
        for _ in 0..ATTEMPTS {
            let wanted = (range.start, range.end, options.max_bytes);
            let part = self.part(path, options.links, wanted).await?;
            let offsets = options.offsets(part.size)?;
            let length = usize::try_from(offsets.end - offsets.start).unwrap_or(usize::MAX);
            // If there is less data, the file was truncated meanwhile.
            if part.data.len() >= length {
                return Ok(FileBytes::new(part.data.slice(..length), part.size));
            }
        }
        Err(keeps_changing())
    }

    pub(crate) async fn read_text(
        self: &Arc<Self>,
        path: &VPath,
        options: TextOptions,
    ) -> Result<TextWindow> {
        for _ in 0..ATTEMPTS {
            let mut scanner = WindowScanner::new(options)?;
            let mut pieces = Pieces::new(path, options.links, FIRST_BYTES);
            let done = loop {
                match pieces.next(self).await? {
                    Next::Piece(piece) => {
                        if matches!(scanner.push(&piece), Progress::Done) {
                            break true;
                        }
                    }
                    Next::End => break true,
                    Next::Changed => break false,
                }
            };
            if done {
                return Ok(scanner.finish()?);
            }
        }
        Err(keeps_changing())
    }
}

fn keeps_changing() -> Error {
    Error::unavailable("the file keeps changing while it is read; try again")
}

struct Part {
    size: u64,
    /// The file's identity and modification time.
    identity: String,
    data: Bytes,
}

/// A file piece by piece, as long as it stays the same file.
pub(crate) struct Pieces<'p> {
    path: &'p VPath,
    links: Links,
    at: u64,
    step: u64,
    known: Option<(u64, String)>,
}

pub(crate) enum Next {
    Piece(Bytes),
    End,
    /// The file has changed or was replaced.
    Changed,
}

impl<'p> Pieces<'p> {
    pub(crate) fn new(path: &'p VPath, links: Links, step: u64) -> Self {
        Self {
            path,
            links,
            at: 0,
            step,
            known: None,
        }
    }

    pub(crate) async fn next<M: Machine>(&mut self, pool: &Arc<Pool<M>>) -> Result<Next> {
        if self
            .known
            .as_ref()
            .is_some_and(|(size, _)| self.at >= *size)
        {
            return Ok(Next::End);
        }
        let wanted = (self.at, Some(self.at + self.step), self.step);
        let part = pool.part(self.path, self.links, wanted).await?;
        let known = (part.size, part.identity);
        if self.known.as_ref().is_some_and(|before| *before != known) {
            return Ok(Next::Changed);
        }
        let length = part.size.saturating_sub(self.at).min(self.step);
        self.at += length;
        self.step = MORE_BYTES;
        self.known = Some(known);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if part.data.len() >= length {
            Ok(Next::Piece(part.data.slice(..length)))
        } else {
            Ok(Next::Changed)
        }
    }
}

/// The contents of a directory.
#[derive(Default)]
struct DirListing {
    entries: Vec<Entry>,
    skipped: Skipped,
    links: bool,
    stale: Vec<String>,
}

impl DirListing {
    fn add(&mut self, directory: &VPath, record: &Record<'_>) {
        if record.name.starts_with(TEMPORARY_PREFIX.as_bytes()) {
            let age = record
                .modified
                .and_then(|time| SystemTime::now().duration_since(time).ok());
            if let Ok(name) = std::str::from_utf8(record.name)
                && let Some(rest) = name.strip_prefix(TEMPORARY_PREFIX)
                && age.is_some_and(|age| age > STALE)
                && self.stale.len() < STALE_REMOVED
            {
                self.stale.push(rest.to_owned());
            }
            return;
        }
        match child(directory, record.name) {
            Some(path) => {
                let entry = record.entry(path);
                self.links |= entry.link;
                self.entries.push(entry);
            }
            None if std::str::from_utf8(record.name).is_err() => self.skipped.not_utf8 += 1,
            None => self.skipped.unreadable += 1,
        }
    }
}

/// Returns the path of a name in a directory, if it is valid.
fn child(directory: &VPath, name: &[u8]) -> Option<VPath> {
    directory.child(std::str::from_utf8(name).ok()?).ok()
}

/// Returns a directory's path in the form that a script needs.
fn or_root(directory: &Bytes) -> &[u8] {
    if directory.is_empty() {
        b"/"
    } else {
        directory
    }
}

/// Parses the entry at `path` itself: a mark that says whether it is a link,
/// and one record.
fn parse_stat(path: &VPath, answer: &[u8]) -> Result<Entry> {
    let (link, rows) = match answer {
        [b'l', rows @ ..] => (true, rows),
        [b'-', rows @ ..] => (false, rows),
        _ => return Err(broken("invalid file record")),
    };
    let found = records(rows, false)?;
    let [record] = found.as_slice() else {
        return Err(broken("invalid file record"));
    };
    Ok(record.entry(path.clone()).with_link(link))
}
