//! [`Permit`]: a yes, in the hand of whoever asked.

use std::sync::Arc;
use std::time::Duration;

use backend_core::VPath;
use backend_core::ops::ContentHash;

use super::{Asked, Fingerprint, GrantId, Question};
use crate::{Op, Target};

/// Where a yes comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PermitSource {
    /// Somebody was asked, and said yes to what no grant covers.
    Answer,
    /// All of it was granted before; this is the first of the
    /// [`grants`](Permit::grants).
    Grant(GrantId),
}

/// A yes, in the hand of whoever asked. The guard accepts it for what was asked
/// and nothing else; it never outweighs a denial. Cheap to clone.
///
/// Only a [`Desk`](super::Desk) makes one: what has a permit in its hand has
/// asked. That is why there is no constructor.
///
/// ```compile_fail
/// let permit = permissions::Permit { yes: Default::default() };
/// ```
#[derive(Debug, Clone)]
pub struct Permit(Arc<Yes>);

#[derive(Debug)]
struct Yes {
    id: u64,
    fingerprint: Fingerprint,
    asked: Vec<Asked>,
    bound: Vec<(VPath, ContentHash)>,
    source: PermitSource,
    grants: Vec<GrantId>,
    note: Option<String>,
    waited: Option<Duration>,
}

impl Permit {
    /// A yes to all of `question`, by an answer.
    pub(super) fn answered(
        id: u64,
        question: &Question,
        grants: Vec<GrantId>,
        note: Option<String>,
        waited: Duration,
    ) -> Self {
        Self(Arc::new(Yes {
            note,
            waited: Some(waited),
            ..Yes::new(id, question, PermitSource::Answer, grants)
        }))
    }

    /// A yes to all of `question`, by what was granted before.
    pub(super) fn granted(id: u64, question: &Question, first: GrantId, all: Vec<GrantId>) -> Self {
        let source = PermitSource::Grant(first);
        Self(Arc::new(Yes::new(id, question, source, all)))
    }

    /// Whether it covers doing `op` to `target`.
    pub fn covers(&self, op: Op, target: &Target) -> bool {
        let mut asked = self.0.asked.iter();
        asked.any(|asked| asked.op == op && asked.target == *target)
    }

    /// Whether it is a yes to a question equal to this one.
    pub fn answers(&self, question: &Question) -> bool {
        self.0.fingerprint == question.fingerprint()
    }

    /// What the file at `path` held when the question was asked, if the question
    /// was bound to that: it has to hold the same when the call is made.
    pub fn expects(&self, path: &VPath) -> Option<ContentHash> {
        let mut bound = self.0.bound.iter();
        bound
            .find(|(bound, _)| bound == path)
            .map(|(_, hash)| *hash)
    }

    /// Its number, of which the desk gives each one only once.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// What was asked: all that it covers.
    pub fn asked(&self) -> &[Asked] {
        &self.0.asked
    }

    /// Where the yes comes from.
    pub fn how(&self) -> PermitSource {
        self.0.source
    }

    /// The grants that cover some of it, or all.
    pub fn grants(&self) -> &[GrantId] {
        &self.0.grants
    }

    /// What the answer said besides yes.
    pub fn note(&self) -> Option<&str> {
        self.0.note.as_deref()
    }

    /// How long the answer took, if somebody was asked.
    pub fn waited(&self) -> Option<Duration> {
        self.0.waited
    }
}

impl Yes {
    fn new(id: u64, question: &Question, source: PermitSource, grants: Vec<GrantId>) -> Self {
        Self {
            id,
            fingerprint: question.fingerprint(),
            asked: question.asked.clone(),
            bound: question.bound().to_vec(),
            source,
            grants,
            note: None,
            waited: None,
        }
    }
}
