#![doc = include_str!("../README.md")]

mod backend;
mod blocking;
mod calls;
mod cancel;
mod connection;
mod engine;
mod sandbox;
mod stream;
#[cfg(feature = "tools")]
mod toolset;

pub use backend::SyncBackend;
pub use blocking::{
    BlockingAdapter, BlockingBackend, BlockingContent, BlockingNative, BlockingSandbox, Changes,
    Events, PoolSize,
};
pub use cancel::Cancel;
pub use connection::{SyncConnection, SyncOutgoing};
pub use engine::Engine;
pub use sandbox::SyncSandbox;
pub use stream::SyncStream;
#[cfg(feature = "tools")]
pub use toolset::{SyncChat, SyncToolset};
