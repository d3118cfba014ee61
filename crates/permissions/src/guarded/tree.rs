//! Operations that can affect a whole directory: `delete`, `rename`, `copy`.
//!
//! If a layer could object to an entry of the directory, every entry is checked first. An
//! entry created after that is included unchecked.

use backend_core::ops::{CopyOptions, DeleteOptions, Entry, Links, LsOptions, RenameOptions};
use backend_core::{Backend, Error, Operation, Result, VPath};

use super::gate::Gate;
use super::guard::Guarded;
use super::link_resolution::{LastLink, LinkResolution, is_link};
use crate::access::Intent;
use crate::approval::Effect;
use crate::{Access, Action, Kind, Op, Reason};

/// Maximum number of entries judged before a directory is deleted, moved or copied.
pub const TREE_ENTRIES: usize = 10_000;

/// The result of looking for a tree.
#[derive(Debug, PartialEq, Eq)]
enum TreeCheck {
    /// A directory with this number of entries, all judged.
    Entries(usize),
    /// An entry that is not a directory.
    Single,
    /// A link, which the operation applies to itself.
    Link,
}

/// A move or a copy.
#[derive(Debug, Clone, Copy)]
pub(super) enum Transfer {
    Rename(RenameOptions),
    Copy(CopyOptions),
}

/// Creates the intent of a move or a copy.
type PairIntent = fn(VPath, VPath) -> Intent;

impl<B: Backend> Guarded<B> {
    pub(super) async fn delete_judged(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        let operation = Operation::Delete;
        let mut gate = Gate::new(self, operation, path);
        let mut route = LinkResolution::new(path, options.links, LastLink::Kept);
        gate.screen(Intent::delete(path.clone()))?;
        loop {
            let (kind, _) = gate.stat_kind(route.at()).await;
            gate.check_call(&mut route, |at| Intent::delete(at).kind(kind))
                .await?;
            let mut now = options.links(Links::Refuse);
            let mut entries = 0;
            if options.recursive && self.needs_tree_check([(Op::Delete, route.at())]) {
                let inside =
                    |entry: &Entry| Some(Intent::delete(entry.path.clone()).kind(kind_of(entry)));
                match self.check_tree(&mut gate, &route, inside).await? {
                    TreeCheck::Entries(found) => entries = found,
                    // A directory that replaces the link has not been checked.
                    TreeCheck::Link => now.recursive = false,
                    TreeCheck::Single => {}
                }
            }
            if gate.asks() {
                gate.ask_for_tree(gate.effect_of(path), entries).await?;
            }
            match self.backend().delete(route.at(), now).await {
                Ok(()) => return Ok(()),
                Err(error) => self.follow_or_fail(&mut route, operation, error).await?,
            }
        }
    }

    pub(super) async fn transfer_judged(
        &self,
        from: &VPath,
        to: &VPath,
        transfer: Transfer,
    ) -> Result<()> {
        let (operation, intent, links, recursive) = match transfer {
            Transfer::Rename(it) => (
                Operation::Rename,
                Intent::rename as PairIntent,
                it.links,
                true,
            ),
            Transfer::Copy(it) => (
                Operation::Copy,
                Intent::copy as PairIntent,
                it.links,
                it.recursive,
            ),
        };
        let mut gate = Gate::new(self, operation, from);
        let mut pair = ResolutionPair::new(from, to, links);
        gate.screen(intent(from.clone(), to.clone()))?;
        loop {
            self.check_pair(&mut gate, &mut pair, intent, operation)
                .await?;
            let (mut entries, mut link) = (0, false);
            let (source, target) = (pair.from.at(), pair.to.at());
            let accesses: Vec<Access> = intent(source.clone(), target.clone()).accesses().collect();
            let parts = accesses.iter().filter_map(|it| Some((it.op, it.path()?)));
            if recursive && self.needs_tree_check(parts) {
                let inside = |entry: &Entry| pair.inside(entry, intent);
                match self.check_tree(&mut gate, &pair.from, inside).await? {
                    TreeCheck::Entries(found) => entries = found,
                    TreeCheck::Link => link = true,
                    TreeCheck::Single => {}
                }
            }
            pair.ask(&mut gate, entries).await?;
            let (source, target) = (pair.from.at(), pair.to.at());
            let done = match transfer {
                Transfer::Rename(options) => {
                    let now = options.links(Links::Refuse);
                    self.backend().rename(source, target, now).await
                }
                Transfer::Copy(options) => {
                    let mut now = options.links(Links::Refuse);
                    // A directory that replaces the link has not been checked.
                    now.recursive &= !link;
                    self.backend().copy(source, target, now).await
                }
            };
            match done {
                Ok(()) => return Ok(()),
                Err(error) => {
                    pair.follow_or_fail(self.backend(), operation, error)
                        .await?;
                }
            }
        }
    }

    /// Judges a call about two paths. If approval is needed, links are followed first.
    async fn check_pair(
        &self,
        gate: &mut Gate<'_, B>,
        pair: &mut ResolutionPair,
        intent: PairIntent,
        operation: Operation,
    ) -> Result<()> {
        let (kind, bytes) = gate.stat_kind(pair.from.at()).await;
        let intent =
            |from: &VPath, to: &VPath| intent(from.clone(), to.clone()).kind(kind).bytes(bytes);
        gate.reset();
        let (from, to) = (pair.from.given().clone(), pair.to.given().clone());
        for access in intent(&from, &to).accesses() {
            let shown = access.path().cloned();
            gate.check(access, shown.as_ref())?;
        }
        if gate.asks() && !pair.moved() && gate.may_lead_elsewhere(&pair.from) {
            pair.from.follow(self.backend(), operation).await?;
            pair.to.follow(self.backend(), operation).await?;
        }
        if pair.moved() {
            for access in intent(pair.from.at(), pair.to.at()).accesses() {
                let at_source = access.path() == Some(pair.from.at());
                let shown = if at_source { &from } else { &to };
                gate.check(access, Some(shown))?;
            }
        }
        Ok(())
    }

    /// Returns whether an entry inside could get an action other than allow.
    fn needs_tree_check<'p>(&self, parts: impl IntoIterator<Item = (Op, &'p VPath)>) -> bool {
        let mut parts = parts.into_iter();
        parts.any(|(op, path)| self.policy.strongest_beneath(op, path) > Action::Allow)
    }

    /// Judges everything in the directory that `route` leads to.
    async fn check_tree<F>(
        &self,
        gate: &mut Gate<'_, B>,
        route: &LinkResolution,
        intent: F,
    ) -> Result<TreeCheck>
    where
        F: Fn(&Entry) -> Option<Intent> + Send,
    {
        let top = route.at();
        let reasons = gate.reasons.clone();
        let mut pending = vec![top.clone()];
        let mut found = 0;
        while let Some(directory) = pending.pop() {
            let options = LsOptions::default()
                .links(Links::Refuse)
                .limit(TREE_ENTRIES + 1);
            let listing = match self.backend().ls(&directory, options).await {
                Ok(listing) => listing,
                Err(error) if directory == *top && is_link(&error) => return Ok(TreeCheck::Link),
                // If the path is missing or not a directory, the call itself reports it.
                Err(error) if directory == *top => {
                    drop(error);
                    return Ok(TreeCheck::Single);
                }
                Err(error) => {
                    return Err(gate.failed(error.as_part_of(gate.operation, route.given())));
                }
            };
            for entry in listing.entries {
                if entry.path == *top {
                    return Ok(TreeCheck::Single);
                }
                found += 1;
                if found > TREE_ENTRIES {
                    return Err(gate.failed(Error::too_large(format!(
                        "it contains more than the {TREE_ENTRIES} entries that can be checked one by one; do it in parts"
                    ))));
                }
                self.check_entry(gate, route, &reasons, (&entry, intent(&entry)))?;
                if entry.is_dir() && !entry.link {
                    pending.push(entry.path);
                }
            }
        }
        Ok(TreeCheck::Entries(found))
    }

    fn check_entry(
        &self,
        gate: &mut Gate<'_, B>,
        route: &LinkResolution,
        top: &[(Op, Reason)],
        (entry, intent): (&Entry, Option<Intent>),
    ) -> Result<()> {
        // Entries hidden from listings are not named here either.
        let shown = if self.hides(Op::Ls, &entry.path) {
            route.given().clone()
        } else {
            entry.path.rebase(route.at(), route.given())?
        };
        for access in intent.into_iter().flat_map(Intent::accesses) {
            gate.check_inside(access, &shown, top)?;
        }
        Ok(())
    }
}

fn kind_of(entry: &Entry) -> Kind {
    if entry.is_dir() && !entry.link {
        Kind::Directory
    } else {
        Kind::File
    }
}

/// The two paths of a move or copy.
struct ResolutionPair {
    from: LinkResolution,
    to: LinkResolution,
}

impl ResolutionPair {
    fn new(from: &VPath, to: &VPath, links: Links) -> Self {
        Self {
            from: LinkResolution::new(from, links, LastLink::Kept),
            to: LinkResolution::new(to, links, LastLink::Kept),
        }
    }

    fn moved(&self) -> bool {
        self.from.moved() || self.to.moved()
    }

    /// Returns the same call for an entry inside the source, or `None` if the entry would
    /// have no valid path at the destination. The call itself fails then.
    fn inside(&self, entry: &Entry, intent: PairIntent) -> Option<Intent> {
        let to = entry.path.rebase(self.from.at(), self.to.at()).ok()?;
        let intent = intent(entry.path.clone(), to);
        Some(intent.kind(kind_of(entry)).bytes(entry.size))
    }

    async fn ask<B: Backend>(&self, gate: &mut Gate<'_, B>, entries: usize) -> Result<()> {
        if !gate.asks() {
            return Ok(());
        }
        let (from, to) = (self.from.given().as_str(), self.to.given().as_str());
        let effect = match gate.operation {
            Operation::Copy => Effect::copy(from, to),
            _ => Effect::rename(from, to),
        };
        gate.ask_for_tree(effect, entries).await
    }

    async fn follow_or_fail<B: Backend>(
        &mut self,
        backend: &B,
        operation: Operation,
        error: Error,
    ) -> Result<()> {
        if !is_link(&error) || !self.from.follows() {
            return Err(match error.path() {
                Some(path) if path == self.to.at() && self.to.moved() => {
                    error.as_part_of(operation, self.to.given())
                }
                _ if self.moved() => error.as_part_of(operation, self.from.given()),
                _ => error,
            });
        }
        self.from.count_restart(backend, operation)?;
        self.from.follow(backend, operation).await?;
        self.to.follow(backend, operation).await
    }
}
