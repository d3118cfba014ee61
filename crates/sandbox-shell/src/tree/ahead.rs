//! [`Ahead`]: the answers that a search will probably need, asked for at once where each
//! question takes long.
//!
//! Of these answers, only what is certain is used, and the rest is asked for again. So they
//! affect how long a search takes, never its result.

use std::collections::BTreeMap;
use std::sync::Arc;

use backend_core::limits::PATH_DEPTH;
use backend_core::ops::Links;
use backend_core::{Result, VPath};
use bytes::Bytes;
use sandbox_wire::Machine;

use super::{Avoid, cat_small, contents, ignore_files_above, tree_request};
use crate::pool::Pool;
use crate::read::ResolvedPath;
use crate::worker::Request;

/// The maximum size of a listing, in bytes.
pub(super) const LISTING_BYTES: usize = 128 * 1024;

/// The maximum number of files that are read, and the size of each.
const FILES: usize = 64;
const FILE_BYTES: usize = 16 * 1024;
/// The maximum size of the names of ignore files above a directory. Requests that are sent
/// at once must be short.
const ABOVE_BYTES: usize = 8 * 1024;
/// The longest path of a file.
const PATH_BYTES: usize = 4 * 1024;

/// The files to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Ignore files only.
    Rules,
    /// Small files too.
    All,
}

/// Answers about the tree beneath a directory.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// The parts of the answer that lists it. Empty if there is none.
    pub(super) listing: Vec<Bytes>,
    /// The ignore files above it, by path.
    pub(super) above: BTreeMap<String, Option<Bytes>>,
    /// Whole files in it, by their path from there.
    pub(super) files: BTreeMap<String, Bytes>,
}

impl<M: Machine> Pool<M> {
    /// Resolves the start of a search, and looks ahead if the machine is distant.
    pub(crate) async fn look_ahead(
        self: &Arc<Self>,
        path: &VPath,
        links: Links,
        avoid: Avoid,
        content: Content,
    ) -> Result<(ResolvedPath, Option<Ahead>)> {
        let above = ignore_files_above(path);
        let names: usize = above.iter().map(|path| path.as_str().len()).sum();
        if !self.machine.is_distant() || names > ABOVE_BYTES {
            return Ok((self.resolve_entry(path, links).await?, None));
        }
        let real_path = path.as_str().as_bytes();
        let start = String::new();
        let peek = Request::new("peek")
            .arg(real_path)
            .arg(if content == Content::All { "a" } else { "" })
            .arg(FILES.to_string())
            .arg(avoid.pattern())
            .parts(FILES)
            .limit(FILES * (FILE_BYTES + PATH_BYTES));
        let requests = vec![
            Request::at("resolve", path, links),
            tree_request(real_path, PATH_DEPTH, LISTING_BYTES, avoid, &[start]),
            cat_small(above.iter().map(VPath::as_str)),
            peek,
        ];
        let mut answers = self.call_all(requests).await?.into_iter();
        // Answers other than the first are not needed.
        let mut next = || answers.next().unwrap_or_else(|| Ok(Vec::new()));
        let resolved = next()?.pop().unwrap_or_default();
        let resolved = ResolvedPath::parse(&resolved)?;
        let [listing, rules, files] = [(); 3].map(|()| next().unwrap_or_default());
        if resolved.kind != b'd' || *resolved.path != *real_path {
            return Ok((resolved, None));
        }
        let rules = contents(rules, above.len());
        let above = above.iter().map(VPath::to_string);
        Ok((
            resolved,
            Some(Ahead {
                listing,
                above: above.zip(rules).collect(),
                files: files.iter().filter_map(file).collect(),
            }),
        ))
    }
}

/// Reads the path and the content of a file.
fn file(part: &Bytes) -> Option<(String, Bytes)> {
    let end = part.iter().position(|byte| *byte == b'\n')?;
    let path = std::str::from_utf8(part.get(..end)?).ok()?;
    Some((path.to_owned(), part.slice(end + 1..)))
}
