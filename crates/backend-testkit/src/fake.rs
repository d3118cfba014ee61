//! Backends and clocks that tests hold in their hands.
//!
//! - [`Intercepted`] lets a closure see, record or fail every call on its way
//!   to a real backend.
//! - [`PausedClock`] stands still until it is told to go on.

mod clock;
mod intercepted;

pub use clock::PausedClock;
pub use intercepted::{Call, Calls, Intercepted};
