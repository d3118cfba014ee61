//! The changes of a watch, as they arrive.

use std::collections::VecDeque;

use backend_core::limits::PATH_BYTES;
use backend_core::ops::{Change, WatchEvent, WatchQuery};
use backend_core::{Error, Result, WatchStream};
use futures::StreamExt as _;

use crate::channel::Call;
use crate::client::SMALL;
use crate::message::{BATCH, Reply};

/// The size of the longest message with changes, each of which may name two paths.
const CHANGES: usize = SMALL + BATCH * 2 * (PATH_BYTES + 64);

/// A watch whose changes arrive.
struct Watch {
    call: Call,
    query: WatchQuery,
    /// Changes that arrived and were not taken. No more are asked for until they are.
    arrived: VecDeque<WatchEvent>,
}

/// Returns the changes of a watch. `name` adds the context to an error.
pub(crate) async fn changes(
    mut call: Call,
    query: WatchQuery,
    name: impl Fn(Error) -> Error + Send + Sync + 'static,
) -> Result<WatchStream> {
    match call.reply(SMALL).await? {
        Reply::Done => {}
        other => return Err(call.unexpected(&other, "changes").await),
    }
    let watch = Watch {
        call,
        query,
        arrived: VecDeque::new(),
    };
    let changes = futures::stream::unfold(Some(watch), |watch| async move {
        let mut watch = watch?;
        match watch.next().await {
            Ok(event) => Some((Ok(event?), Some(watch))),
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(changes.map(move |event| event.map_err(&name)).boxed())
}

impl Watch {
    async fn next(&mut self) -> Result<Option<WatchEvent>> {
        if let Some(event) = self.arrived.pop_front() {
            return Ok(Some(event));
        }
        let events = match self.call.reply(CHANGES).await? {
            Reply::Changes(events) => events,
            Reply::Done => return Ok(None),
            other => return Err(self.call.unexpected(&other, "changes").await),
        };
        if events.is_empty() || events.len() > BATCH || !events.iter().all(|it| self.is_true(it)) {
            let what = "it told other changes than were asked for";
            return Err(self.call.broken(what).await);
        }
        self.arrived = events.into();
        Ok(self.arrived.pop_front())
    }

    /// Whether the event can be one of this watch.
    fn is_true(&self, event: &WatchEvent) -> bool {
        match event {
            WatchEvent::Change(change) => {
                change.paths().all(|path| self.query.tells(path))
                    || *change == Change::deleted(self.query.path.clone())
            }
            _ => true,
        }
    }
}
