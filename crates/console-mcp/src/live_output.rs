//! [`LiveOutput`]: forwards a command's output to the client while the command runs.
//!
//! Output waits in a buffer of fixed size, and only one message is in flight at a time.
//! A client that reads slowly misses the middle of the output. Memory stays bounded,
//! and the command never waits for the client.

#![expect(
    deprecated,
    reason = "logging is how every client of today gets live output"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend_core::sync::lock;
use console_tools::Observer;
use console_tools::terminal::Renderer;
use rmcp::RoleServer;
use rmcp::model::{
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::Peer;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

/// Maximum number of bytes waiting to be sent.
const PENDING_BYTES: usize = 64 * 1024;

/// Minimum time between two messages. What ends sooner has its output in the reply.
const MESSAGE_INTERVAL: Duration = Duration::from_millis(150);

/// A silent command reports that it is still running after this interval.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// The longest time a reply waits for the message before it.
const LAST_MESSAGE_TIMEOUT: Duration = Duration::from_millis(200);

/// Longest line in a progress message, in characters.
const LINE_CHARS: usize = 200;

pub(crate) struct LiveOutput {
    peer: Peer<RoleServer>,
    token: Option<ProgressToken>,
    /// Whether output is sent as log messages.
    logs: bool,
    tool: String,
    /// The observer to attach to the call.
    pub(crate) buffer: Arc<OutputBuffer>,
}

/// Output that was not sent yet.
#[derive(Debug, Default)]
pub(crate) struct OutputBuffer {
    pending: Mutex<Pending>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    /// Number of bytes dropped from the middle.
    dropped: usize,
}

impl Pending {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let over = self.bytes.len().saturating_sub(PENDING_BYTES);
        if over > 0 {
            let half = PENDING_BYTES / 2;
            self.bytes.drain(half..half + over);
            self.dropped += over;
        }
    }

    /// Returns the text to show, rendered as a terminal would.
    fn render(self, renderer: &mut Renderer) -> String {
        let cut = match self.dropped {
            0 => self.bytes.len(),
            _ => self.bytes.len().min(PENDING_BYTES / 2),
        };
        let (head, tail) = self.bytes.split_at(cut);
        renderer.push(head);
        if self.dropped > 0 {
            renderer.push(format!("\n[... {} bytes are not shown ...]\n", self.dropped).as_bytes());
            renderer.push(tail);
        }
        renderer.drain()
    }
}

impl Observer for OutputBuffer {
    fn output(&self, bytes: &[u8]) {
        lock(&self.pending).push(bytes);
        self.more.notify_one();
    }
}

impl LiveOutput {
    /// Returns `None` if the client asked for neither progress nor logs.
    pub(crate) fn new(
        peer: Peer<RoleServer>,
        token: Option<ProgressToken>,
        logs: bool,
        tool: &str,
    ) -> Option<Self> {
        (token.is_some() || logs).then(|| Self {
            peer,
            token,
            logs,
            tool: tool.to_owned(),
            buffer: Arc::default(),
        })
    }

    /// Runs `call` and forwards its output until it is done.
    pub(crate) async fn run<T>(&self, call: impl Future<Output = T>) -> T {
        let (busy, mut idle) = watch::channel(false);
        let mut call = std::pin::pin!(call);
        let mut forwarding = std::pin::pin!(self.forward(&busy));
        let done = tokio::select! {
            biased;
            done = &mut call => done,
            () = &mut forwarding => call.await,
        };
        // No message about the call may follow its reply.
        if *idle.borrow() {
            let _ = timeout(LAST_MESSAGE_TIMEOUT, async {
                tokio::select! {
                    () = forwarding => {}
                    _ = idle.wait_for(|busy| !busy) => {}
                }
            })
            .await;
        }
        done
    }

    /// Sends output until the client is gone.
    async fn forward(&self, busy: &watch::Sender<bool>) {
        let begun = Instant::now();
        let mut renderer = Renderer::new();
        sleep(MESSAGE_INTERVAL).await;
        loop {
            let _ = timeout(KEEPALIVE_INTERVAL, self.buffer.more.notified()).await;
            let pending = std::mem::take(&mut *lock(&self.buffer.pending));
            let text = pending.render(&mut renderer);
            busy.send_replace(true);
            let sent = self.send(begun.elapsed(), text).await;
            busy.send_replace(false);
            if sent.is_none() {
                return;
            }
            sleep(MESSAGE_INTERVAL).await;
        }
    }

    async fn send(&self, after: Duration, text: String) -> Option<()> {
        if let Some(token) = &self.token {
            let mut progress = ProgressNotificationParam::new(token.clone(), after.as_secs_f64());
            progress.message = Some(match last_line(&text) {
                Some(line) => line,
                None => format!("{} has been running for {} s", self.tool, after.as_secs()),
            });
            self.peer.notify_progress(progress).await.ok()?;
        }
        if self.logs && !text.is_empty() {
            let message =
                LoggingMessageNotificationParam::new(LoggingLevel::Info, Value::from(text))
                    .with_logger(self.tool.clone());
            self.peer.notify_logging_message(message).await.ok()?;
        }
        Some(())
    }
}

/// Returns the last line that is not blank, cut to [`LINE_CHARS`].
fn last_line(text: &str) -> Option<String> {
    let mut lines = text.lines().rev().map(str::trim);
    let line = lines.find(|line| !line.is_empty())?;
    Some(line.chars().take(LINE_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_bounded_and_loses_its_middle() {
        let mut pending = Pending::default();
        pending.push(b"first\n");
        for _ in 0..1_000 {
            pending.push(&[b'x'; 1_000]);
            assert!(pending.bytes.len() <= PENDING_BYTES);
        }
        pending.push(b"\nlast");
        assert_eq!(pending.dropped + pending.bytes.len(), 1_000_011);
        let dropped = pending.dropped;
        let shown = pending.render(&mut Renderer::new());
        assert!(shown.starts_with("first\nxxx"), "{}", shown.len());
        assert!(shown.contains(&format!("[... {dropped} bytes are not shown ...]")));
        assert!(shown.ends_with("x\nlast"));
        assert_eq!(last_line(&shown).as_deref(), Some("last"));
    }

    #[test]
    fn last_lines() {
        assert_eq!(last_line("a\n b \n\n").as_deref(), Some("b"));
        assert_eq!(last_line(" \n"), None);
        assert_eq!(
            last_line(&"ü".repeat(500)).unwrap().chars().count(),
            LINE_CHARS
        );
    }
}
