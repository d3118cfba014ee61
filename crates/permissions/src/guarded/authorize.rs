//! Asks once for everything that a tool is about to do, before it does anything.

use backend_core::{Backend, Enforcement, Operation, Result};

use super::gate::Gate;
use super::guard::Guarded;
use super::link_resolution::{LastLink, LinkResolution};
use crate::approval::{Effect, Permit};
use crate::{Access, Op, Question, Target};

/// The accesses that a tool is about to make, judged. None of them is denied.
pub struct PlannedAccesses<'g, B> {
    gate: Gate<'g, B>,
}

impl<B> std::fmt::Debug for PlannedAccesses<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlannedAccesses").finish_non_exhaustive()
    }
}

impl<B: Backend> Guarded<B> {
    /// Judges everything that a tool is about to do. Links are followed, and their
    /// targets are judged too.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use backend_core::{BackendExt as _, VPath};
    /// use backend_state::StateBackend;
    /// use permissions::approval::ApproveAll;
    /// use permissions::{Access, Guarded, Op, Policy, Preset};
    ///
    /// let strict = Preset::Strict.ruleset();
    /// let guarded = Guarded::builder(StateBackend::new())
    ///     .policy(Policy::builder().ruleset(&strict, &VPath::root()).build())
    ///     .approver(ApproveAll)
    ///     .build();
    /// let path = VPath::parse("/a")?;
    /// let both = [Op::Read, Op::Write].map(|op| Access::file(op, path.clone()));
    /// let planned = guarded.plan(both).await?;
    /// assert!(planned.asks());
    /// // One question covers both, and the view does not ask again.
    /// let permit = planned.authorize(|question| question.description("swap /a")).await?;
    /// let view = permit.into_iter().fold(guarded, |view, permit| view.with_permit(permit));
    /// view.write_file("/a", "b").await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The refusal of the first denied access, or the error of following a link.
    pub async fn plan(
        &self,
        accesses: impl IntoIterator<Item = Access> + Send,
    ) -> Result<PlannedAccesses<'_, B>> {
        let accesses: Vec<Access> = accesses.into_iter().collect();
        let mut gate = Gate::for_command(self, Operation::Execute);
        for access in accesses {
            gate.operation = operation(access.op);
            match &access.target {
                Target::Command(line) => {
                    let required = Enforcement::default();
                    self.check_level(&mut gate, Access::command(line), required)?;
                    let here = self.backend().working_dir();
                    let judged = self
                        .judge_line(self.command_request(line, &here, &[]))
                        .await;
                    let judged = judged.map_err(|error| gate.failed(error))?;
                    for (part, verdict) in judged.parts {
                        gate.check_verdict(part, verdict, None)?;
                    }
                }
                Target::Port(_) => gate.check(access, None)?,
                Target::Path(_) => self.check_planned_path(&mut gate, access).await?,
            }
        }
        Ok(PlannedAccesses { gate })
    }

    async fn check_planned_path(&self, gate: &mut Gate<'_, B>, access: Access) -> Result<()> {
        let Some(given) = access.path().cloned() else {
            return Ok(());
        };
        gate.check(access.clone(), Some(&given))?;
        let judged = self.policy.judges_paths() || self.setting.vote().is_some();
        if !judged || !self.backend().info().capabilities.links {
            return Ok(());
        }
        let mut route = LinkResolution::new(
            &given,
            backend_core::ops::Links::Follow,
            last_link(access.op),
        );
        let followed = route.follow(self.backend(), gate.operation).await;
        followed.map_err(|error| gate.failed(error))?;
        if route.moved() {
            let there = Access {
                target: Target::Path(route.at().clone()),
                ..access
            };
            gate.check(there, Some(&given))?;
        }
        Ok(())
    }
}

impl<B: Backend> PlannedAccesses<'_, B> {
    /// Returns whether approval is needed.
    pub fn asks(&self) -> bool {
        self.gate.asks()
    }

    /// Asks for approval in one question, which `words` can still change. Returns `None`
    /// if nothing needs approval. Pass the permit to [`Guarded::with_permit`].
    ///
    /// # Errors
    ///
    /// `PermissionDenied` if the answer is no, `ApprovalRequired` if no approver can be
    /// asked.
    pub async fn authorize(
        mut self,
        words: impl FnOnce(Question) -> Question,
    ) -> Result<Option<Permit>> {
        self.gate.ask_as(Effect::None, words).await
    }
}

/// Returns how a link at the end of the path is treated.
fn last_link(op: Op) -> LastLink {
    match op {
        Op::Delete | Op::Move | Op::Copy => LastLink::Kept,
        _ => LastLink::Followed,
    }
}

fn operation(op: Op) -> Operation {
    match op {
        Op::Read => Operation::Read,
        Op::Write => Operation::Write,
        Op::Edit => Operation::Edit,
        Op::Delete => Operation::Delete,
        Op::Move => Operation::Rename,
        Op::Copy => Operation::Copy,
        Op::Ls => Operation::Ls,
        Op::Glob => Operation::Glob,
        Op::Grep => Operation::Grep,
        Op::Execute => Operation::Execute,
        Op::Connect => Operation::Connect,
        Op::Terminal => Operation::Shell,
    }
}
