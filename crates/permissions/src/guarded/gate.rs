//! [`Gate`]: the checks that a call passes before it touches anything.

use std::sync::Arc;

use backend_core::ops::{ContentHash, StatOptions};
use backend_core::{Backend, Error, Operation, Quoted, Result, VPath};
use serde_json::Value;

use super::guard::Guarded;
use super::link_resolution::LinkResolution;
use crate::access::Intent;
use crate::approval::{Asked, Effect, Permit, Question};
use crate::audit::{AuditEvent, Outcome};
use crate::policy::refusal;
use crate::{Access, Action, Kind, Op, Reason, Refusal, Target, Verdict, Vote};

/// Maximum number of reasons listed in one question.
const MAX_REASONS: usize = 20;

/// Judges all accesses of one call, and asks once for all of them.
pub(super) struct Gate<'g, B> {
    guard: &'g Guarded<B>,
    pub(super) operation: Operation,
    /// The path used in errors, as the caller knows it.
    given: Option<&'g VPath>,
    /// Accesses that need approval.
    asks: Vec<(Access, Verdict)>,
    /// Reasons why approval was needed, whether it has been given or not.
    pub(super) reasons: Vec<(Op, Reason)>,
    /// Permits granted during this call.
    permits: Vec<Permit>,
}

impl<B: Backend> Guarded<B> {
    pub(super) fn backend(&self) -> &B {
        &self.shared.backend
    }

    /// Returns the verdict of every layer and of the tool's setting.
    fn judge(&self, access: &Access) -> Verdict {
        let verdict = match &access.target {
            Target::Path(path) => self
                .policy
                .judge(access.op, path, access.kind, access.bytes),
            // Callers supply the verdict about a command.
            Target::Command(_) => Vote::abstain(crate::Layer::Command).into(),
            Target::Port(port) => self.policy.judge_port(*port),
        };
        self.with_tool_vote(verdict)
    }

    fn with_tool_vote(&self, verdict: Verdict) -> Verdict {
        match self.setting.vote() {
            Some(vote) => verdict.and(vote),
            None => verdict,
        }
    }

    /// Records a decision in the audit, with the permit it is based on.
    fn audit(&self, access: &Access, verdict: &Verdict, outcome: Outcome, permit: Option<&Permit>) {
        let shared = &self.shared;
        let Some(audit) = shared.audit.as_ref().filter(|it| it.listens_to(outcome)) else {
            return;
        };
        let mut event = AuditEvent::new(&shared.session, access, verdict, outcome);
        event.tool = self.tool.as_deref();
        if runs_commands(access.op) {
            event.enforcement = Some(self.backend().info().enforcement);
        }
        if let Some(permit) = permit {
            event = event.permit(permit);
        }
        audit.record(&event);
    }
}

impl<'g, B: Backend> Gate<'g, B> {
    /// Creates a gate for a call about a path.
    pub(super) fn new(guard: &'g Guarded<B>, operation: Operation, given: &'g VPath) -> Self {
        Self {
            given: Some(given),
            ..Self::for_command(guard, operation)
        }
    }

    /// Creates a gate for a call about a command.
    pub(super) fn for_command(guard: &'g Guarded<B>, operation: Operation) -> Self {
        Self {
            guard,
            operation,
            given: None,
            asks: Vec::new(),
            reasons: Vec::new(),
            permits: Vec::new(),
        }
    }

    /// Discards the pending questions, because everything is judged again.
    pub(super) fn reset(&mut self) {
        self.asks.clear();
    }

    /// Judges one access. `shown` is the path by which the caller knows the target.
    pub(super) fn check(&mut self, access: Access, shown: Option<&VPath>) -> Result<()> {
        let verdict = self.guard.judge(&access);
        self.record(access, verdict, shown)
    }

    /// Adds one access with a known verdict.
    pub(super) fn check_verdict(
        &mut self,
        access: Access,
        verdict: Verdict,
        shown: Option<&VPath>,
    ) -> Result<()> {
        let verdict = self.guard.with_tool_vote(verdict);
        self.record(access, verdict, shown)
    }

    fn record(&mut self, access: Access, verdict: Verdict, shown: Option<&VPath>) -> Result<()> {
        match verdict.action() {
            Action::Allow => self.guard.audit(&access, &verdict, Outcome::Allowed, None),
            Action::Ask => {
                let reason = (access.op, verdict.decisive().reason.clone());
                if !self.reasons.contains(&reason) {
                    self.reasons.push(reason);
                }
                if self.covered(&access) {
                    let permit = self.permit_for(&access);
                    let outcome = Outcome::Permitted;
                    self.guard.audit(&access, &verdict, outcome, permit);
                } else if let Some((_, other)) =
                    self.asks.iter_mut().find(|(other, _)| *other == access)
                {
                    // Another reason counts too.
                    if *other != verdict {
                        *other = other.clone().and_all(verdict);
                    }
                } else {
                    self.asks.push((access, verdict));
                }
            }
            Action::Deny => return Err(self.refuse(&access, &verdict, shown)),
        }
        Ok(())
    }

    /// Refuses what is denied for any kind of entry, before the backend is asked for it.
    pub(super) fn screen(&self, intent: Intent) -> Result<()> {
        for access in intent.kind(Kind::Directory).accesses() {
            let verdict = self.guard.judge(&access);
            if verdict.action() == Action::Deny {
                let shown = access.path().cloned();
                return Err(self.refuse(&access, &verdict, shown.as_ref()));
            }
        }
        Ok(())
    }

    /// Judges an entry inside a directory that has been judged itself. The question about
    /// the directory covers it, if it is asked about for the same reason.
    pub(super) fn check_inside(
        &mut self,
        access: Access,
        shown: &VPath,
        top: &[(Op, Reason)],
    ) -> Result<()> {
        let verdict = self.guard.judge(&access);
        if verdict.action() == Action::Ask {
            let reason = &verdict.decisive().reason;
            if top
                .iter()
                .any(|(op, top)| *op == access.op && top == reason)
            {
                return Ok(());
            }
        }
        self.record(access, verdict, Some(shown))
    }

    fn covered(&self, access: &Access) -> bool {
        self.guard.setting.pre_approved || self.permit_for(access).is_some()
    }

    fn permit_for(&self, access: &Access) -> Option<&Permit> {
        let mut permits = self.permits.iter().chain(&self.guard.permits);
        permits.find(|permit| permit.covers(access.op, &access.target))
    }

    /// Returns the hash of the file at `path` at the time this call was approved.
    pub(super) fn expects(&self, path: &VPath) -> Option<ContentHash> {
        let mut permits = self.permits.iter().chain(&self.guard.permits);
        permits.find_map(|permit| permit.expects(path))
    }

    fn refuse(&self, access: &Access, verdict: &Verdict, shown: Option<&VPath>) -> Error {
        self.guard.audit(access, verdict, Outcome::Refused, None);
        let refusal = match shown {
            Some(shown) => {
                let same = access.path() == Some(shown);
                refusal(access.op, &Target::Path(shown.clone()), verdict, same)
            }
            None => refusal(access.op, &access.target, verdict, true),
        };
        self.refused(refusal)
    }

    /// Converts a refusal into an error with the context of this call.
    pub(super) fn refused(&self, refusal: Refusal) -> Error {
        self.failed(refusal.into())
    }

    /// Adds the operation, the path and the backend to an error.
    pub(super) fn failed(&self, error: Error) -> Error {
        let error = match self.given {
            Some(given) => error.at(self.operation, given),
            None => error.during(self.operation),
        };
        error.on(self.guard.backend().info().name)
    }

    /// Returns whether any access needs approval.
    pub(super) fn asks(&self) -> bool {
        !self.asks.is_empty()
    }

    /// Returns whether an access with `op` needs approval.
    pub(super) fn asks_to(&self, op: Op) -> bool {
        self.asks.iter().any(|(access, _)| access.op == op)
    }

    /// Returns whether a found file is allowed, or the question about the search covers it.
    pub(super) fn includes(&self, access: &Access) -> bool {
        let verdict = self.guard.judge(access);
        match verdict.action() {
            Action::Allow => true,
            Action::Ask => {
                let reason = (access.op, verdict.decisive().reason.clone());
                self.covered(access) || self.reasons.contains(&reason)
            }
            Action::Deny => false,
        }
    }

    /// Returns whether a rule asked about `op`, which has been approved by now.
    pub(super) fn asked_by_rule(&self, op: Op) -> bool {
        let by_rule =
            |(asked, reason): &(Op, Reason)| *asked == op && matches!(reason, Reason::Rule(_));
        self.reasons.iter().any(by_rule)
    }

    /// Judges a call about one path. If approval is needed, links are followed first, so
    /// that one question covers everything.
    pub(super) async fn check_call<F>(
        &mut self,
        route: &mut LinkResolution,
        intent: F,
    ) -> Result<()>
    where
        F: Fn(VPath) -> Intent + Send,
    {
        self.reset();
        for access in intent(route.given().clone()).accesses() {
            self.check(access, Some(route.given()))?;
        }
        if self.asks() && !route.moved() && self.may_lead_elsewhere(route) {
            route.follow(self.guard.backend(), self.operation).await?;
        }
        if route.moved() {
            for access in intent(route.at().clone()).accesses() {
                self.check(access, Some(route.given()))?;
            }
        }
        Ok(())
    }

    /// Judges a call about one path, and asks for approval if needed.
    pub(super) async fn authorize<F>(&mut self, route: &mut LinkResolution, intent: F) -> Result<()>
    where
        F: Fn(VPath) -> Intent + Send,
    {
        self.check_call(route, intent).await?;
        if !self.asks() {
            return Ok(());
        }
        self.ask(self.effect_of(route.given())).await
    }

    pub(super) fn may_lead_elsewhere(&self, route: &LinkResolution) -> bool {
        route.follows() && self.guard.backend().info().capabilities.links
    }

    /// Returns the effect of the operation on the path, for the question's description.
    pub(super) fn effect_of(&self, given: &VPath) -> Effect {
        match self.operation {
            Operation::Read | Operation::ReadText => Effect::read(given.as_str()),
            Operation::Delete => Effect::delete(given.as_str()),
            _ => Effect::None,
        }
    }

    /// Asks for every access that needs approval, in one question.
    pub(super) async fn ask(&mut self, effect: Effect) -> Result<()> {
        self.ask_as(effect, |question| question).await.map(drop)
    }

    /// Like [`ask`](Self::ask), for a directory with this number of entries.
    pub(super) async fn ask_for_tree(&mut self, effect: Effect, entries: usize) -> Result<()> {
        let words = |mut question: Question| {
            if entries > 0 {
                let reason = format!("it includes {entries} entries");
                question.reasons.insert(0, reason);
            }
            question
        };
        self.ask_as(effect, words).await.map(drop)
    }

    /// Like [`ask`](Self::ask), but lets the caller change the question.
    pub(super) async fn ask_as(
        &mut self,
        effect: Effect,
        words: impl FnOnce(Question) -> Question,
    ) -> Result<Option<Permit>> {
        if self.asks.is_empty() {
            return Ok(None);
        }
        let asks = std::mem::take(&mut self.asks);
        let question = words(self.question(&asks, effect));
        self.submit(&asks, question).await.map(Some)
    }

    async fn submit(&mut self, asks: &[(Access, Verdict)], question: Question) -> Result<Permit> {
        let answer = match &self.guard.shared.service {
            Some(service) => service.authorize(question).await,
            None => Err(Refusal::approval_required(
                Quoted::new(&question.description).to_string(),
                "no approver is configured; allow it in the rules or do something else",
            )),
        };
        let (outcome, permit) = match &answer {
            Ok(permit) => (Outcome::Permitted, Some(permit)),
            Err(_) => (Outcome::Refused, None),
        };
        for (access, verdict) in asks {
            self.guard.audit(access, verdict, outcome, permit);
        }
        let permit = answer.map_err(|refusal| self.refused(refusal))?;
        self.permits.push(permit.clone());
        Ok(permit)
    }

    fn question(&self, asks: &[(Access, Verdict)], effect: Effect) -> Question {
        let shared = &self.guard.shared;
        let asked = asks
            .iter()
            .map(|(access, verdict)| {
                let asked = Asked::new(access.op, access.target.clone());
                asked.by_rule(verdict.is_asked_by_rule())
            })
            .collect();
        // A refusal repeats the description to the model, so it must not reveal where
        // links lead. The reasons do.
        let description = match (&self.guard.words, &effect, self.given) {
            (Some(words), _, _) => words.to_string(),
            (None, Effect::None, Some(given)) => format!("{} {given}", self.operation),
            (None, Effect::None, None) => self.operation.to_string(),
            (None, effect, _) => effect.description(),
        };
        let mut question = Question::new(Arc::clone(&shared.session), asked);
        question.tool = self.guard.tool.clone();
        if asks.iter().any(|(access, _)| runs_commands(access.op)) {
            question.enforcement = self.guard.told_level();
        }
        if let Some(args) = &self.guard.args {
            question = question.args(Value::clone(args));
        }
        question = question.effect(effect).description(description);
        for (access, verdict) in asks.iter().take(MAX_REASONS) {
            question = question.reason(format!("{access}: {}", verdict.decisive()));
        }
        question
    }

    /// Refuses a file that turns out to be larger than allowed.
    pub(super) fn check_size(&self, op: Op, route: &LinkResolution, size: u64) -> Result<()> {
        if self.guard.policy.max_file_bytes(route.at()).is_none() {
            return Ok(());
        }
        let access = Access::file(op, route.at().clone()).bytes(size);
        let verdict = self.guard.judge(&access);
        match verdict.action() {
            Action::Deny => Err(self.refuse(&access, &verdict, Some(route.given()))),
            _ => Ok(()),
        }
    }

    /// Returns the kind and size of the entry at a path, if a layer needs them. A link
    /// counts as a file, because it is not followed here.
    pub(super) async fn stat_kind(&self, at: &VPath) -> (Kind, Option<u64>) {
        if !self.guard.policy.has_path_layer() {
            return (Kind::File, None);
        }
        let options = StatOptions::default().links(backend_core::ops::Links::Refuse);
        match self.guard.backend().stat(at, options).await {
            Ok(entry) if entry.is_dir() => (Kind::Directory, None),
            Ok(entry) => (Kind::File, entry.size),
            Err(_) => (Kind::File, None),
        }
    }

    /// Returns the refusal of a path that a listing would hide.
    pub(super) fn hidden(&self, shown: &VPath) -> Error {
        self.refused(Refusal::rule(Op::Ls, shown.as_str(), ""))
    }
}

/// Returns whether an operation runs commands, or opens a way to.
fn runs_commands(op: Op) -> bool {
    matches!(op, Op::Execute | Op::Terminal)
}
