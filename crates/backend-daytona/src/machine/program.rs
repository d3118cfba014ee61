//! Running programs in a sandbox without an agent.

use backend_core::{ErrorKind, Result};
use futures::FutureExt as _;
use sandbox_shell::HostedMachine as _;
use sandbox_wire::{Machine as _, Process, Spawn};

use super::DaytonaMachine;
use crate::options::Connection;

impl DaytonaMachine {
    pub(super) async fn start_program(&self, program: Spawn) -> Result<Process> {
        let core = &self.0;
        let mut may_restart = true;
        let (process, run) = loop {
            let run = self.current_run();
            let toolbox = core.toolbox()?;
            let error = match core.carriers.spawn(&toolbox, run, &program).await {
                Ok(process) => break (process, run),
                Err(error) => error,
            };
            self.restarted(error, &mut may_restart).await?;
        };
        core.state().connection = Some(Connection::Sessions);
        let Process {
            stdin,
            output,
            exit,
            ..
        } = process;
        let machine = self.clone();
        let exit = async move { machine.judge_exit(exit.await, run).await };
        Ok(Process::new(stdin, output, exit.boxed()))
    }

    /// Starts a sandbox again that has stopped since it was last used, once: nothing has
    /// run in it yet.
    ///
    /// # Errors
    ///
    /// The reason why a call failed, if that is another one.
    pub(super) async fn restarted(
        &self,
        error: backend_core::Error,
        may_restart: &mut bool,
    ) -> Result<()> {
        let error = self.0.explain(error).await;
        let is_stopped = error.kind() == ErrorKind::Unavailable && !self.0.is_running();
        if !is_stopped || !std::mem::take(may_restart) {
            return Err(error);
        }
        self.start().await
    }
}
