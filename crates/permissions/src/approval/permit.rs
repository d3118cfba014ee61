//! [`Permit`]: proof of approval, held by the caller that asked.

use std::sync::Arc;
use std::time::Duration;

use backend_core::VPath;
use backend_core::ops::ContentHash;

use super::{Asked, Fingerprint, GrantId, Question};
use crate::{Op, Target};

/// The origin of a permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PermitSource {
    /// The approver was asked about everything that no grant covers, and said yes.
    Answer,
    /// Everything was already granted, first by this one of the [`grants`](Permit::grants).
    Grant(GrantId),
}

/// Proof of approval, held by the caller that asked. The guard accepts it only for the
/// accesses that were asked about, and it never overrides a denial. Cheap to clone.
///
/// Only an [`ApprovalService`](super::ApprovalService) can create one, so a holder of a
/// permit has asked. That is why there is no constructor.
///
/// ```compile_fail
/// let permit = permissions::Permit { yes: Default::default() };
/// ```
#[derive(Debug, Clone)]
pub struct Permit(Arc<Issued>);

/// The contents of a permit.
#[derive(Debug)]
pub(super) struct Issued {
    pub(super) id: u64,
    pub(super) fingerprint: Fingerprint,
    pub(super) asked: Vec<Asked>,
    pub(super) bound: Vec<(VPath, ContentHash)>,
    pub(super) source: PermitSource,
    pub(super) grants: Vec<GrantId>,
    pub(super) note: Option<String>,
    pub(super) waited: Option<Duration>,
}

impl Permit {
    pub(super) fn new(issued: Issued) -> Self {
        Self(Arc::new(issued))
    }

    /// Returns whether it covers `op` on `target`.
    pub fn covers(&self, op: Op, target: &Target) -> bool {
        let mut asked = self.0.asked.iter();
        asked.any(|asked| asked.op == op && asked.target == *target)
    }

    /// Returns whether it was issued for a question equal to this one.
    pub fn answers(&self, question: &Question) -> bool {
        self.0.fingerprint == question.fingerprint()
    }

    /// Returns the hash of the file at `path` when the question was asked, if the
    /// question was bound to it. The file must be unchanged when the call is made.
    pub fn expects(&self, path: &VPath) -> Option<ContentHash> {
        let mut bound = self.0.bound.iter();
        bound
            .find(|(bound, _)| bound == path)
            .map(|(_, hash)| *hash)
    }

    /// Returns the permit's number, unique for the service.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Returns the accesses that were asked about, which are all that it covers.
    pub fn asked(&self) -> &[Asked] {
        &self.0.asked
    }

    /// Returns the origin of the permit.
    pub fn source(&self) -> PermitSource {
        self.0.source
    }

    /// Returns the grants that cover some or all of it.
    pub fn grants(&self) -> &[GrantId] {
        &self.0.grants
    }

    /// Returns the note that came with the answer.
    pub fn note(&self) -> Option<&str> {
        self.0.note.as_deref()
    }

    /// Returns the time the answer took, if the approver was asked.
    pub fn waited(&self) -> Option<Duration> {
        self.0.waited
    }
}
