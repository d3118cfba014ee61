//! Questions, the approvers that answer them, and remembered answers.
//!
//! An access with the action `ask` becomes a [`Question`], which states exactly what
//! would happen. An [`ApprovalService`] passes it to an [`Approver`], unless a grant
//! already covers it, and issues a [`Permit`] if the answer is yes. Remembered answers
//! are kept in [`Grants`].
//!
//! A grant never overrides a denial: the guard judges every call anew, and only accesses
//! that need approval are looked up here.
//!
//! ```
//! use std::sync::Arc;
//! use backend_core::VPath;
//! use permissions::approval::{Answer, ApprovalService, Asked, Grants, Interactive};
//! use permissions::approval::{Question, Remember};
//! use permissions::{Op, Target};
//!
//! // The user approves everything in /docs, and wants that remembered.
//! let docs = VPath::parse("/docs")?;
//! let prefix = docs.clone();
//! let person = Interactive::new(move |_question| {
//!     let answer = Answer::yes().remember(Remember::Prefix(prefix.clone()));
//!     async move { Ok(answer) }
//! });
//! let service = ApprovalService::new(Arc::new(person), Grants::new());
//!
//! let target = Target::Path(docs.join("a.md")?);
//! let question = Question::new("session-1", vec![Asked::new(Op::Write, target.clone())]);
//! let permit = futures::executor::block_on(service.authorize(question))?;
//! assert!(permit.covers(Op::Write, &target));
//! assert!(!permit.covers(Op::Delete, &target), "deletion was not asked for");
//! assert_eq!(service.grants().list().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod approver;
mod callback;
mod effect;
mod grants;
pub mod limits;
mod permit;
mod question;
mod service;
pub(crate) mod text;

pub use answer::{Answer, Remember};
pub use approver::{
    ApproveAll, Approver, ApproverError, ApproverMode, Deferred, Strict, Unavailable, WithTimeout,
};
pub use callback::Interactive;
pub use effect::{Amount, Effect};
pub use grants::{Grant, GrantId, GrantKey, Grants, GrantsError, NotRemembered, PatternKind};
pub use permit::{Permit, PermitSource};
pub use question::{Asked, Fingerprint, Question};
pub use service::{ApprovalService, Pending};
pub use text::Unseen;
