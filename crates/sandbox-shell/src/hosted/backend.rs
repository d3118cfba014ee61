//! Forwards every operation to the agent or the portable sandbox.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::ops::{
    Command, CommandStatus, Event, ExecuteOutcome, ShellInfo, StatOptions, StopMode,
};
use backend_core::{
    Backend, BackendInfo, Capabilities, CommandPaths, Containment, Error, EventStream, Operation,
    Result, Sandbox, VPath, delegate,
};
use futures::StreamExt as _;

use super::{HostedMachine, HostedSandbox, during};
use crate::agents::Mode;
use crate::sandbox::NO_VIEWS;

/// The status of a killed command, and also of one whose machine has ended.
const KILLED: CommandStatus = CommandStatus::Signalled(9);

/// Distinguishes a killed command from a machine that has ended. The agent dies with the
/// machine, a moment after the command: then the next call fails, or has started the
/// machine again.
async fn outlives_a_kill<M: HostedMachine>(
    served: &dyn Sandbox,
    machine: &M,
    run: &M::Run,
) -> Result<()> {
    let asked = served.stat(&VPath::root(), StatOptions::default()).await;
    let error = match asked {
        Err(error) => Error::unavailable(error.message().to_owned()),
        Ok(_) if machine.current_run() == *run => return Ok(()),
        Ok(_) => machine.ended_meanwhile(),
    };
    Err(error.during(Operation::Execute).on(machine.name()))
}

impl<M: HostedMachine> HostedSandbox<M> {
    /// Refuses a command that requires more than the sandbox enforces, before one is
    /// started for it.
    fn check_level(&self, operation: Operation, command: &Command) -> Result<()> {
        let checked = command.check_level(&self.info()).map_err(Error::from);
        checked.map_err(during(operation))
    }

    /// Makes sure that the machine runs, and returns the run.
    async fn run_of_command(&self) -> Result<M::Run> {
        if !self.0.machine.is_running() {
            let start = self.run(|machine| async move { machine.start().await });
            start.await.map_err(during(Operation::Start))?;
        }
        Ok(self.0.machine.current_run())
    }
}

#[deny(clippy::missing_trait_methods)]
impl<M: HostedMachine> Backend for HostedSandbox<M> {
    fn info(&self) -> BackendInfo {
        if let Some(chosen) = self.0.chosen.get() {
            return chosen.info();
        }
        let mut capabilities = Capabilities::writable()
            .with_links()
            .with_modes()
            .with_times()
            .with_durable()
            .with_commands();
        // Expected of the agent, which serves it unless the image cannot run one.
        let has_agent = self.0.mode != Mode::Portable;
        (capabilities.ports, capabilities.watch) = (has_agent, has_agent);
        capabilities.terminals = has_agent;
        BackendInfo::new(self.0.machine.name(), capabilities)
            .containment(Containment::Isolated)
            .enforcement_limit(Cow::Borrowed(NO_VIEWS))
    }

    fn working_dir(&self) -> VPath {
        self.0.machine.working_dir()
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        Some(self)
    }

    delegate! {
        |self| self.active_sandbox(&self.busy()).await? => resolve, stat, ls, read, read_text,
        write, edit, create_dir, delete, rename, copy, glob, grep, watch
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<M: HostedMachine> Sandbox for HostedSandbox<M> {
    fn id(&self) -> String {
        self.0.machine.id()
    }

    fn last_activity(&self) -> SystemTime {
        let touched = self.last_used();
        let chosen = self.0.chosen.get();
        let active = chosen.map(|chosen| chosen.last_activity());
        active.map_or(touched, |active| active.max(touched))
    }

    /// Files and commands are in the same machine, so names are the same.
    fn command_names(&self, _: &VPath) -> CommandPaths {
        CommandPaths::default()
    }

    async fn start(&self) -> Result<()> {
        let busy = self.busy();
        let start = self.run(|machine| async move { machine.start_explicit().await });
        start.await.map_err(during(Operation::Start))?;
        self.active_sandbox(&busy).await?.start().await
    }

    async fn stop(&self, mode: StopMode) -> Result<()> {
        if let Some(chosen) = self.0.chosen.get() {
            return chosen.stop(mode).await;
        }
        // No operation has chosen a mode yet, but a machine may exist.
        let stop = self.run(move |machine| async move { machine.stop(mode).await });
        stop.await.map_err(during(Operation::Stop))
    }

    async fn is_alive(&self) -> Result<bool> {
        self.run(|machine| async move { machine.is_alive().await })
            .await
    }

    async fn execute(&self, command: Command) -> Result<ExecuteOutcome> {
        self.check_level(Operation::Execute, &command)?;
        let busy = self.busy();
        let served = self.active_sandbox(&busy).await?;
        let run = self.run_of_command().await?;
        let outcome = served.execute(command).await?;
        if outcome.status == KILLED {
            outlives_a_kill(&**served, &self.0.machine, &run).await?;
        }
        Ok(outcome)
    }

    async fn stream(&self, command: Command) -> Result<EventStream> {
        self.check_level(Operation::Stream, &command)?;
        let busy = self.busy();
        let served = Arc::clone(self.active_sandbox(&busy).await?);
        let run = self.run_of_command().await?;
        let events = served.stream(command).await?;
        let machine = self.0.machine.clone();
        let events = events.then(move |event| {
            let (served, machine, run) = (Arc::clone(&served), machine.clone(), run.clone());
            async move {
                let event = event?;
                if matches!(&event, Event::Ended(outcome) if outcome.status == KILLED) {
                    outlives_a_kill(&*served, &machine, &run).await?;
                }
                Ok(event)
            }
        });
        Ok(events.boxed())
    }

    async fn shell_start(&self, command: Command) -> Result<ShellInfo> {
        self.check_level(Operation::Shell, &command)?;
        let busy = self.busy();
        self.active_sandbox(&busy).await?.shell_start(command).await
    }

    delegate! {
        |self| self.active_sandbox(&self.busy()).await? => trace, shell_read,
        shell_write, shell_kill, shell_list, connect, shell_attach, shell_resize, shell_signal
    }
}
