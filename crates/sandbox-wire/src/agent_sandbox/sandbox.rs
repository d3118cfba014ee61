//! Commands and lifecycle of [`AgentSandbox`].

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_core::ops::{
    Command, ExecuteOutcome, ShellId, ShellInfo, ShellOutput, Signal, StopMode, TerminalSize, View,
};
use backend_core::shells::ShellTable;
use backend_core::sync::lock;
use backend_core::{
    Backend as _, Connection, Enforcement, EventStream, Operation, Result, Sandbox,
};
use bytes::Bytes;

use crate::agent_sandbox::{AgentSandbox, ChannelState};
use crate::client;
use crate::engine;
use crate::machine::Machine;
use crate::message::Request;

impl<M: Machine> AgentSandbox<M> {
    /// Runs an operation that does not concern a path, and adds the context to
    /// an error.
    async fn during<T>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let done = work.await;
        done.map_err(|error| error.during(operation).on(self.machine.name()))
    }

    /// Like [`during`](Self::during), for shells.
    async fn shell<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let _guard = self.activity.operation();
        self.during(Operation::Shell, work).await
    }

    /// Opens a connection that the agent carries.
    async fn carry(&self, operation: Operation, request: Request) -> Result<Connection> {
        let _guard = self.activity.operation();
        let name = self.machine.name();
        let work = async {
            let call = self.open(request).await?;
            client::connection(call, self.activity.clone()).await
        };
        let connection = self.during(operation, work).await?;
        Ok(connection.map_err(move |error| error.during(operation).on(name.clone())))
    }
}

impl<M: Machine> AgentSandbox<M> {
    /// Refuses a command that requires more than is enforced here. Paths that the agent
    /// would not keep from it are not sent.
    fn enforceable(&self, mut command: Command) -> Result<Command> {
        let info = self.info();
        command.check_level(&info)?;
        if info.enforcement < Enforcement::View {
            command.view = View::default();
        }
        Ok(command)
    }
}

#[async_trait]
impl<M: Machine> Sandbox for AgentSandbox<M> {
    fn id(&self) -> String {
        self.machine.id()
    }

    fn last_activity(&self) -> SystemTime {
        self.activity.last()
    }

    async fn start(&self) -> Result<()> {
        let _guard = self.activity.operation();
        let work = async { self.channel().await.map(drop) };
        self.during(Operation::Start, work).await
    }

    async fn stop(&self, mode: StopMode) -> Result<()> {
        let _guard = self.activity.operation();
        let previous = {
            let mut state = lock(&self.state);
            state.stops += 1;
            std::mem::take(&mut state.channel)
        };
        let work = async {
            if let ChannelState::Open(channel) = previous {
                channel.close("the sandbox was stopped").await;
            }
            let machine = Arc::clone(&self.machine);
            engine::run(async move { machine.stop(mode).await }).await
        };
        self.during(Operation::Stop, work).await
    }

    async fn is_alive(&self) -> Result<bool> {
        let machine = Arc::clone(&self.machine);
        let alive = engine::run(async move { machine.is_alive().await }).await;
        alive.map_err(|error| error.on(self.machine.name()))
    }

    async fn execute(&self, command: Command) -> Result<ExecuteOutcome> {
        let _guard = self.activity.command();
        let work = async {
            let command = self.enforceable(command)?;
            let request = Request::Execute(command.clone());
            client::executed(&mut self.open(request).await?, &command).await
        };
        self.during(Operation::Execute, work).await
    }

    async fn stream(&self, command: Command) -> Result<EventStream> {
        let guard = self.activity.command();
        let name = self.machine.name();
        let context =
            move |error: backend_core::Error| error.during(Operation::Stream).on(name.clone());
        let work = async {
            let command = self.enforceable(command)?;
            let request = Request::Stream(command.clone());
            let call = self.open(request).await?;
            client::events(call, &command, guard, context).await
        };
        self.during(Operation::Stream, work).await
    }

    async fn shell_start(&self, command: Command) -> Result<ShellInfo> {
        let work = async {
            let request = Request::ShellStart(self.enforceable(command)?);
            client::shell(&mut self.open(request).await?).await
        };
        self.shell(work).await
    }

    async fn shell_read(&self, id: &ShellId, wait: Duration) -> Result<ShellOutput> {
        let request = Request::ShellRead(id.clone(), wait);
        self.shell(async { client::shell_output(&mut self.open(request).await?).await })
            .await
    }

    async fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()> {
        let request = Request::ShellWrite(id.clone(), input);
        self.shell(async { client::done(&mut self.open(request).await?).await })
            .await
    }

    async fn shell_kill(&self, id: &ShellId) -> Result<bool> {
        if matches!(lock(&self.state).channel, ChannelState::None) {
            // Shells end with their agent, so there is none, and no machine is started for it.
            let none = ShellTable::new().find(id);
            return self.shell(async { none.map(|()| false) }).await;
        }
        let request = Request::ShellKill(id.clone());
        self.shell(async { client::killed(&mut self.open(request).await?).await })
            .await
    }

    async fn shell_list(&self) -> Result<Vec<ShellInfo>> {
        self.shell(async { client::shells(&mut self.open(Request::ShellList).await?).await })
            .await
    }

    async fn connect(&self, port: u16) -> Result<Connection> {
        self.carry(Operation::Connect, Request::Connect(port)).await
    }

    async fn shell_attach(&self, id: &ShellId) -> Result<Connection> {
        let request = Request::ShellAttach(id.clone());
        self.carry(Operation::Shell, request).await
    }

    async fn shell_resize(&self, id: &ShellId, size: TerminalSize) -> Result<()> {
        let request = Request::ShellResize(id.clone(), size);
        self.shell(async { client::done(&mut self.open(request).await?).await })
            .await
    }

    async fn shell_signal(&self, id: &ShellId, signal: Signal) -> Result<()> {
        let request = Request::ShellSignal(id.clone(), signal);
        self.shell(async { client::done(&mut self.open(request).await?).await })
            .await
    }
}
