//! Operations that look at one path: `read`, `read_text`, `stat`, `resolve`.

use backend_core::ops::{
    Entry, FileBytes, Links, ReadOptions, ResolveOptions, StatOptions, TextOptions,
};
use backend_core::text::TextWindow;
use backend_core::{Backend, Operation, Result, VPath};

use super::gate::Gate;
use super::guard::Guarded;
use super::link_resolution::{LastLink, LinkResolution};
use crate::access::Intent;
use crate::approval::Effect;
use crate::{Access, Action, Kind, Op};

impl<B: Backend> Guarded<B> {
    pub(super) async fn read_judged(
        &self,
        path: &VPath,
        options: ReadOptions,
    ) -> Result<FileBytes> {
        let mut gate = Gate::new(self, Operation::Read, path);
        let mut route = LinkResolution::new(path, options.links, LastLink::Followed);
        let options = options.links(Links::Refuse);
        loop {
            gate.authorize(&mut route, Intent::read).await?;
            match self.backend().read(route.at(), options).await {
                Ok(found) => {
                    gate.check_size(Op::Read, &route, found.size)?;
                    return Ok(found);
                }
                Err(error) => {
                    self.follow_or_fail(&mut route, Operation::Read, error)
                        .await?;
                }
            }
        }
    }

    pub(super) async fn read_text_judged(
        &self,
        path: &VPath,
        options: TextOptions,
    ) -> Result<TextWindow> {
        let operation = Operation::ReadText;
        let mut gate = Gate::new(self, operation, path);
        let mut route = LinkResolution::new(path, options.links, LastLink::Followed);
        let options = options.links(Links::Refuse);
        loop {
            gate.authorize(&mut route, Intent::read).await?;
            // A window does not include the size of its file.
            if let (Kind::File, Some(size)) = gate.stat_kind(route.at()).await {
                gate.check_size(Op::Read, &route, size)?;
            }
            match self.backend().read_text(route.at(), options).await {
                Ok(window) => return Ok(window),
                Err(error) => self.follow_or_fail(&mut route, operation, error).await?,
            }
        }
    }

    pub(super) async fn stat_judged(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        let operation = Operation::Stat;
        let mut gate = Gate::new(self, operation, path);
        let mut route = LinkResolution::new(path, options.links, LastLink::Followed);
        let options = options.links(Links::Refuse);
        loop {
            gate.authorize(&mut route, Intent::ls).await?;
            self.visible(&gate, path, route.at())?;
            match self.backend().stat(route.at(), options).await {
                Ok(mut entry) => {
                    if route.moved() {
                        entry.link = route.is_link(self.backend()).await;
                        entry.path = path.clone();
                    }
                    return Ok(entry);
                }
                Err(error) => self.follow_or_fail(&mut route, operation, error).await?,
            }
        }
    }

    pub(super) async fn resolve_judged(
        &self,
        path: &VPath,
        options: ResolveOptions,
    ) -> Result<VPath> {
        let mut gate = Gate::new(self, Operation::Resolve, path);
        let mut route = LinkResolution::new(path, Links::Follow, LastLink::Followed);
        gate.authorize(&mut route, Intent::ls).await?;
        let found = self.backend().resolve(path, options).await?;
        if found != *path {
            // The result reveals the target, so the target must be visible.
            gate.check(Access::directory(Op::Ls, found.clone()), Some(path))?;
            gate.ask(Effect::None).await?;
        }
        self.visible(&gate, path, &found)?;
        Ok(found)
    }

    /// Refuses a path that a listing would hide.
    pub(super) fn visible(&self, gate: &Gate<'_, B>, given: &VPath, at: &VPath) -> Result<()> {
        if self.hides(Op::Ls, given) || self.hides(Op::Ls, at) {
            return Err(gate.hidden(given));
        }
        Ok(())
    }

    /// Returns whether results of `op` leave out `path`.
    pub(super) fn hides(&self, op: Op, path: &VPath) -> bool {
        let exclude = self.policy.exclude(op);
        !exclude.is_none() && exclude.hides(path)
    }

    /// Returns whether reading `path` is denied.
    pub(super) fn denies_reading(&self, path: &VPath) -> bool {
        let verdict = self.policy.judge(Op::Read, path, Kind::File, None);
        verdict.action() == Action::Deny
    }

    /// Calls [`LinkResolution::follow_or_fail`] with this backend.
    pub(super) async fn follow_or_fail(
        &self,
        route: &mut LinkResolution,
        operation: Operation,
        error: backend_core::Error,
    ) -> Result<()> {
        route.follow_or_fail(self.backend(), operation, error).await
    }
}
