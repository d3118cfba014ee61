//! Running commands: settings, and the runner that owns running commands.

pub use commands::Commands;
pub(crate) use connect::connect;
pub use environment::Environment;
pub use locate::Supervisor;
pub(crate) use runner::Runner;
pub(crate) use task::Task;

mod client;
mod commands;
mod connect;
mod direct;
mod environment;
mod job;
mod locate;
mod process;
mod pump;
mod runner;
mod state;
mod supervised;
mod task;
mod temp_dir;
mod terminal;
mod views;
