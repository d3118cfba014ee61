//! A backend that was opened, and what becomes of it when the program ends.

use std::sync::Arc;

use backend_core::Backend;
use backend_core::ops::StopMode;
use permissions::mounts::MountConfig;

/// A backend that was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) backend: Arc<dyn Backend>,
    /// What may be done in it, if it is made of mounts.
    pub(crate) mounts: Option<MountConfig>,
    /// The same with somebody before it who judges that.
    guarded: Option<Arc<dyn Backend>>,
    ends: Ends,
}

impl Opened {
    /// A backend whose commands end with the program, and whose files stay.
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Self {
        Self::ending(backend, End::Stop(StopMode::Keep))
    }

    /// A backend with an end of its own.
    pub(super) fn ending(backend: Arc<dyn Backend>, end: End) -> Self {
        let ends = Ends(vec![(Arc::clone(&backend), end)]);
        Self {
            backend,
            mounts: None,
            guarded: None,
            ends,
        }
    }

    /// Files of mounts, and the same with a guard.
    pub(super) fn of_mounts(
        backend: Arc<dyn Backend>,
        mounts: MountConfig,
        guarded: Arc<dyn Backend>,
    ) -> Self {
        Self {
            mounts: Some(mounts),
            guarded: Some(guarded),
            ..Self::new(backend)
        }
    }

    /// A backend that is made of others: each of them has its own end.
    pub(super) fn made_of(backend: Arc<dyn Backend>, parts: Vec<Ends>) -> Self {
        let ends = parts.into_iter().flat_map(|ends| ends.0);
        Self {
            backend,
            mounts: None,
            guarded: None,
            ends: Ends(ends.collect()),
        }
    }

    /// The backend as a part of another: what may be done in it is judged here, and
    /// nobody is asked.
    pub(super) fn guarded(&self) -> Arc<dyn Backend> {
        Arc::clone(self.guarded.as_ref().unwrap_or(&self.backend))
    }

    /// The ends, for somebody who lets the backend go earlier than this.
    pub(crate) fn take_ends(&mut self) -> Ends {
        std::mem::take(&mut self.ends)
    }

    /// Ends every command and waits until they are gone.
    pub(crate) async fn stop(&self) {
        self.ends.stop().await;
    }
}

/// What becomes of a sandbox when the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It is stopped.
    Stop(StopMode),
    /// It belongs to somebody else and goes on.
    Leave,
}

/// The ends of all parts of a backend. A part that is let go before is still
/// ended as it should be, which takes longer than a program has when it ends.
#[derive(Debug, Default)]
pub(crate) struct Ends(Vec<(Arc<dyn Backend>, End)>);

impl Ends {
    /// Whether somebody else still has any of them.
    pub(crate) fn is_used(&self) -> bool {
        let mut parts = self.0.iter();
        parts.any(|(backend, _)| Arc::strong_count(backend) > 1)
    }

    /// Ends all of them, at once.
    pub(crate) async fn stop(&self) {
        let left = self.0.iter().filter_map(|(backend, end)| match end {
            End::Stop(mode) => Some((backend, *mode)),
            End::Leave => None,
        });
        let stops = left.map(|(backend, mode)| async move {
            if let Some(sandbox) = backend.as_sandbox()
                && let Err(error) = sandbox.stop(mode).await
            {
                tracing::warn!(%error, "the sandbox could not be stopped");
            }
        });
        futures::future::join_all(stops).await;
    }
}
