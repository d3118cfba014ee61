//! [`Meter`]: bytes in use against a quota.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use backend_core::{Error, Result};
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _};

use super::blocking::blocking;
use crate::error::QuotaError;

/// The time for which a measurement holds, at least.
const FRESH: Duration = Duration::from_secs(2);

/// A measurement also holds for this many times as long as it took, so that measuring a
/// large tree does not become the main work.
const COSTS: u32 = 20;

type Measure = Arc<dyn Fn() -> Result<u64> + Send + Sync>;

/// Bytes in use against a quota. They are measured now and then, and what is written
/// through the meter is added meanwhile.
pub(super) struct Meter {
    limit: u64,
    measure: Measure,
    known: Mutex<Option<Known>>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    used: u64,
    until: Instant,
}

impl Meter {
    pub(super) fn new(
        limit: u64,
        measure: impl Fn() -> Result<u64> + Send + Sync + 'static,
    ) -> Self {
        Self {
            limit,
            measure: Arc::new(measure),
            known: Mutex::new(None),
        }
    }

    /// Takes `bytes` of what is left.
    ///
    /// # Errors
    ///
    /// `TooLarge` with a [`QuotaError`] if less is left; those of the measurement.
    pub(super) async fn admit(&self, bytes: u64) -> Result<()> {
        let fits = |used: u64| used.saturating_add(bytes) <= self.limit;
        let used = match self.recent() {
            Some(used) if fits(used) => used,
            // Something may have been deleted since.
            _ => self.measured().await?,
        };
        if !fits(used) {
            return Err(self.exceeded(used));
        }
        if let Some(known) = &mut *self.known() {
            known.used = known.used.saturating_add(bytes);
        }
        Ok(())
    }

    /// Fails the stream when it brings more than is left, and `replaced` bytes.
    ///
    /// # Errors
    ///
    /// As [`admit`](Self::admit).
    pub(super) async fn limit_stream(
        &self,
        stream: BoxStream<'static, Result<Bytes>>,
        replaced: u64,
    ) -> Result<BoxStream<'static, Result<Bytes>>> {
        let (limit, used) = (self.limit, self.measured().await?);
        let left = limit.saturating_sub(used).saturating_add(replaced);
        let mut arrived = 0_u64;
        let limited = stream.map(move |piece| {
            let piece = piece?;
            arrived = arrived.saturating_add(piece.len() as u64);
            if arrived > left {
                return Err(QuotaError::new(used, limit).into());
            }
            Ok(piece)
        });
        Ok(limited.boxed())
    }

    /// Makes the next call measure, because something is written that is not counted.
    pub(super) fn forget(&self) {
        *self.known() = None;
    }

    fn recent(&self) -> Option<u64> {
        let known = (*self.known())?;
        (Instant::now() < known.until).then_some(known.used)
    }

    async fn measured(&self) -> Result<u64> {
        let measure = Arc::clone(&self.measure);
        let begun = Instant::now();
        let used = blocking(move || measure()).await?;
        let ended = Instant::now();
        let holds = FRESH.max((ended - begun).saturating_mul(COSTS));
        *self.known() = Some(Known {
            used,
            until: ended + holds,
        });
        Ok(used)
    }

    fn exceeded(&self, used: u64) -> Error {
        QuotaError::new(used, self.limit).into()
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Option<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter")
            .field("limit", &self.limit)
            .field("known", &self.known())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[tokio::test]
    async fn what_is_admitted_counts_and_what_is_deleted_is_found() {
        let stored = Arc::new(AtomicU64::new(60));
        let source = Arc::clone(&stored);
        let meter = Meter::new(100, move || Ok(source.load(Ordering::SeqCst)));
        meter.admit(30).await.unwrap();
        stored.store(90, Ordering::SeqCst);
        let error = meter.admit(20).await.unwrap_err();
        let quota = QuotaError::of(&error).unwrap();
        assert_eq!((quota.used, quota.limit), (90, 100));
        stored.store(10, Ordering::SeqCst);
        meter.admit(20).await.unwrap();
    }

    #[tokio::test]
    async fn a_stream_ends_where_the_quota_does() {
        let meter = Meter::new(10, || Ok(4));
        let piece = |text: &'static str| Ok(Bytes::from_static(text.as_bytes()));
        let pieces = || futures_util::stream::iter(["12345"; 2].map(piece)).boxed();
        let mut limited = meter.limit_stream(pieces(), 0).await.unwrap();
        assert!(limited.next().await.unwrap().is_ok());
        assert!(limited.next().await.unwrap().is_err());
        let limited = meter.limit_stream(pieces(), 4).await.unwrap();
        assert!(limited.all(|piece| async move { piece.is_ok() }).await);
    }
}
