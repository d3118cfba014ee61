//! [`CancelFlag`]: cancels an operation when its call is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backend_core::{Error, ErrorKind, Result};

/// The cancellation state of the call that started an operation. Clones share
/// it.
///
/// A read checks between blocks whether the call has been dropped, because a
/// file may claim to have 2^63 bytes. A change checks while it holds the lock
/// of the path, right before the one step that makes the change visible. So a
/// dropped call never undoes a later change by the same caller: either its step
/// came first, or it does not happen at all.
#[derive(Debug, Clone, Default)]
pub(crate) struct CancelFlag(Arc<AtomicBool>);

/// Held by the call. Dropping it cancels the operation.
#[derive(Debug)]
pub(crate) struct CancelOnDrop(CancelFlag);

impl CancelFlag {
    /// Returns the guard that the call must hold.
    pub(crate) fn guard(&self) -> CancelOnDrop {
        CancelOnDrop(self.clone())
    }

    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether the operation is to stop.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Fails if the call was dropped. No caller is left to see the error.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_set() {
            Err(Error::new(ErrorKind::Cancelled, "the call was dropped"))
        } else {
            Ok(())
        }
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}
