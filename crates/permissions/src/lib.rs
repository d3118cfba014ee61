#![doc = include_str!("../README.md")]

pub mod access;
mod action;
pub mod approval;
pub mod audit;
pub mod command;
pub mod guarded;
pub mod line_diff;
mod policy;
mod refusal;
pub mod rules;
pub mod tool;
mod verdict;

pub use access::{Access, Kind, Target};
pub use action::{Action, Op, OpClass};
pub use approval::{Answer, Approver, Permit, Question, Remember};
pub use guarded::{Guarded, GuardedBuilder};
pub use policy::{CommandJudgement, PathLayer, Policy, PolicyBuilder};
pub use refusal::Refusal;
pub use rules::{Preset, Ruleset};
pub use verdict::{Layer, Reason, Verdict, Vote};
