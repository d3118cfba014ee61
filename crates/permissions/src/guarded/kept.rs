//! The paths that a guard keeps from commands, and the level at which it can.

use backend_core::ops::{Command, LevelTooLow, View};
use backend_core::{Backend, Enforcement, Result, VPath};

use super::gate::Gate;
use super::guard::Guarded;
use super::shells::ShellInput;
use crate::{Access, Action, Layer, Reason, Refusal, Vote};

impl<B: Backend> Guarded<B> {
    /// Returns what the policy keeps from commands in a directory.
    pub(super) fn view_in(&self, directory: &VPath) -> &View {
        let sandbox = self.backend().as_sandbox();
        let names = sandbox.map(|sandbox| sandbox.command_names(directory));
        self.policy.view_for(&names.unwrap_or_default())
    }

    /// Adds what the policy keeps from a command to what its caller does.
    pub(super) fn restricted(&self, mut command: Command) -> Command {
        let here = self.backend().working_dir();
        let directory = command.directory.as_ref().unwrap_or(&here);
        command.view = command.view.and(self.view_in(directory));
        command
    }

    /// Returns the level of the sandbox, if the policy keeps any path from commands.
    pub(super) fn told_level(&self) -> Option<Enforcement> {
        let view = self.view_in(&self.backend().working_dir());
        (!view.is_empty()).then(|| self.backend().info().enforcement)
    }

    /// Refuses a command if its sandbox enforces less than it and the policy require.
    pub(super) fn check_level(
        &self,
        gate: &mut Gate<'_, B>,
        access: Access,
        required: Enforcement,
    ) -> Result<()> {
        let required = required.max(self.policy.view().required);
        if required == Enforcement::default() {
            return Ok(());
        }
        let info = self.backend().info();
        let checked = LevelTooLow::check(required, info.enforcement, info.enforcement_limit);
        refuse_low(gate, access, checked)
    }

    /// Like [`check_level`](Self::check_level), for what is typed into a shell, which must
    /// have been started under the same policy.
    pub(super) fn check_shell_level(
        &self,
        gate: &mut Gate<'_, B>,
        access: Access,
        shell: &ShellInput,
    ) -> Result<()> {
        self.check_level(gate, access.clone(), Enforcement::default())?;
        let required = self.policy.view().required;
        let is_restricted = shell.policy.as_deref() == Some(&*self.policy.id());
        if is_restricted {
            return Ok(());
        }
        let why = "the shell was not started under these permissions; start another";
        let checked = LevelTooLow::check(required, Enforcement::default(), Some(why.into()));
        refuse_low(gate, access, checked)
    }
}

fn refuse_low<B: Backend>(
    gate: &mut Gate<'_, B>,
    access: Access,
    checked: Result<(), LevelTooLow>,
) -> Result<()> {
    let Err(refusal) = checked else {
        return Ok(());
    };
    let why = Reason::Refused(Refusal::Level(refusal).into());
    let vote = Vote::new(Layer::Command, Action::Deny, why);
    gate.check_verdict(access, vote.into(), None)
}
