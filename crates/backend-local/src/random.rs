//! Random numbers for names that must not clash.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// Returns a number that is not used twice. The standard library seeds each of
/// these hashers from the operating system's randomness.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
