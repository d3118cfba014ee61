//! [`OnDemand`]: a machine that is created on demand, and the states that it goes through.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::sync::lock;
use backend_core::{Error, ErrorKind, Result};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;

/// The reason for making a machine ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartReason {
    /// An operation needs it.
    OnDemand,
    /// The caller explicitly asked to start it. Then one that was deleted, with its files, may
    /// be created again.
    Explicit,
}

/// A machine as it was last seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Presence {
    /// It was never there, or this object has deleted it.
    #[default]
    Unseen,
    /// It was there, so if it is missing now, it was deleted.
    Seen,
    /// It was running, and this object has not stopped it since.
    Running,
}

/// Whether callers need a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Demand {
    /// No caller has requested it yet.
    #[default]
    None,
    Requested,
    /// The last clone is dropped: nothing is created or started any more.
    Closed,
}

/// The last known state of a machine, and the facts that its backend knows about it.
#[derive(Debug, Default)]
pub struct State<F> {
    demand: Demand,
    /// The machine as it was last seen.
    pub presence: Presence,
    /// Whether a machine of this name may exist that this object created.
    pub attempted: bool,
    facts: F,
}

impl<F: Default> State<F> {
    /// Creates the state of a machine that was not looked at yet.
    pub fn new(presence: Presence) -> Self {
        Self {
            presence,
            ..Self::default()
        }
    }

    /// Whether it was there.
    pub fn existed(&self) -> bool {
        self.presence != Presence::Unseen
    }

    /// Notes that it is there.
    pub fn set_seen(&mut self) {
        self.presence = self.presence.max(Presence::Seen);
    }

    /// Notes that it does not run.
    pub fn set_not_running(&mut self) {
        self.presence = self.presence.min(Presence::Seen);
    }

    /// Forgets the machine, but not whether callers need one.
    pub fn forget(&mut self, presence: Presence) {
        let demand = self.demand;
        *self = Self {
            demand,
            ..Self::new(presence)
        };
    }
}

impl<F> Deref for State<F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.facts
    }
}

impl<F> DerefMut for State<F> {
    fn deref_mut(&mut self) -> &mut F {
        &mut self.facts
    }
}

/// The steps in the life of a machine that is created on demand.
///
/// # Signatures
///
/// The async methods, as they are written under `#[async_trait]`:
///
/// ```text
/// async fn make_ready(&self, reason: StartReason) -> Result<()>;
/// async fn end(&self, mode: StopMode) -> Result<()>;
/// ```
#[async_trait]
pub trait Lifecycle: fmt::Debug + Send + Sync + 'static {
    /// The facts that the backend knows about its machine.
    type Facts: Default + Send;

    /// Returns the last known state. No I/O.
    fn known(&self) -> &Mutex<State<Self::Facts>>;

    /// Makes the machine run, and creates it if it must and may.
    ///
    /// # Errors
    ///
    /// `Unavailable` with the next step if it cannot be started, or was deleted with its
    /// files and is not started explicitly.
    async fn make_ready(&self, reason: StartReason) -> Result<()>;

    /// Stops the machine, or deletes it.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the service that runs it does not answer.
    async fn end(&self, mode: StopMode) -> Result<()>;
}

/// A machine that is created on demand and goes through one step of its life at a time.
/// Clones refer to the same machine.
#[derive(Debug)]
pub struct OnDemand<C>(Arc<Inner<C>>);

#[derive(Debug)]
struct Inner<C> {
    core: C,
    /// Held by every operation that changes the machine's state.
    turn: Semaphore,
}

impl<C> Clone for OnDemand<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C> Deref for OnDemand<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.0.core
    }
}

impl<C: Lifecycle> OnDemand<C> {
    /// Creates a machine. No I/O.
    pub fn new(core: C) -> Self {
        let turn = Semaphore::new(1);
        Self(Arc::new(Inner { core, turn }))
    }

    fn locked(&self) -> MutexGuard<'_, State<C::Facts>> {
        lock(self.known())
    }

    /// Whether it was running when it was last looked at. No I/O.
    pub fn is_running(&self) -> bool {
        self.locked().presence == Presence::Running
    }

    /// Runs an operation that changes the machine's state: one at a time, and to completion
    /// even if the caller is dropped. Otherwise a machine could stay forever that no object
    /// knows of.
    ///
    /// # Errors
    ///
    /// Any of the operation.
    pub async fn exclusively<F>(&self, work: impl FnOnce(Self) -> F) -> Result<()>
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let (machine, work) = (self.clone(), work(self.clone()));
        let work: BoxFuture<'static, Result<()>> = Box::pin(async move {
            let _turn = machine.0.turn.acquire().await;
            work.await
        });
        let task = tokio::spawn(work);
        let ended = task.await;
        ended.unwrap_or_else(|_| Err(Error::unavailable("the process is ending")))
    }

    /// Makes the machine ready.
    ///
    /// # Errors
    ///
    /// As [`make_ready`](Lifecycle::make_ready); `Unavailable` if it is closed.
    pub async fn start(&self, reason: StartReason) -> Result<()> {
        {
            let mut state = self.locked();
            if state.demand == Demand::None {
                state.demand = Demand::Requested;
            }
        }
        self.exclusively(move |machine| async move {
            let is_closed = machine.locked().demand == Demand::Closed;
            let ready = if is_closed {
                Err(Error::unavailable("the sandbox was dropped; make another"))
            } else {
                machine.make_ready(reason).await
            };
            let mut state = machine.locked();
            match ready {
                Ok(()) => state.presence = Presence::Running,
                Err(_) => state.set_not_running(),
            }
            drop(state);
            ready
        })
        .await
    }

    /// Stops the machine, or deletes it.
    ///
    /// # Errors
    ///
    /// As [`end`](Lifecycle::end), unless the service that runs machines has never answered.
    pub async fn stop(&self, mode: StopMode) -> Result<()> {
        let stop = move |machine: Self| async move { machine.stop_now(mode).await };
        self.exclusively(stop).await
    }

    async fn stop_now(&self, mode: StopMode) -> Result<()> {
        let is_ours = {
            let state = self.locked();
            state.attempted || state.existed()
        };
        match self.end(mode).await {
            // If the service never answered, there is nothing of ours to stop.
            Err(error) if !is_ours && error.kind() == ErrorKind::Unavailable => Ok(()),
            ended => ended,
        }
    }

    /// Closes the machine: a creation in progress is finished and then disposed of, and
    /// nothing is created any more. Returns the remaining work, if there is any.
    pub fn close(&self, mode: StopMode) -> Option<BoxFuture<'static, Result<()>>> {
        let demand = std::mem::replace(&mut self.locked().demand, Demand::Closed);
        let machine = self.clone();
        (demand == Demand::Requested).then(|| {
            let stop = move |machine: Self| async move {
                if machine.locked().attempted {
                    return machine.stop_now(mode).await;
                }
                Ok(())
            };
            async move { machine.exclusively(stop).await }.boxed()
        })
    }
}

#[cfg(test)]
mod tests;
