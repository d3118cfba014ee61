//! Ctrl-C and the other signals that want this to end, and the state in which the
//! terminal is left.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc;

use crate::system::Stops;
pub(crate) use crate::system::Terminal;

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C: stop what is being done.
    Interrupt,
    /// Leave, with this exit code.
    Leave(u8),
}

/// Exit code after Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// Hears signals. The second Ctrl-C in a row ends the program at once, whatever
/// it is doing.
#[derive(Debug)]
pub(crate) struct Signals {
    heard: mpsc::Receiver<Signal>,
    armed: Arc<AtomicBool>,
}

impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    ///
    /// If the system lets nobody listen.
    pub(crate) fn listen(terminal: Terminal) -> io::Result<Self> {
        let mut stops = Stops::listen(true)?;
        let (tell, heard) = mpsc::channel(1);
        let armed = Arc::new(AtomicBool::new(false));
        let again = Arc::clone(&armed);
        tokio::spawn(async move {
            loop {
                let code = stops.next().await;
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
        Ok(Self { heard, armed })
    }

    /// The next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        match self.heard.recv().await {
            Some(signal) => signal,
            // The listener is never gone before us.
            None => std::future::pending().await,
        }
    }

    /// A Ctrl-C that was typed at the prompt; whether it is the second in a row.
    pub(crate) fn typed(&self) -> bool {
        self.armed.swap(true, Ordering::AcqRel)
    }

    /// Set from a Ctrl-C on, until something else is typed.
    pub(crate) fn armed(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.armed)
    }

    /// Something else was typed.
    pub(crate) fn calm(&self) {
        self.armed.store(false, Ordering::Release);
    }
}
