//! A directory as a tar archive, read piece by piece.

use std::io;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use backend_core::ops::{Entry, FileKind, LsOptions, ReadOptions};
use backend_core::{Backend, Error, Operation, Result, VPath};
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use tar::{Builder, EntryType, Header};

use crate::time::elapsed;

/// Most entries of an archive. More is an error, never a part of them.
pub const ARCHIVE_ENTRIES: usize = 1_000_000;

/// Bytes of a file that are read at once.
const PIECE_BYTES: u64 = 1024 * 1024;

/// The unit of the format: what is shorter is filled up with zeros.
const BLOCK_BYTES: u64 = 512;

/// The two empty blocks at the end.
const END: &[u8] = &[0; 2 * BLOCK_BYTES as usize];

/// Packs everything beneath the root.
pub(super) fn archive(files: Arc<dyn Backend>) -> BoxStream<'static, Result<Bytes>> {
    let packing = Packing {
        files,
        pending: vec![Entry::directory(VPath::root())],
        file: None,
        entries: 0,
        is_ended: false,
    };
    let next = |mut packing: Packing| async move {
        let piece = packing.next().await?;
        Ok::<_, Error>(piece.map(|piece| (piece, packing)))
    };
    stream::try_unfold(packing, next).boxed()
}

struct Packing {
    files: Arc<dyn Backend>,
    /// The entries that are still to be packed, the next last.
    pending: Vec<Entry>,
    /// The file whose header is out.
    file: Option<OpenFile>,
    /// The entries that were found so far.
    entries: usize,
    is_ended: bool,
}

struct OpenFile {
    path: VPath,
    at: u64,
    size: u64,
}

impl Packing {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            if let Some(file) = self.file.take() {
                return self.content(file).await.map(Some);
            }
            if let Some(entry) = self.pending.pop() {
                if let Some(header) = self.begin(entry).await? {
                    return Ok(Some(header));
                }
            } else if self.is_ended {
                return Ok(None);
            } else {
                self.is_ended = true;
                return Ok(Some(Bytes::from_static(END)));
            }
        }
    }

    /// Returns the header of an entry, if it is packed.
    async fn begin(&mut self, entry: Entry) -> Result<Option<Bytes>> {
        match entry.kind {
            FileKind::Directory if !entry.link => {
                let left = ARCHIVE_ENTRIES - self.entries;
                // One at least: a limit of none would not tell whether there are any.
                let options = LsOptions::default().limit(left.max(1));
                let listed = self.files.ls(&entry.path, options).await;
                let Some(listing) = Error::none_if_missing(listed)? else {
                    return Ok(None);
                };
                if listing.total > left {
                    return Err(Error::too_large(format!(
                        "there are more than the {ARCHIVE_ENTRIES} entries that an archive may have"
                    )));
                }
                self.entries += listing.total;
                self.pending.extend(listing.entries.into_iter().rev());
                if entry.path.is_root() {
                    return Ok(None);
                }
                header(&entry, EntryType::Directory, 0).map(Some)
            }
            FileKind::File => {
                let size = entry.size.unwrap_or_default();
                let header = header(&entry, EntryType::Regular, size)?;
                if size > 0 {
                    self.file = Some(OpenFile {
                        path: entry.path,
                        at: 0,
                        size,
                    });
                }
                Ok(Some(header))
            }
            _ => Ok(None),
        }
    }

    /// Returns the next piece of a file, with what fills its last block.
    async fn content(&mut self, mut file: OpenFile) -> Result<Bytes> {
        let end = file.size.min(file.at + PIECE_BYTES);
        let options = ReadOptions::default().range(file.at..end);
        let piece = self.files.read(&file.path, options).await?.data;
        if piece.len() as u64 != end - file.at {
            // The header already says how long it is.
            return Err(Error::conflict().at(Operation::Read, &file.path));
        }
        file.at = end;
        if end < file.size {
            self.file = Some(file);
            return Ok(piece);
        }
        let whole = piece.len() + (file.size.next_multiple_of(BLOCK_BYTES) - file.size) as usize;
        if whole == piece.len() {
            return Ok(piece);
        }
        let mut filled = BytesMut::from(&piece[..]);
        filled.resize(whole, 0);
        Ok(filled.freeze())
    }
}

/// Returns the header of an entry, with an extension if its path is long.
fn header(entry: &Entry, kind: EntryType, size: u64) -> Result<Bytes> {
    let is_directory = kind == EntryType::Directory;
    let (mode, end) = if is_directory {
        (0o755, "/")
    } else {
        (0o644, "")
    };
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    // Not the bits that let a program run as its owner: unpacked by root, that is root.
    header.set_mode(entry.mode.unwrap_or(mode) & 0o777);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(size);
    let modified = entry.modified.map(|time| elapsed(UNIX_EPOCH, time));
    header.set_mtime(modified.unwrap_or_default().as_secs());
    let path = format!("{}{end}", entry.path.as_str().trim_start_matches('/'));
    let mut builder = Builder::new(Vec::<u8>::new());
    // Only the header: the content follows as it is read.
    let added = builder.append_data(&mut header, path, io::empty());
    added.map_err(|error| {
        let error = Error::internal("an archive could not be packed").with_source(error);
        error.at(Operation::Read, &entry.path)
    })?;
    Ok(std::mem::take(builder.get_mut()).into())
}
