//! [`Live`]: the output of the commands of running calls, on its way to the user.
//!
//! It is shown a few times a second, as a terminal would show it. What a command prints
//! faster than that loses its middle: memory is bounded, and no command waits for the user.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use console_tools::Observer;
use console_tools::terminal::Renderer;
use tokio::sync::Notify;

/// Minimum time between two events. What ends sooner has its output in the reply.
const INTERVAL: Duration = Duration::from_millis(150);

/// Bytes of one call that wait to be shown: half from the beginning, half from the end.
const PENDING_BYTES: usize = 16 * 1024;

/// The output of calls that are made at the same time.
pub(super) struct Live {
    calls: Vec<Arc<Output>>,
    more: Arc<Notify>,
}

#[derive(Debug)]
struct Output {
    pending: Mutex<Pending>,
    more: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Pending {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Bytes between them that are lost.
    lost: usize,
    renderer: Renderer,
    /// Whether some of it was shown.
    is_shown: bool,
}

impl Observer for Output {
    fn output(&self, bytes: &[u8]) {
        self.lock().push(bytes);
        self.more.notify_one();
    }
}

impl Output {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    fn push(&mut self, bytes: &[u8]) {
        const HALF: usize = PENDING_BYTES / 2;
        let room = HALF - self.head.len();
        let (first, rest) = bytes.split_at(bytes.len().min(room));
        self.head.extend_from_slice(first);
        let kept = &rest[rest.len().saturating_sub(HALF)..];
        self.tail.extend_from_slice(kept);
        let over = self.tail.len().saturating_sub(HALF);
        self.tail.drain(..over);
        self.lost += over + rest.len() - kept.len();
    }

    /// Takes what is there, as a terminal would show it.
    fn take(&mut self) -> String {
        self.renderer.push(&std::mem::take(&mut self.head));
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            let gap = format!("\n[... {lost} bytes are not shown ...]\n");
            self.renderer.push(gap.as_bytes());
        }
        self.renderer.push(&std::mem::take(&mut self.tail));
        self.renderer.drain()
    }
}

impl Live {
    pub(super) fn of(calls: usize) -> Self {
        let more = Arc::new(Notify::new());
        let output = || Output {
            pending: Mutex::default(),
            more: Arc::clone(&more),
        };
        let calls = (0..calls).map(|_| Arc::new(output())).collect();
        Self { calls, more }
    }

    pub(super) fn observer(&self, call: usize) -> Arc<dyn Observer> {
        Arc::clone(&self.calls[call]) as _
    }

    /// Takes the rest of the output of a call that was answered, to be shown before the reply.
    /// If nothing was shown yet and the reply has it all, there is none.
    pub(super) fn rest(&self, call: usize, is_in_reply: bool) -> String {
        let mut pending = self.calls[call].lock();
        let rest = pending.take();
        match pending.is_shown || !is_in_reply {
            true => rest,
            false => String::new(),
        }
    }

    /// Waits until there is more to show, and it is time for it.
    pub(super) async fn more(&self) {
        tokio::time::sleep(INTERVAL).await;
        self.more.notified().await;
    }

    /// Takes the output of each call that runs.
    pub(super) fn take(&self) -> Vec<(usize, String)> {
        let calls = self.calls.iter().enumerate();
        let taken = calls.filter_map(|(at, call)| {
            let mut pending = call.lock();
            let text = pending.take();
            pending.is_shown |= !text.is_empty();
            (!text.is_empty()).then_some((at, text))
        });
        taken.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn output_is_shown_in_order_until_the_call_ends() {
        let live = Live::of(2);
        let [one, two] = [0, 1].map(|at| live.observer(at));
        one.output(b"caf\xc3");
        two.output(b"\x1b[31mred\x1b[0m");
        live.more().await;
        let shown = [(0, "caf".to_owned()), (1, "red".to_owned())];
        assert_eq!(live.take(), shown);
        one.output(b"\xa9\n");
        live.more().await;
        assert_eq!(live.take(), [(0, "\u{e9}\n".to_owned())]);
        two.output(b"rest");
        assert_eq!(live.rest(1, true), "rest");
    }

    #[test]
    fn output_that_is_in_the_reply_is_not_shown_before_it() {
        for (is_in_reply, expected) in [(true, ""), (false, "quick")] {
            let live = Live::of(1);
            live.observer(0).output(b"quick");
            assert_eq!(live.rest(0, is_in_reply), expected);
            assert!(live.take().is_empty());
        }
    }

    #[test]
    fn what_waits_is_bounded_and_keeps_its_ends() {
        let mut pending = Pending::default();
        pending.push(b"first\n");
        for length in [1, 1_000, PENDING_BYTES, 3 * PENDING_BYTES] {
            pending.push(&vec![b'x'; length]);
            assert!(pending.head.len() + pending.tail.len() <= PENDING_BYTES);
        }
        pending.push(b"\nlast");
        let shown = pending.take();
        assert!(shown.starts_with("first\nxxx"), "{shown}");
        let lost = 6 + 1_001 + 4 * PENDING_BYTES + 5 - PENDING_BYTES;
        let gap = format!("[... {lost} bytes are not shown ...]");
        assert!(shown.contains(&gap), "{gap}");
        assert!(shown.ends_with("x\nlast"));
        assert_eq!(pending.take(), "");
    }
}
