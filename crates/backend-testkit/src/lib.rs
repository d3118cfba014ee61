#![doc = include_str!("../README.md")]

mod case;
pub mod cases;
mod coverage;
mod env;
mod failure;
pub mod fake;
mod fixture;
mod list;
mod list_filesystem;
#[cfg(feature = "measure")]
pub mod measure;
#[cfg(target_os = "linux")]
pub mod processes;
mod run;
mod shorthand;

pub use case::Case;
#[doc(hidden)]
pub use coverage::test_column;
pub use env::Env;
pub use failure::{CaseResult, Failure};
#[cfg(target_os = "linux")]
pub use fixture::DirectoryFixture;
pub use fixture::{ClockFixture, Fixture, Need, SandboxFixture};
pub use list::CASES;
pub use run::{Outcome, Report, block_on, run_all, run_case, run_concurrently};
#[doc(hidden)]
pub use run::{test_case, test_skipped};
pub use shorthand::{fails, path};
