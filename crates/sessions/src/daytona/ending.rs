//! Ending a session as idle, so that no process ends what another one begins to use.
//!
//! The service replaces the labels of a sandbox as a whole and without a condition: of two
//! processes that change them at the same moment, one undoes the change of the other. So both
//! look again after the *settle time*, in which every change that began before is done.
//!
//! - A process that ends a session writes a mark, waits, and stops the sandbox only if the mark
//!   is still there and no later use is.
//! - A process that begins to use a session writes the time, waits, and looks for a mark. If
//!   there is one, it waits until the sandbox is stopped or the mark is gone.
//!
//! If the change of one falls between the reading and the writing of the other, one of them is
//! undone, and the process that wrote it sees that: the first does not stop the sandbox, the
//! second finds the mark of the first.
//!
//! A process that uses a session all the time writes the time of its use every few seconds, and
//! does not wait: the time that it finds is its own and a few seconds old, and no process ends a
//! session that another one used so recently.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use backend_core::Result;
use backend_core::ops::StopMode;
use backend_daytona::InstanceState;
use backend_daytona::instances::{self, Instance};
use tokio::time::sleep;

use super::DaytonaEngine;
use crate::error::contended;
use crate::id::SessionId;
use crate::names::new_key;
use crate::notes::{self, ACTIVE};
use crate::time::elapsed;

/// Label: the process that is about to end the session.
const MARK: &str = "sessions.agentbox.dev/ending";

/// The pause before a sandbox that is about to be stopped is looked at again.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How often a use is written that others got ahead of.
const TRIES: u32 = 10;
/// Settle times in which a process that has marked a session stops it or gives up. One that
/// takes longer was killed.
const MARK_TIMES: u32 = 7;
/// Settle times in which a use by another process keeps a session from being ended.
const RECENT_TIMES: u32 = 30;
/// Settle times after which a process that wrote the latest use waits again with the next one:
/// less than half of those, because the time of a use is written as late as that.
const REGULAR_TIMES: u32 = 7;

impl DaytonaEngine {
    /// Writes the time of a use. When it returns, no process is ending the session that did not
    /// see it.
    pub(super) async fn write_use(&self, id: &SessionId, at: SystemTime) -> Result<bool> {
        let mut left = None;
        for _ in 0..TRIES {
            let Some(found) = self.find(id).await? else {
                self.forget(id);
                return Ok(false);
            };
            // One that does not run is not ended by others.
            let runs = found.state == InstanceState::Started;
            let mark = found.labels.get(MARK).filter(|_| runs);
            if let Some(mark) = mark.filter(|mark| left.as_ref() != Some(*mark)) {
                match self.await_mark(id, mark).await? {
                    Marked::Stopped => return Ok(false),
                    Marked::GivenUp => {}
                    Marked::Left => left = Some(mark.clone()),
                }
                continue;
            }
            let is_regular = self.is_regular(id, &found);
            let begun = Instant::now();
            let written = self.write_time(id, &found, at).await;
            if self.unless_replaced(id, &found, written).await?.is_none() {
                return Ok(false);
            }
            let took = begun.elapsed();
            if !runs || (is_regular && took <= self.0.settle) {
                return Ok(true);
            }
            sleep(self.0.settle.max(took)).await;
            match self.find(id).await? {
                Some(again) if again.state == InstanceState::Started => {
                    if has_use(&again, at) && !again.labels.contains_key(MARK) {
                        return Ok(true);
                    }
                }
                _ => return Ok(false),
            }
        }
        Err(contended(id))
    }

    /// Writes the time of a use, never an earlier one, and removes the mark of a process that was
    /// killed.
    async fn write_time(&self, id: &SessionId, found: &Instance, at: SystemTime) -> Result<()> {
        let latest = notes::active(&found.labels).map_or(at, |active| active.max(at));
        let changes = BTreeMap::from([
            (ACTIVE.to_owned(), Some(notes::millis(latest))),
            (MARK.to_owned(), None),
        ]);
        instances::change_labels(&self.0.account, &found.id, &changes).await?;
        if let Some(known) = self.known().get_mut(id) {
            known.written = Some((latest, Instant::now()));
        }
        Ok(())
    }

    /// Whether the latest use is of this process, and was written a moment ago.
    fn is_regular(&self, id: &SessionId, found: &Instance) -> bool {
        let settle = self.0.settle;
        let written = self.known().get(id).and_then(|known| known.written);
        written.is_some_and(|(_, when)| {
            let age = when.elapsed();
            self.is_own(id, found) && age >= settle && age < settle * REGULAR_TIMES
        })
    }

    /// Whether the latest use that was written is of this process.
    fn is_own(&self, id: &SessionId, found: &Instance) -> bool {
        let written = self.known().get(id).and_then(|known| known.written);
        let own = written.map(|(at, _)| notes::millis(at));
        own.is_some() && own.as_ref() == found.labels.get(ACTIVE)
    }

    /// Waits until the process that marked a session has ended it or has given up.
    async fn await_mark(&self, id: &SessionId, mark: &str) -> Result<Marked> {
        let begun = Instant::now();
        while begun.elapsed() < self.0.settle * MARK_TIMES {
            sleep(POLL_INTERVAL).await;
            match self.find(id).await? {
                Some(found) if found.state == InstanceState::Started => {
                    if found.labels.get(MARK).is_none_or(|found| found != mark) {
                        return Ok(Marked::GivenUp);
                    }
                }
                _ => return Ok(Marked::Stopped),
            }
        }
        Ok(Marked::Left)
    }

    /// Ends a session that no process has used since `since`.
    pub(super) async fn end_unused(&self, id: &SessionId, since: SystemTime) -> Result<bool> {
        let Some(found) = self.find(id).await? else {
            self.forget(id);
            return Ok(false);
        };
        if found.state != InstanceState::Started || self.is_used(id, &found, since) {
            return Ok(false);
        }
        let mark = new_key();
        let changes = BTreeMap::from([(MARK.to_owned(), Some(mark.clone()))]);
        let begun = Instant::now();
        let marked = instances::change_labels(&self.0.account, &found.id, &changes).await?;
        let is_late = begun.elapsed() > self.0.settle;
        let ended = if is_late || self.is_used(id, &marked, since) {
            Ok(false)
        } else {
            sleep(self.0.settle).await;
            self.end_marked(id, &mark, since).await
        };
        // A mark on a sandbox that does not run means nothing, and the next use removes it.
        if !matches!(ended, Ok(true))
            && let Err(error) = self.unmark(id, &mark).await
        {
            tracing::debug!(session = %id, "a mark was left behind: {}", error.chain());
        }
        ended
    }

    async fn end_marked(&self, id: &SessionId, mark: &str, since: SystemTime) -> Result<bool> {
        match self.marked(id, mark).await? {
            Some(found) if !self.is_used(id, &found, since) => {
                self.end(id, &found, StopMode::Keep).await?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    async fn unmark(&self, id: &SessionId, mark: &str) -> Result<()> {
        let Some(found) = self.marked(id, mark).await? else {
            return Ok(());
        };
        let changes = BTreeMap::from([(MARK.to_owned(), None)]);
        instances::change_labels(&self.0.account, &found.id, &changes)
            .await
            .map(drop)
    }

    /// Returns the sandbox of a session that runs and has this mark.
    async fn marked(&self, id: &SessionId, mark: &str) -> Result<Option<Instance>> {
        let found = self.find(id).await?;
        Ok(found.filter(|found| {
            let is_marked = found.labels.get(MARK).is_some_and(|found| found == mark);
            is_marked && found.state == InstanceState::Started
        }))
    }

    /// Whether a session was used after `since`, or a moment ago by another process.
    fn is_used(&self, id: &SessionId, found: &Instance, since: SystemTime) -> bool {
        let Some(active) = notes::active(&found.labels) else {
            return false;
        };
        let is_recent = elapsed(active, SystemTime::now()) < self.0.settle * RECENT_TIMES;
        active > since || (is_recent && !self.is_own(id, found))
    }
}

/// Whether a use at that time, or a later one, is written. Labels have whole milliseconds.
fn has_use(found: &Instance, at: SystemTime) -> bool {
    let active = notes::active(&found.labels);
    active.is_some_and(|active| active + Duration::from_millis(1) > at)
}

/// The outcome of a mark.
enum Marked {
    /// The sandbox does not run any more.
    Stopped,
    /// The mark is gone, or another one.
    GivenUp,
    /// The process that wrote it was killed.
    Left,
}
