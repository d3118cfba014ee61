//! [`Cancel`]: ends calls from another thread.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use backend_core::{Error, ErrorKind, Result};
use futures_util::future::{Either, select};
use tokio::sync::watch;

/// Cancels blocking calls from another thread: from a signal handler, a closed window,
/// a deadline. Clones share one state.
///
/// ```
/// use std::sync::Arc;
/// use backend_core::ErrorKind;
/// use backend_state::StateBackend;
/// use backend_sync::{Cancel, SyncBackend};
///
/// let cancel = Cancel::new();
/// let files = SyncBackend::new(Arc::new(StateBackend::new())).cancelled_by(&cancel);
/// assert!(files.write_file("a", "x").is_ok());
/// cancel.cancel();
/// assert_eq!(files.read_bytes("a").unwrap_err().kind(), ErrorKind::Cancelled);
/// ```
#[derive(Clone, Default)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Cancel {
    /// Creates a handle that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends every waiting call and every later one. This cannot be undone.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Whether [`cancel`](Self::cancel) was called.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until [`cancel`](Self::cancel) is called.
    pub async fn cancelled(&self) {
        let mut seen = self.0.subscribe();
        // The channel cannot close: `self` holds the sender.
        let _ = seen.wait_for(|cancelled| *cancelled).await;
    }

    /// Runs a future, which is dropped when this is cancelled.
    pub(crate) async fn unless<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        match select(pin!(self.cancelled()), pin!(future)).await {
            Either::Left(_) => Err(cancelled()),
            Either::Right((result, _)) => result,
        }
    }
}

pub(crate) fn cancelled() -> Error {
    Error::new(
        ErrorKind::Cancelled,
        "the call was cancelled; if it is still needed, repeat it with another token",
    )
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_are_one() {
        let cancel = Cancel::default();
        assert_eq!(format!("{cancel:?}"), "Cancel(false)");
        cancel.clone().cancel();
        assert!(cancel.is_cancelled());
        assert_eq!(format!("{cancel:?}"), "Cancel(true)");
        futures::executor::block_on(cancel.cancelled());
        let never = std::future::pending::<Result<()>>();
        let error = futures::executor::block_on(cancel.unless(never)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }
}
