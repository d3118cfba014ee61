//! [`Grants`]: the answers that are still valid.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use super::limits::{GRANTS, LINE_BYTES, NOTE_BYTES};
use super::{Answer, Asked, Fingerprint, Question, Remember, text};

mod key;
mod saved;

pub use key::{GrantKey, NotRemembered, PatternKind};
pub use saved::{Grant, GrantId, GrantsError};

use key::Matcher;

/// Returns the current time.
type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Answers that are still valid. Clones share one store.
///
/// A grant is a remembered answer, not a rule: it saves a question, but never overrides a
/// denial. At most [`GRANTS`] are kept.
///
/// ```
/// use backend_core::VPath;
/// use permissions::approval::{Answer, Asked, Grants, Question, Remember};
/// use permissions::{Op, Target};
///
/// let at = |path: &str| Ok::<_, backend_core::PathError>(
///     Asked::new(Op::Write, Target::Path(VPath::parse(path)?)));
/// let grants = Grants::new();
/// let answer = Answer::yes().remember(Remember::Prefix(VPath::parse("/src")?));
/// let id = grants.record(&Question::new("s1", vec![at("/src/a")?]), &answer)?;
///
/// assert!(grants.covers("s1", &at("/src/deep/b")?));
/// assert!(!grants.covers("s1", &at("/srcs")?) && !grants.covers("s2", &at("/src/a")?));
///
/// let saved = grants.to_json();
/// assert!(grants.revoke(id.expect("a grant")));
/// assert!(!grants.covers("s1", &at("/src/a")?));
/// assert!(Grants::from_json(&saved)?.covers("s1", &at("/src/a")?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Grants {
    store: Arc<Mutex<Store>>,
    clock: Clock,
    /// The policy whose grants this handle sees and creates.
    policy: Option<Arc<str>>,
}

#[derive(Default)]
struct Store {
    next: u64,
    /// The grants, the oldest first.
    kept: Vec<StoredGrant>,
}

struct StoredGrant {
    grant: Grant,
    matcher: Matcher,
}

/// The part of a question that grants answer.
#[derive(Default, PartialEq)]
pub(super) struct GrantCoverage {
    /// Indices of the accesses that no grant covers.
    pub(super) uncovered: Vec<usize>,
    /// The grants that cover the rest.
    pub(super) grants: Vec<GrantId>,
    /// A remembered no to any of the accesses.
    pub(super) denial: Option<Grant>,
}

impl Default for Grants {
    fn default() -> Self {
        Self::with_clock(Arc::new(SystemTime::now))
    }
}

impl Grants {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty store that takes the time from `clock`.
    pub fn with_clock(clock: Arc<dyn Fn() -> SystemTime + Send + Sync>) -> Self {
        Self {
            store: Arc::default(),
            clock,
            policy: None,
        }
    }

    /// Returns a handle to the same store for the policy with this id. Answers recorded
    /// through it apply to that policy only, and it ignores answers recorded for others.
    #[must_use]
    pub fn for_policy(&self, policy: impl Into<Arc<str>>) -> Self {
        Self {
            policy: Some(policy.into()),
            ..self.clone()
        }
    }

    /// Returns the policy whose grants this handle sees and creates.
    pub fn policy(&self) -> Option<&Arc<str>> {
        self.policy.as_ref()
    }

    /// Remembers an answer, yes or no, with the scope of its [`Remember`]. Returns `None`
    /// if the answer is not to be remembered, or expires at once. Replaces an equal
    /// grant.
    ///
    /// # Errors
    ///
    /// [`NotRemembered`] if the scope does not cover everything that was asked, or is not
    /// valid. Nothing is remembered then.
    pub fn record(
        &self,
        question: &Question,
        answer: &Answer,
    ) -> Result<Option<GrantId>, NotRemembered> {
        let items = (0..question.asked.len()).collect();
        self.record_part(question, question.fingerprint(), items, answer)
    }

    /// Like [`record`](Self::record), for a question that asks about only the `items` of
    /// the call with this fingerprint.
    pub(super) fn record_part(
        &self,
        question: &Question,
        fingerprint: Fingerprint,
        items: Vec<usize>,
        answer: &Answer,
    ) -> Result<Option<GrantId>, NotRemembered> {
        if answer.remember == Remember::No {
            return Ok(None);
        }
        let key = GrantKey::new(answer, fingerprint, items, &question.asked)?;
        let matcher = Matcher::new(&key)?;
        if !question
            .asked
            .iter()
            .all(|asked| matcher.covers(&key, asked))
        {
            return Err(NotRemembered::TooNarrow);
        }
        let now = (self.clock)();
        // If the time overflows, there is no limit.
        let expires = answer.expires_in.and_then(|time| now.checked_add(time));
        if expires.is_some_and(|expires| expires <= now) {
            return Ok(None);
        }
        let mut store = self.lock();
        let grant = Grant {
            id: GrantId::new(store.next),
            session: question.session.to_string(),
            key,
            approved: answer.approved,
            what: text::line(&question.description, LINE_BYTES),
            note: note(answer),
            created: now,
            expires,
            policy: self.policy.as_deref().map(str::to_owned),
        };
        let id = grant.id;
        store.next = store.next.saturating_add(1);
        store.add(StoredGrant { grant, matcher }, now);
        Ok(Some(id))
    }

    /// Returns whether a yes in `session` covers `asked`, and no remembered no does.
    /// Grants for [one call](Remember::Call) do not count, as this may be another.
    pub fn covers(&self, session: &str, asked: &Asked) -> bool {
        self.lookup(session, asked)
            .is_some_and(|grant| grant.approved)
    }

    /// Returns the grant in `session` that covers `asked`: a no before a yes, oldest first.
    pub fn lookup(&self, session: &str, asked: &Asked) -> Option<Grant> {
        let now = (self.clock)();
        let store = self.lock();
        let mut found = None;
        for kept in self.applying(&store, session, now) {
            if kept.matcher.covers_alone(&kept.grant.key, asked) {
                if !kept.grant.approved {
                    return Some(kept.grant.clone());
                }
                found = found.or(Some(&kept.grant));
            }
        }
        found.cloned()
    }

    /// Computes which part of a question the grants answer.
    pub(super) fn coverage(&self, question: &Question) -> GrantCoverage {
        let fingerprint = question.fingerprint();
        let now = (self.clock)();
        let store = self.lock();
        let mut coverage = GrantCoverage::default();
        let mut take = |item: Option<usize>| {
            let covers = |kept: &&StoredGrant| {
                let asked = item.and_then(|item| question.asked.get(item));
                let key = &kept.grant.key;
                key.is_call(fingerprint, item)
                    || asked.is_some_and(|asked| kept.matcher.covers_alone(key, asked))
            };
            let (mut yes, mut no) = (None, None);
            for kept in self.applying(&store, &question.session, now).filter(covers) {
                if kept.grant.approved {
                    yes = yes.or(Some(kept.grant.id));
                } else {
                    no = Some(kept.grant.clone());
                }
            }
            // If a no covers it too, a yes does not save the question.
            let yes = yes.filter(|_| no.is_none());
            coverage.denial = coverage.denial.take().or(no);
            match yes {
                Some(id) if !coverage.grants.contains(&id) => coverage.grants.push(id),
                Some(_) => {}
                None => coverage.uncovered.extend(item),
            }
        };
        if question.asked.is_empty() {
            take(None);
        }
        (0..question.asked.len()).for_each(|item| take(Some(item)));
        coverage
    }

    /// Returns all valid grants of every session and policy, the oldest first.
    pub fn list(&self) -> Vec<Grant> {
        let now = (self.clock)();
        let store = self.lock();
        let valid = store.kept.iter().filter(|kept| kept.grant.is_valid(now));
        valid.map(|kept| kept.grant.clone()).collect()
    }

    /// Revokes one grant. Returns `false` if there is none with this id.
    pub fn revoke(&self, id: GrantId) -> bool {
        self.forget(|grant| grant.id == id) > 0
    }

    /// Revokes all grants of a session, and returns how many.
    pub fn clear(&self, session: &str) -> usize {
        self.forget(|grant| grant.session == session)
    }

    /// Removes expired grants, which do not count anyway, and returns how many.
    pub fn expire(&self) -> usize {
        let now = (self.clock)();
        self.forget(|grant| grant.has_expired(now))
    }

    /// Returns the number of grants, including expired ones.
    pub fn len(&self) -> usize {
        self.lock().kept.len()
    }

    /// Returns whether there are no grants.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn forget(&self, which: impl Fn(&Grant) -> bool) -> usize {
        let mut store = self.lock();
        let before = store.kept.len();
        store.kept.retain(|kept| !which(&kept.grant));
        before - store.kept.len()
    }

    /// Returns the grants that apply to a session under this handle's policy.
    fn applying<'a>(
        &'a self,
        store: &'a Store,
        session: &'a str,
        now: SystemTime,
    ) -> impl Iterator<Item = &'a StoredGrant> {
        store.kept.iter().filter(move |kept| {
            let grant = &kept.grant;
            grant.session == session
                && grant.policy.as_deref() == self.policy.as_deref()
                && grant.is_valid(now)
        })
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        backend_core::sync::lock(&self.store)
    }
}

impl Store {
    fn add(&mut self, new: StoredGrant, now: SystemTime) {
        self.kept.retain(|kept| !kept.grant.covers_same(&new.grant));
        if self.kept.len() >= GRANTS {
            self.kept.retain(|kept| !kept.grant.has_expired(now));
        }
        while self.kept.len() >= GRANTS {
            // A no is removed last, because without it a wider yes would count again.
            let oldest = self.kept.iter().position(|kept| kept.grant.approved);
            self.kept.remove(oldest.unwrap_or(0));
        }
        self.kept.push(new);
    }
}

/// Returns the answer's note, if it is not empty.
pub(super) fn note(answer: &Answer) -> Option<String> {
    let note = answer.note.as_deref().filter(|note| !note.is_empty())?;
    Some(text::cut(note, NOTE_BYTES).into_owned())
}

impl fmt::Debug for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grants")
            .field("len", &self.len())
            .field("policy", &self.policy)
            .finish()
    }
}
