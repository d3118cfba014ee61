//! Backends and clocks under a test's control.
//!
//! - [`Intercepted`] lets a closure see, record or fail every call on its way to a real
//!   backend.
//! - [`FakeSandbox`] is a sandbox without a machine, which starts, stops and dies as told.
//! - [`PausedClock`] stands still until it is advanced.

mod clock;
mod intercepted;
mod sandbox;

pub use clock::PausedClock;
pub use intercepted::{Call, Calls, Intercepted};
pub use sandbox::{FakeSandbox, HOLD};
