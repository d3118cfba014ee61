//! A case of the suite.

use std::fmt;

use futures::future::BoxFuture;

use crate::env::Env;
use crate::failure::CaseResult;
use crate::fixture::Need;

/// A check of one rule of the contract.
#[derive(Clone, Copy)]
pub struct Case {
    /// The operation under test.
    pub group: &'static str,
    /// The rule, in a few words.
    pub name: &'static str,
    /// The requirements for running it.
    pub needs: &'static [Need],
    /// The source of the rule in the contract, or the defect of an earlier system that
    /// it rules out.
    pub source: &'static str,
    /// The check.
    pub run: for<'e> fn(&'e Env) -> BoxFuture<'e, CaseResult>,
}

impl Case {
    /// Returns `group::name`.
    pub fn id(&self) -> String {
        format!("{}::{}", self.group, self.name)
    }

    /// Whether it stops its sandbox, which would disturb other cases there.
    pub fn stops_its_sandbox(&self) -> bool {
        self.group == "sandbox" || self.name == "stop_ends_everything"
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Case({})", self.id())
    }
}
