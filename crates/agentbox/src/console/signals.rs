//! Ctrl-C and other signals that end the program.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc;

use crate::system::{StopSignals, TerminalState};

/// The request of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C: cancel the current call.
    Interrupt,
    /// Leave with this exit code.
    Leave(u8),
}

/// Exit code after Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// Receives signals. The second Ctrl-C in a row ends the program at once.
#[derive(Debug)]
pub(crate) struct Signals {
    heard: mpsc::Receiver<Signal>,
    /// Set from a Ctrl-C until other input.
    pub(crate) interrupted: Arc<AtomicBool>,
}

impl Signals {
    pub(crate) fn listen(terminal: TerminalState) -> io::Result<Self> {
        let mut signals = StopSignals::listen(true)?;
        let (tell, heard) = mpsc::channel(1);
        let interrupted = Arc::new(AtomicBool::new(false));
        let again = Arc::clone(&interrupted);
        tokio::spawn(async move {
            loop {
                let code = signals.next().await;
                let signal = match code {
                    INTERRUPTED => Signal::Interrupt,
                    code => Signal::Leave(code),
                };
                let second = signal == Signal::Interrupt && again.swap(true, Ordering::AcqRel);
                if second || tell.try_send(signal).is_err() {
                    terminal.restore();
                    std::process::exit(i32::from(code));
                }
            }
        });
        Ok(Self { heard, interrupted })
    }

    pub(crate) async fn next(&mut self) -> Signal {
        match self.heard.recv().await {
            Some(signal) => signal,
            // The listener lives as long as the program.
            None => std::future::pending().await,
        }
    }

    /// Records a Ctrl-C at the prompt. Returns `true` for the second in a row.
    pub(crate) fn record_interrupt(&self) -> bool {
        self.interrupted.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn reset(&self) {
        self.interrupted.store(false, Ordering::Release);
    }
}
