//! The input of a background shell.

use std::fmt;
use std::sync::Arc;

use backend_core::{Error, ErrorKind, Result};
use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Mutex;

use crate::log::WatchedLog;
use crate::task::{Controls, Stdin};

/// The input of a background shell.
pub(crate) struct ShellInput {
    log: Arc<WatchedLog>,
    /// `None` once closed.
    open: Mutex<Option<OpenInput>>,
}

struct OpenInput {
    stdin: Stdin,
    controls: Option<Arc<dyn Controls>>,
}

impl fmt::Debug for ShellInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShellInput").finish_non_exhaustive()
    }
}

impl ShellInput {
    pub(crate) fn new(
        log: &Arc<WatchedLog>,
        stdin: Option<Stdin>,
        controls: Option<Arc<dyn Controls>>,
    ) -> Self {
        let open = stdin.map(|stdin| OpenInput { stdin, controls });
        Self {
            log: Arc::clone(log),
            open: Mutex::new(open),
        }
    }

    /// Writes input; `None` closes it, or types the end-of-file character of a terminal.
    ///
    /// # Errors
    ///
    /// `Conflict` if the shell reads no more.
    pub(crate) async fn write(&self, input: Option<Bytes>) -> Result<()> {
        let writing = async {
            let mut place = self.open.lock().await;
            let open = place.as_mut();
            let open = open.ok_or_else(|| conflict("its standard input is closed"))?;
            let input = input.or_else(|| open.end_of_file());
            let written = open.write(input.as_deref()).await;
            if written.is_err() || input.is_none() {
                *place = None;
            }
            written.map_err(|error| conflict("it reads no more input").with_source(error))
        };
        tokio::select! {
            biased;
            () = self.log.ended() => Err(conflict("it has ended")),
            written = writing => written,
        }
    }

    /// Closes it for good.
    pub(crate) async fn close(&self) {
        *self.open.lock().await = None;
    }
}

impl OpenInput {
    /// Returns the end-of-file character of a terminal.
    fn end_of_file(&self) -> Option<Bytes> {
        let character = self.controls.as_ref()?.end_of_file()?;
        Some(Bytes::copy_from_slice(&[character]))
    }

    async fn write(&mut self, input: Option<&[u8]>) -> std::io::Result<()> {
        match input {
            Some(input) => {
                self.stdin.write_all(input).await?;
                self.stdin.flush().await
            }
            None => self.stdin.shutdown().await,
        }
    }
}

/// The error for a shell that can no longer be used in this way.
pub(crate) fn conflict(text: &str) -> Error {
    Error::new(
        ErrorKind::Conflict,
        format!("{text}; start another shell to go on"),
    )
}
