#![doc = include_str!("../README.md")]

mod activity;
mod engine;
mod log;
mod shells;
mod sink;
mod task;

pub use activity::{Activity, UseGuard};
pub use engine::{Engine, join, panicked};
pub use shells::Shells;
pub use sink::{OutputStream, Sink, Sinks};
pub use task::{CommandResult, Launched, RunMode, Stdin, Task, execute, stopped, stream};
