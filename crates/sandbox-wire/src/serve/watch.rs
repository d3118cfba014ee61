//! Sends the changes of a watch.

use backend_core::ops::WatchQuery;
use backend_core::{Backend, WatchStream};
use futures::StreamExt as _;

use crate::message::{BATCH, Reply, send};
use crate::serve::stream::{CallError, Writer};

/// Watches a directory and sends its changes, as many at a time as there are.
///
/// If the host does not read, sending waits, and the backend's own queue fills up and
/// says that changes were lost.
pub(super) async fn watch(
    backend: &dyn Backend,
    query: WatchQuery,
    writer: &mut Writer,
) -> Result<Reply, CallError> {
    let changes: WatchStream = backend.watch(query).await?;
    send(writer, &Reply::Done).await?;
    let mut batches = changes.ready_chunks(BATCH);
    while let Some(batch) = batches.next().await {
        let (mut events, mut error) = (Vec::with_capacity(batch.len()), None);
        for event in batch {
            match event {
                Ok(event) => events.push(event),
                Err(failed) => error = Some(failed),
            }
        }
        if !events.is_empty() {
            send(writer, &Reply::Changes(events)).await?;
        }
        if let Some(error) = error {
            return Err(error.into());
        }
    }
    Ok(Reply::Done)
}
