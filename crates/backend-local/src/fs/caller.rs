//! [`Caller`]: whether anybody still waits for an operation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backend_core::{Error, ErrorKind, Result};

/// Who asked for an operation.
///
/// Reading asks between blocks whether its caller is still there: a file may be
/// said to have 2^63 bytes. A change asks whether its caller is still there while it holds the lock of
/// the place, right before the one step that makes it visible. So a call that
/// was dropped never undoes what its caller did next: either its step came
/// first, or it does not come at all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Caller(Arc<AtomicBool>);

/// Held by the call; tells when that is dropped.
#[derive(Debug)]
pub(crate) struct Presence(Arc<AtomicBool>);

impl Caller {
    /// What the call must hold.
    pub(crate) fn presence(&self) -> Presence {
        Presence(Arc::clone(&self.0))
    }

    /// Ends what nobody waits for.
    ///
    /// # Errors
    ///
    /// `Cancelled`, which nobody sees.
    pub(crate) fn check(&self) -> Result<()> {
        match self.0.load(Ordering::SeqCst) {
            true => Err(Error::new(ErrorKind::Cancelled, "the call was dropped")),
            false => Ok(()),
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
