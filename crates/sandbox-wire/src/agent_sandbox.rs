//! [`AgentSandbox`]: a machine with an agent in it, as a backend.

mod activity;
mod backend;
mod connect;
mod output;
mod sandbox;

use std::borrow::Cow;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backend_core::{Capabilities, Operation, Result, VPath};
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use tokio_util::task::AbortOnDropHandle;

use crate::channel::{Call, Channel, Lost};
use crate::engine;
use crate::hello::Facts;
use crate::machine::Machine;
use crate::message::Request;
use activity::Activity;
use connect::connect;

/// How a channel to an agent is kept.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AgentOptions {
    /// How often a silent channel is asked whether it still lives.
    pub heartbeat: Duration,
    /// How long an answer to that, or the handshake, may take.
    pub patience: Duration,
    /// Calls that may be under way at once; others wait. At most 250.
    pub calls: usize,
    /// What the agent's backend can do. Without commands the sandbox is a backend
    /// only.
    pub capabilities: Capabilities,
}

impl Default for AgentOptions {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_secs(5),
            patience: Duration::from_secs(20),
            calls: 250,
            capabilities: Capabilities::writable()
                .with_links()
                .with_modes()
                .with_times()
                .with_durable()
                .with_commands(),
        }
    }
}

impl AgentOptions {
    /// Sets how often a heartbeat is sent.
    #[must_use]
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = heartbeat;
        self
    }

    /// Sets how long the agent may be silent.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets how many calls may be under way at once.
    #[must_use]
    pub fn calls(mut self, calls: usize) -> Self {
        self.calls = calls;
        self
    }

    /// Sets what the agent's backend can do.
    #[must_use]
    pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }
}

/// A [`Machine`] whose files and commands are served by an agent inside it.
///
/// The machine is started and the agent placed and connected by the first call
/// that needs it. A channel that is lost is opened again for the next call;
/// calls that were under way answer `Unavailable` and are never sent again.
///
/// Its futures can be polled by any runtime or none, and dropping one cancels the
/// operation in the machine.
#[derive(Debug)]
pub struct AgentSandbox<M> {
    machine: Arc<M>,
    options: AgentOptions,
    state: Arc<Mutex<State>>,
    activity: Activity,
}

/// A channel that is being opened, by all who want it.
type Attempt = BoxFuture<'static, Result<Arc<Channel>, Lost>>;

#[derive(Debug, Default)]
struct State {
    /// How often the sandbox was stopped. A channel that was begun before the
    /// last time is not used.
    stops: u64,
    way: Way,
}

#[derive(Debug, Default)]
enum Way {
    #[default]
    None,
    /// Ends when nobody waits for it any more.
    Opening(WeakShared<Attempt>),
    Open(Arc<Channel>),
}

impl<M: Machine> AgentSandbox<M> {
    /// A backend of this machine. No I/O.
    pub fn new(machine: Arc<M>, options: AgentOptions) -> Self {
        Self {
            machine,
            options,
            state: Arc::default(),
            activity: Activity::default(),
        }
    }

    /// The machine.
    pub fn machine(&self) -> &Arc<M> {
        &self.machine
    }

    /// What the agent said about itself, if a channel to it is open. No I/O.
    pub fn agent(&self) -> Option<Facts> {
        match &lock(&self.state).way {
            Way::Open(channel) if !channel.is_closed() => Some(channel.facts().clone()),
            _ => None,
        }
    }

    fn name(&self) -> Cow<'static, str> {
        self.machine.name()
    }

    /// The channel, opened if it is not.
    async fn channel(&self) -> Result<Arc<Channel>> {
        let attempt = {
            let mut state = lock(&self.state);
            let under_way = match &state.way {
                Way::Open(channel) if !channel.is_closed() => return Ok(Arc::clone(channel)),
                Way::Opening(attempt) => attempt.upgrade(),
                Way::Open(_) | Way::None => None,
            };
            match under_way {
                Some(attempt) => attempt,
                None => {
                    let attempt = self.attempt(state.stops)?;
                    state.way = attempt.downgrade().map_or(Way::None, Way::Opening);
                    attempt
                }
            }
        };
        attempt.await.map_err(|lost| lost.error())
    }

    /// Opens a channel on the engine.
    fn attempt(&self, stops: u64) -> Result<Shared<Attempt>> {
        let machine = Arc::clone(&self.machine);
        let options = self.options.clone();
        let state = Arc::clone(&self.state);
        let activity = self.activity.clone();
        let task = engine::handle()?.spawn(async move {
            let opened = connect(machine, options, activity).await;
            let mut state = lock(&state);
            if state.stops != stops {
                return Err(Lost::new("the sandbox was stopped; start it again"));
            }
            let channel = opened.map(Arc::new).map_err(Lost::from);
            state.way = match &channel {
                Ok(channel) => Way::Open(Arc::clone(channel)),
                Err(_) => Way::None,
            };
            channel
        });
        let task = AbortOnDropHandle::new(task);
        let attempt = async move {
            let opened = task.await;
            opened.unwrap_or_else(|_| Err(Lost::new("the process is ending")))
        };
        Ok(attempt.boxed().shared())
    }

    /// Sends a request.
    async fn open(&self, request: Request) -> Result<Call> {
        let channel = self.channel().await?;
        if let Some(call) = channel.call(&request).await? {
            return Ok(call);
        }
        // The channel was gone already, and the request is still here.
        let channel = self.channel().await?;
        match channel.call(&request).await? {
            Some(call) => Ok(call),
            None => Err(channel.reason().await),
        }
    }

    /// Does an operation on a path, notes it, and says of an error where it
    /// happened.
    async fn at<T>(
        &self,
        operation: Operation,
        path: &VPath,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let _guard = self.activity.operation();
        work.await
            .map_err(|error| error.at(operation, path).on(self.name()))
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Nothing that can panic is done under the lock.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "agent_sandbox/greeting_tests.rs"]
mod greeting_tests;
#[cfg(test)]
#[path = "agent_sandbox/hostile_tests.rs"]
mod hostile_tests;
