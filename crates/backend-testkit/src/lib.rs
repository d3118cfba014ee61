#![doc = include_str!("../README.md")]

mod case;
pub mod cases;
mod env;
pub mod fake;
mod fixture;
mod list;
mod list_filesystem;
#[cfg(feature = "measure")]
pub mod measure;
#[cfg(target_os = "linux")]
pub mod processes;
mod run;

pub use case::{Case, CaseResult, Failure, Need};
pub use env::Env;
#[cfg(target_os = "linux")]
pub use fixture::DirectoryFixture;
pub use fixture::{ClockFixture, Fixture};
pub use list::CASES;
pub use run::{Outcome, Report, block_on, run_all, run_case};
#[doc(hidden)]
pub use run::{test_case, test_skipped};
