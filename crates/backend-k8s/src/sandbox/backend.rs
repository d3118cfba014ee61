//! Forwards every operation to the agent or the portable sandbox.

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::ops::{Command, CommandStatus, Event, ExecuteOutcome, StatOptions, StopMode};
use backend_core::{
    Backend, BackendInfo, Capabilities, CommandPaths, Containment, Error, EventStream, Operation,
    Result, Sandbox, VPath, delegate,
};
use futures::StreamExt as _;
use sandbox_wire::Machine as _;

use super::{K8sSandbox, during};
use crate::cluster;
use crate::machine::{K8sMachine, Run, StartReason};

/// The status of a killed command, and also of one whose container has ended.
const KILLED: CommandStatus = CommandStatus::Signalled(9);

/// Distinguishes a killed command from a container that has ended. The agent dies with
/// the container, a moment after the command: then the next call fails, or has found the
/// container restarted.
async fn outlives_a_kill(
    served: &dyn Sandbox,
    machine: &K8sMachine,
    run: Option<&Run>,
) -> Result<()> {
    let asked = served.stat(&VPath::root(), StatOptions::default()).await;
    let error = match asked {
        Err(error) => Error::unavailable(error.message().to_owned()),
        Ok(_) if machine.run().as_ref() == run => return Ok(()),
        Ok(_) => machine.ended_meanwhile(),
    };
    Err(error.during(Operation::Execute).on("k8s"))
}

#[deny(clippy::missing_trait_methods)]
impl Backend for K8sSandbox {
    fn info(&self) -> BackendInfo {
        if let Some(chosen) = self.0.chosen.get() {
            return chosen.info();
        }
        let capabilities = Capabilities::writable()
            .with_links()
            .with_modes()
            .with_times()
            .with_durable()
            .with_commands();
        BackendInfo::new("k8s", capabilities).containment(Containment::Isolated)
    }

    fn working_dir(&self) -> VPath {
        self.0.machine.working_dir()
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        Some(self)
    }

    delegate! {
        |self| self.active_sandbox(&self.busy()).await? => resolve, stat, ls, read, read_text,
        write, edit, create_dir, delete, rename, copy, glob, grep
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Sandbox for K8sSandbox {
    fn id(&self) -> String {
        self.pod_name().to_owned()
    }

    fn last_activity(&self) -> SystemTime {
        let touched = self.last_used();
        let chosen = self.0.chosen.get();
        let active = chosen.map(|chosen| chosen.last_activity());
        active.map_or(touched, |active| active.max(touched))
    }

    /// Files and commands are in the same container, so names are the same.
    fn command_names(&self, _: &VPath) -> CommandPaths {
        CommandPaths::default()
    }

    async fn start(&self) -> Result<()> {
        let busy = self.busy();
        self.ready(StartReason::Explicit).await?;
        self.active_sandbox(&busy).await?.start().await
    }

    async fn stop(&self, mode: StopMode) -> Result<()> {
        if let Some(chosen) = self.0.chosen.get() {
            return chosen.stop(mode).await;
        }
        // No operation has chosen a mode yet, but a pod may exist.
        let machine = self.0.machine.clone();
        let stopped = cluster::run(async move { machine.stop_pod(mode).await });
        stopped.await.map_err(during(Operation::Stop))
    }

    async fn is_alive(&self) -> Result<bool> {
        let machine = self.0.machine.clone();
        cluster::run(async move { machine.is_alive().await }).await
    }

    async fn execute(&self, command: Command) -> Result<ExecuteOutcome> {
        let busy = self.busy();
        let served = self.active_sandbox(&busy).await?;
        let run = self.current_run().await?;
        let outcome = served.execute(command).await?;
        if outcome.status == KILLED {
            outlives_a_kill(&**served, &self.0.machine, run.as_ref()).await?;
        }
        Ok(outcome)
    }

    async fn stream(&self, command: Command) -> Result<EventStream> {
        let busy = self.busy();
        let served = Arc::clone(self.active_sandbox(&busy).await?);
        let run = self.current_run().await?;
        let events = served.stream(command).await?;
        let machine = self.0.machine.clone();
        let events = events.then(move |event| {
            let (served, machine, run) = (Arc::clone(&served), machine.clone(), run.clone());
            async move {
                let event = event?;
                if matches!(&event, Event::Ended(outcome) if outcome.status == KILLED) {
                    outlives_a_kill(&*served, &machine, run.as_ref()).await?;
                }
                Ok(event)
            }
        });
        Ok(events.boxed())
    }

    delegate! {
        |self| self.active_sandbox(&self.busy()).await? => trace, shell_start, shell_read,
        shell_write, shell_kill, shell_list
    }
}
