//! Questions, who answers them, and what is remembered.
//!
//! An ask becomes a [`Question`], which says exactly what would happen. A
//! [`Desk`] brings it to an [`Approver`], unless a grant covers it already, and
//! issues a [`Permit`] for a yes. What is remembered stands in [`Grants`].
//!
//! A grant never outweighs a denial: whoever enforces the rules judges every
//! call anew, and only what the layers would ask about is looked up here.
//!
//! ```
//! use std::sync::Arc;
//! use backend_core::VPath;
//! use permissions::approval::{Answer, Asked, Desk, Grants, Interactive, Question, Remember};
//! use permissions::{Op, Target};
//!
//! // Somebody who says yes to everything in /docs, and means it.
//! let docs = VPath::parse("/docs")?;
//! let prefix = docs.clone();
//! let person = Interactive::new(move |_question| {
//!     let answer = Answer::yes().remember(Remember::Prefix(prefix.clone()));
//!     async move { Ok(answer) }
//! });
//! let desk = Desk::new(Arc::new(person), Grants::new());
//!
//! let target = Target::Path(docs.join("a.md")?);
//! let question = Question::new("session-1", vec![Asked::new(Op::Write, target.clone())]);
//! let permit = futures::executor::block_on(desk.authorize(question))?;
//! assert!(permit.covers(Op::Write, &target));
//! assert!(!permit.covers(Op::Delete, &target), "nobody asked for that");
//! assert_eq!(desk.grants().list().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod approver;
mod callback;
mod deferred;
mod desk;
mod effect;
mod grants;
pub mod limits;
mod permit;
mod question;
pub(crate) mod text;

pub use answer::{Answer, Remember};
pub use approver::{
    ApproveAll, Approver, ApproverError, ApproverMode, Strict, Unavailable, WithTimeout,
};
pub use callback::Interactive;
pub use deferred::Deferred;
pub use desk::{Desk, Pending};
pub use effect::{Amount, Effect, Unseen};
pub use grants::{Grant, GrantId, GrantKey, Grants, GrantsError, NotRemembered, PatternOf};
pub use permit::{Permit, PermitSource};
pub use question::{Asked, Fingerprint, Question};
