#![doc = include_str!("../README.md")]

mod engine;
mod error;
mod id;
mod record;
mod request;
mod time;

pub use engine::{Attached, Claim, Engine};
pub use error::{CapacityError, CapacityScope, QuotaError};
pub use id::{ID_BYTES, SessionId};
pub use record::{Record, RecordState, Usage};
pub use request::{OpenRequest, fingerprint};
pub use time::Clock;
