//! Copies one file, a piece at a time.

use std::sync::{Arc, Mutex};

use backend_core::ops::{Content, FileBytes, Links, ReadOptions, WriteMode, WriteOptions};
use backend_core::sync::lock;
use backend_core::{Error, Operation, Result, VPath};
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _};

use super::Transfer;
use crate::composite::Composite;
use crate::route::Route;
use crate::table::Table;

/// Bytes held in memory at a time.
const PIECE_BYTES: u64 = 1024 * 1024;

/// A file that is being read.
struct Reader {
    route: Arc<Route>,
    path: VPath,
    at: VPath,
    next: u64,
    size: u64,
    /// The reason why reading failed; the writer may not return the error unchanged.
    failure: Arc<Mutex<Option<Error>>>,
}

impl Reader {
    async fn piece(&self, start: u64) -> Result<FileBytes> {
        let options = ReadOptions::default()
            .links(Links::Refuse)
            .range(start..start.saturating_add(PIECE_BYTES));
        let read = self.route.backend().read(&self.at, options).await;
        read.map_err(self.route.translate_error(Operation::Read, &self.path))
    }

    /// Returns the next piece, or `None` at the end of the file.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        if self.next >= self.size {
            return Ok(None);
        }
        let piece = self.piece(self.next).await?;
        if piece.size != self.size || piece.data.is_empty() {
            return Err(Error::conflict().at(Operation::Read, &self.path));
        }
        self.next += piece.data.len() as u64;
        Ok(Some(piece.data))
    }

    /// Returns a stream of `first` and the rest of the file.
    fn stream(self, first: Bytes) -> BoxStream<'static, Result<Bytes>> {
        let rest = stream::unfold(Some(self), async |reader| {
            let mut reader = reader?;
            match reader.next().await {
                Ok(piece) => Some((Ok(piece?), Some(reader))),
                Err(error) => {
                    let told = Error::new(error.kind(), "the source cannot be read");
                    *lock(&reader.failure) = Some(error);
                    Some((Err(told), None))
                }
            }
        });
        stream::iter([Ok(first)]).chain(rest).boxed()
    }
}

impl Composite {
    /// Copies a file. Returns `true` if nothing existed at the destination.
    pub(super) async fn copy_file(
        &self,
        table: &Table,
        from: &VPath,
        to: &VPath,
        transfer: &Transfer,
    ) -> Result<bool> {
        let route = Arc::clone(table.find(from).route);
        let mut reader = Reader {
            at: route.to_child(from)?,
            route,
            path: from.clone(),
            next: 0,
            size: 0,
            failure: Arc::default(),
        };
        let first = reader.piece(0).await?;
        reader.next = first.data.len() as u64;
        reader.size = first.size;
        let failure = Arc::clone(&reader.failure);
        let content = if reader.next >= reader.size {
            Content::Bytes(first.data)
        } else {
            Content::Stream(reader.stream(first.data))
        };
        let mode = if transfer.overwrite {
            WriteMode::Overwrite
        } else {
            WriteMode::CreateNew
        };
        let write = WriteOptions::default()
            .links(Links::Refuse)
            .mode(mode)
            .durable(transfer.durable);
        let written = self.write_in(table, to, content, write).await;
        let unread = lock(&failure).take();
        match (written, unread) {
            (_, Some(error)) => Err(error),
            (written, None) => Ok(written?.created),
        }
    }
}
