//! [`AgentSandbox`]: a machine with an agent in it, as a backend.

mod backend;
mod connect;
mod sandbox;

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend_core::sync::lock;
use backend_core::{Capabilities, Operation, Result, VPath};
use backend_run::Activity;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use tokio_util::task::AbortOnDropHandle;

use crate::channel::{Call, Channel, ChannelError};
use crate::engine;
use crate::handshake::AgentInfo;
use crate::machine::Machine;
use crate::message::Request;
use connect::connect;

/// Options of the channel to an agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AgentOptions {
    /// The interval of heartbeats on a silent channel.
    pub heartbeat: Duration,
    /// The timeout for a heartbeat's reply and for the handshake.
    pub patience: Duration,
    /// The number of concurrent calls; further ones wait. At most 250. A watch is one
    /// call until its stream is dropped.
    pub calls: usize,
    /// The capabilities of the agent's backend. Without commands the sandbox is
    /// only a backend.
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
                .with_commands()
                .with_ports()
                .with_watch()
                .with_terminals(),
        }
    }
}

impl AgentOptions {
    backend_core::setters! {
        /// Sets the interval of heartbeats.
        heartbeat: Duration,
        /// Sets how long the agent may be silent.
        patience: Duration,
        /// Sets the number of concurrent calls.
        calls: usize,
        /// Sets the capabilities of the agent's backend.
        capabilities: Capabilities,
    }
}

/// A [`Machine`] whose files and commands are served by an agent inside it.
///
/// The first call that needs the machine starts it, places the agent and
/// connects to it. A lost channel is reopened for the next call. Calls in
/// flight fail with `Unavailable` and are never sent again.
///
/// Its futures can be polled by any runtime or none, and dropping one cancels
/// the operation in the machine.
#[derive(Debug)]
pub struct AgentSandbox<M> {
    machine: Arc<M>,
    options: AgentOptions,
    state: Arc<Mutex<State>>,
    activity: Activity,
}

/// An attempt to open a channel, shared by all callers that need it.
type Attempt = BoxFuture<'static, Result<Arc<Channel>, ChannelError>>;

#[derive(Debug, Default)]
struct State {
    /// The number of stops. A channel whose opening began before the last stop
    /// is not used.
    stops: u64,
    channel: ChannelState,
}

#[derive(Debug, Default)]
enum ChannelState {
    #[default]
    None,
    /// Ends when no caller waits for it any more.
    Opening(WeakShared<Attempt>),
    Open(Arc<Channel>),
}

impl<M: Machine> AgentSandbox<M> {
    /// Creates a backend for this machine. No I/O.
    pub fn new(machine: Arc<M>, options: AgentOptions) -> Self {
        Self {
            machine,
            options,
            state: Arc::default(),
            activity: Activity::default(),
        }
    }

    /// Returns the machine.
    pub fn machine(&self) -> &Arc<M> {
        &self.machine
    }

    /// Returns the agent's information about itself, if a channel to it is
    /// open. No I/O.
    pub fn agent(&self) -> Option<AgentInfo> {
        match &lock(&self.state).channel {
            ChannelState::Open(channel) if !channel.is_closed() => Some(channel.info.clone()),
            _ => None,
        }
    }

    /// Returns the channel, opening it if needed.
    async fn channel(&self) -> Result<Arc<Channel>> {
        let attempt = {
            let mut state = lock(&self.state);
            let under_way = match &state.channel {
                ChannelState::Open(channel) if !channel.is_closed() => {
                    return Ok(Arc::clone(channel));
                }
                ChannelState::Opening(attempt) => attempt.upgrade(),
                ChannelState::Open(_) | ChannelState::None => None,
            };
            match under_way {
                Some(attempt) => attempt,
                None => {
                    let attempt = self.attempt(state.stops)?;
                    state.channel = attempt
                        .downgrade()
                        .map_or(ChannelState::None, ChannelState::Opening);
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
                return Err(ChannelError::new("the sandbox was stopped; start it again"));
            }
            let channel = opened.map(Arc::new).map_err(ChannelError::from);
            state.channel = match &channel {
                Ok(channel) => ChannelState::Open(Arc::clone(channel)),
                Err(_) => ChannelState::None,
            };
            channel
        });
        let task = AbortOnDropHandle::new(task);
        let attempt = async move {
            let opened = task.await;
            opened.unwrap_or_else(|_| Err(ChannelError::new("the process is ending")))
        };
        Ok(attempt.boxed().shared())
    }

    async fn open(&self, request: Request) -> Result<Call> {
        let channel = self.channel().await?;
        if let Some(call) = channel.call(&request).await? {
            return Ok(call);
        }
        // The channel was already gone, and the request was not sent.
        let channel = self.channel().await?;
        match channel.call(&request).await? {
            Some(call) => Ok(call),
            None => Err(channel.reason().await),
        }
    }

    /// Runs an operation on a path, records the activity, and adds the context
    /// to an error.
    async fn at<T>(
        &self,
        operation: Operation,
        path: &VPath,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let _guard = self.activity.operation();
        work.await
            .map_err(|error| error.at(operation, path).on(self.machine.name()))
    }
}

#[cfg(test)]
mod tests;
