#![doc = include_str!("../README.md")]

mod backend;
mod capability;
mod connection;
mod delegate;
pub mod derived;
mod error;
mod ext;
pub mod limits;
pub mod ops;
mod path;
mod sandbox;
pub mod search;
mod setters;
pub mod shells;
#[doc(hidden)]
pub mod sync;
pub mod text;
pub mod watch;

pub use backend::{Backend, WatchStream};
pub use capability::{BackendInfo, Capabilities, Containment, Enforcement};
pub use connection::{Connection, Outgoing};
pub use error::{Error, ErrorChain, ErrorKind, Operation, Result};
pub use ext::BackendExt;
// Most callers need these types and look for them here first.
#[doc(no_inline)]
pub use ops::*;
pub use path::{PathError, Quoted, VPath};
pub use sandbox::{CommandPaths, EventStream, Sandbox, TracedPath};
pub use text::Edit;

/// Support code for the expansion of [`derived_backend!`] and [`delegate!`].
#[doc(hidden)]
pub mod __private {
    pub use async_trait::async_trait;
    pub use bytes::Bytes;
    pub use futures_core::future::BoxFuture;
}
