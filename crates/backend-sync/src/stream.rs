//! [`SyncStream`]: a stream as a blocking iterator.

use std::fmt;

use backend_core::Result;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;

use crate::calls::Calls;
use crate::cancel::cancelled;
use crate::engine::Engine;

/// A blocking iterator over the items of a stream.
///
/// It ends with the stream, or after an engine failure or a cancellation, which is its
/// last item. Dropping it drops the stream on the current thread: a command that is
/// being followed ends.
pub struct SyncStream<T> {
    calls: Calls,
    /// `None` once the stream has ended.
    stream: Option<BoxStream<'static, Result<T>>>,
}

impl<T: Send + 'static> SyncStream<T> {
    pub(crate) fn new(calls: Calls, stream: BoxStream<'static, Result<T>>) -> Self {
        Self {
            calls,
            stream: Some(stream),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.calls.engine
    }

    /// Returns the remaining items as a stream, which ends with an error if the calls
    /// of this iterator are cancelled.
    pub(crate) fn into_stream(mut self) -> BoxStream<'static, Result<T>> {
        let Some(stream) = self.stream.take() else {
            return futures_util::stream::empty().boxed();
        };
        let Some(cancel) = self.calls.cancel.clone() else {
            return stream;
        };
        let until = cancel.clone();
        let end = futures_util::stream::once(async move { cancel.is_cancelled() });
        let end = end.filter_map(async |is_cancelled| is_cancelled.then(|| Err(cancelled())));
        stream
            .take_until(async move { until.cancelled().await })
            .chain(end)
            .boxed()
    }
}

impl<T: Send + 'static> Iterator for SyncStream<T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        let mut stream = self.stream.take()?;
        // The stream is moved there and back, because it may have to be polled on
        // another thread. If it does not come back, it was dropped there.
        let next = self.calls.run(async move {
            let item = stream.next().await;
            Ok((item, stream))
        });
        match next {
            Ok((Some(item), stream)) => {
                self.stream = Some(stream);
                Some(item)
            }
            Ok((None, stream)) => {
                self.calls.engine.enter(|| drop(stream));
                None
            }
            Err(error) => Some(Err(error)),
        }
    }
}

impl<T: Send + 'static> std::iter::FusedIterator for SyncStream<T> {}

impl<T> Drop for SyncStream<T> {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            self.calls.engine.enter(|| drop(stream));
        }
    }
}

impl<T> fmt::Debug for SyncStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncStream")
            .field("calls", &self.calls)
            .field("ended", &self.stream.is_none())
            .finish()
    }
}
