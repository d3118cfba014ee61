#![doc = include_str!("../README.md")]

mod ask;
mod call;
mod call_slot;
mod client;
mod connect;
mod connection;
mod host_name;
mod http;
mod json_lines;
mod live_output;
mod resources;
mod roots;
mod server;
mod session;
mod settings;
mod stdio;
mod structured;
mod uri;

pub use client::Client;
pub use connect::Connect;
pub use http::serve_http;
pub use settings::{HttpSettings, ServeError, Settings, Token};
pub use stdio::{serve_pipes, serve_stdio};
