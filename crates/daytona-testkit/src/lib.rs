#![doc = include_str!("../README.md")]

mod enclosure;
mod faults;
mod gate;
mod id;
mod latency;
mod multipart;
mod options;
mod paths;
mod processes;
mod refusal;
mod requests;
mod root;
mod routes;
mod sandbox;
mod server;
mod service;
mod session_log;
mod sessions;
mod terminals;
mod websocket;

pub use faults::{Fault, Injection};
pub use options::Options;
pub use requests::{Recorded, Requests};
pub use server::Standin;
