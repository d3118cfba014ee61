//! [`Latency`]: the time that everything a client sends takes to arrive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, Join, WriteHalf,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The size of the parts in which bytes are moved.
const PART_BYTES: usize = 64 * 1024;

/// The number of parts on their way.
const MAX_PARTS: usize = 64;

/// A time that can be changed while connections are open.
#[derive(Debug, Clone, Default)]
pub(crate) struct Latency(Arc<AtomicU64>);

/// A connection whose input is late.
pub(crate) type Late<S> = Join<DuplexStream, WriteHalf<S>>;

impl Latency {
    pub(crate) fn set(&self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        // Nothing else is ordered by it.
        self.0.store(micros, Ordering::Relaxed);
    }

    fn get(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }

    /// Waits as long as a request is on its way.
    pub(crate) async fn wait(&self) {
        let latency = self.get();
        if !latency.is_zero() {
            sleep(latency).await;
        }
    }

    /// Returns a connection whose input arrives later by the latency, and a guard that is
    /// kept with it. Parts do not wait for each other.
    pub(crate) fn late<S>(&self, connection: S) -> (Late<S>, DropGuard)
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (mut reader, writer) = tokio::io::split(connection);
        let (mut arriving, arrived) = tokio::io::duplex(PART_BYTES);
        let (sender, mut receiver) = mpsc::channel::<(Instant, Bytes)>(MAX_PARTS);
        let latency = self.clone();
        let open = CancellationToken::new();
        tokio::spawn(open.clone().run_until_cancelled_owned(async move {
            let mut buffer = vec![0; PART_BYTES];
            while let Ok(n_read @ 1..) = reader.read(&mut buffer).await {
                let part = Bytes::copy_from_slice(&buffer[..n_read]);
                if sender
                    .send((Instant::now() + latency.get(), part))
                    .await
                    .is_err()
                {
                    break;
                }
            }
        }));
        tokio::spawn(open.clone().run_until_cancelled_owned(async move {
            while let Some((due, part)) = receiver.recv().await {
                sleep_until(due).await;
                if arriving.write_all(&part).await.is_err() {
                    break;
                }
            }
        }));
        (tokio::io::join(arrived, writer), open.drop_guard())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn parts_arrive_late_but_together() {
        let latency = Latency::default();
        latency.set(Duration::from_millis(50));
        let (mut client, server) = tokio::io::duplex(64);
        let (mut server, _guard) = latency.late(server);
        let start = Instant::now();
        for part in [b"a", b"b", b"c"] {
            client.write_all(part).await.unwrap();
            sleep(Duration::from_millis(1)).await;
        }
        drop(client);
        let mut all = String::new();
        server.read_to_string(&mut all).await.unwrap();
        assert_eq!(all, "abc");
        let took = start.elapsed().as_millis();
        assert!((52..60).contains(&took), "{took} ms");
    }
}
