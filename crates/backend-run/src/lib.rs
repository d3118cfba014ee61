#![doc = include_str!("../README.md")]

mod activity;
mod attachment;
mod engine;
mod input;
mod log;
mod shells;
mod sink;
mod task;

pub use activity::{Activity, UseGuard};
pub use engine::{Engine, panicked, run, run_blocking, spawn, spawn_blocking};
pub use shells::Shells;
pub use sink::{OutputStream, Sink, Sinks};
pub use task::{CommandResult, Controls, Launched, RunMode, Stdin, Task, execute, stopped, stream};
