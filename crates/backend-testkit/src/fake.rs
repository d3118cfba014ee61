//! Backends and clocks under a test's control.
//!
//! - [`Intercepted`] lets a closure see, record or fail every call on its way to a real
//!   backend.
//! - [`PausedClock`] stands still until it is advanced.

mod clock;
mod intercepted;

pub use clock::PausedClock;
pub use intercepted::{Call, Calls, Intercepted};
