#![doc = include_str!("../README.md")]

mod builder;
mod capacity;
#[cfg(feature = "daytona")]
mod daytona;
#[cfg(any(feature = "docker", all(feature = "local", target_os = "linux")))]
mod disk;
#[cfg(feature = "docker")]
mod docker;
mod engine;
mod error;
mod events;
mod factory;
mod hibernate;
mod id;
#[cfg(feature = "k8s")]
mod k8s;
#[cfg(any(feature = "docker", all(feature = "local", target_os = "linux")))]
mod layout;
mod lifecycle;
#[cfg(all(feature = "local", target_os = "linux"))]
mod local;
mod manager;
#[cfg(any(feature = "docker", all(feature = "local", target_os = "linux")))]
mod mark;
#[cfg(any(feature = "daytona", feature = "k8s"))]
mod names;
#[cfg(any(feature = "daytona", feature = "k8s"))]
mod notes;
#[cfg(any(feature = "docker", feature = "k8s"))]
mod pool;
mod reaper;
mod record;
mod request;
mod session;
mod shared;
mod slot;
mod snapshot;
mod table;
mod time;
#[cfg(feature = "tools")]
mod tools;
mod write_back;

pub use builder::{IDLE_TIMEOUT, SessionManagerBuilder, WRITE_BACK_INTERVAL};
#[cfg(feature = "daytona")]
pub use daytona::{DaytonaEngine, DaytonaEngineBuilder};
#[cfg(feature = "docker")]
pub use docker::{DockerEngine, DockerEngineBuilder};
pub use engine::{Attached, Claim, Engine};
pub use error::{CapacityError, CapacityScope, QuotaError};
pub use events::{Counters, EVENTS, EventKind, SessionEvent};
pub use factory::Factory;
pub use id::{ID_BYTES, SessionId};
#[cfg(feature = "k8s")]
pub use k8s::{AgentSandboxEngine, AgentSandboxEngineBuilder, K8sEngine, K8sEngineBuilder};
#[cfg(all(feature = "local", target_os = "linux"))]
pub use local::{
    ARCHIVE_ENTRIES, LocalEngine, LocalEngineBuilder, StoredFiles, StoredSessions, TREE_DEPTH,
    TREE_ENTRIES, Tree, TreeOptions,
};
pub use manager::SessionManager;
pub use reaper::{REAPER_INTERVAL, Shutdown};
pub use record::{Record, RecordState, Usage};
pub use request::{OpenRequest, fingerprint};
pub use session::Session;
pub use snapshot::{SessionStatus, Snapshot, Status};
pub use time::Clock;
#[cfg(feature = "tools")]
pub use tools::SessionResolver;
