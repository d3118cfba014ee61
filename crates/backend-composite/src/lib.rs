#![doc = include_str!("../README.md")]

mod backend;
mod composite;
mod failure;
mod list;
mod partial;
mod route;
mod sandbox;
mod search;
mod table;
mod transfer;
mod watch;

pub use composite::{Composite, CompositeBuilder};
pub use failure::RouteFailure;
pub use route::Route;
