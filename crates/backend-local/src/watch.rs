//! Watching a directory with inotify.
//!
//! A watch costs one descriptor and, for every directory beneath, one watch of the
//! kernel. The engine waits for events, so a quiet tree costs nothing; the work on them
//! is done where it may block, because a new directory is listed.

mod events;
mod tree;
mod watcher;

use std::sync::Arc;

use backend_core::ops::WatchQuery;
use backend_core::watch::{ChangeSender, ChangeStream, channel};
use backend_core::{Operation, Result};
use tokio::time::{Instant, sleep_until};
use watcher::{Next, Watcher, failed};

use crate::cancel::CancelFlag;
use crate::engine;
use crate::fs::RootedFs;

/// Starts a watch. When this returns, later changes are told. Errors in the stream name
/// the backend as `name`.
pub(crate) fn open(
    name: &'static str,
    fs: &RootedFs,
    query: WatchQuery,
    cancel: &CancelFlag,
) -> Result<ChangeStream> {
    let root = fs.watch_root(&query.path, query.links)?;
    let (sender, stream) = channel();
    let sender = Arc::new(sender);
    let path = query.path.clone();
    let watcher = Watcher::begin(root, query, Arc::clone(&sender), cancel)?;
    backend_run::spawn(engine::handle()?, async move {
        if let Err(error) = run(watcher, &sender).await {
            sender.fail(error.at(Operation::Watch, &path).on(name));
        }
    });
    Ok(stream)
}

/// Handles events until the stream is dropped or the watched directory is gone.
async fn run(mut watcher: Watcher, sender: &ChangeSender) -> Result<()> {
    let inotify = watcher.inotify();
    let mut until: Option<Instant> = None;
    loop {
        tokio::select! {
            () = sender.closed() => return Ok(()),
            ready = inotify.readable() => ready.map_err(failed)?,
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {}
        }
        let next;
        (watcher, next) = engine::blocking(move || {
            let next = watcher.step()?;
            Ok((watcher, next))
        })
        .await?;
        until = match next {
            Next::Idle => None,
            Next::Until(time) => Some(time.into()),
            Next::End => return Ok(()),
        };
    }
}

#[cfg(test)]
mod tests;
