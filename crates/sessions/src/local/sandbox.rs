//! [`LocalSandbox`]: the sandbox of a session on its directory.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use backend_core::ops::{Content, StatOptions, StopMode, WriteOptions, WriteOutcome};
use backend_core::{Backend, Error, Operation, Result, Sandbox, VPath, delegate};
use backend_local::{Commands, LocalBackend};

use super::blocking::from_io;
use super::measure::measure;
use super::meter::Meter;
use super::place::{InUse, Place};
use crate::error::purged;

/// The backend's name in messages.
const NAME: &str = "local";

/// The sandbox of a session on its directory. While it is in use, so is the session; when
/// it stops, others may delete the session.
#[derive(Debug)]
pub(super) struct LocalSandbox {
    backend: LocalBackend,
    place: Place,
    /// The directory that `backend` has open.
    identity: Option<(u64, u64)>,
    in_use: Mutex<Option<InUse>>,
    meter: Option<Meter>,
}

impl LocalSandbox {
    /// Opens the files of a session that this process uses.
    pub(super) fn open(
        place: Place,
        in_use: InUse,
        commands: Commands,
        quota: Option<u64>,
    ) -> Result<Self> {
        let backend = place.with_files(|files| {
            // The path by which commands know the directory.
            let path = std::fs::canonicalize(files).map_err(from_io)?;
            let builder = LocalBackend::builder(path);
            builder.enable_execute(true).commands(commands).open()
        })?;
        let meter = quota.map(|limit| {
            let place = place.clone();
            Meter::new(limit, move || place.with_files(measure))
        });
        Ok(Self {
            backend,
            identity: place.identity(),
            in_use: Mutex::new(Some(in_use)),
            place,
            meter,
        })
    }

    /// Whether this process uses the session through this sandbox.
    pub(super) fn is_in_use(&self) -> bool {
        self.in_use().is_some()
    }

    /// Takes a request of another process to end the session, if there is a new one since
    /// this process uses it.
    pub(super) fn take_release_request(&self) -> bool {
        let asked = self.place.release_requested();
        let mut in_use = self.in_use();
        let asked = in_use.as_mut().zip(asked);
        asked.is_some_and(|(used, at)| used.take_request(at))
    }

    /// Whether the session's files are still those that this sandbox has open.
    pub(super) fn is_current(&self) -> bool {
        self.identity == self.place.identity()
    }

    fn in_use(&self) -> MutexGuard<'_, Option<InUse>> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the files, and uses the session again if the sandbox was stopped.
    fn ready(&self) -> Result<&LocalBackend> {
        let mut in_use = self.in_use();
        if in_use.is_none() {
            // A few calls on a directory that is in the cache: not worth a thread.
            let entered = self.place.enter()?;
            let entered = entered.filter(|_| self.is_current());
            *in_use = Some(entered.ok_or_else(|| purged(&self.place.id))?);
        }
        Ok(&self.backend)
    }

    /// Does the same for a call that may write, which needs some room.
    async fn room(&self) -> Result<&LocalBackend> {
        let backend = self.ready()?;
        if let Some(meter) = &self.meter {
            meter.admit(1).await?;
            // How much it writes is not known.
            meter.forget();
        }
        Ok(backend)
    }
}

#[async_trait]
impl Backend for LocalSandbox {
    delegate! { |self| self.backend => info, working_dir }

    delegate! {
        |self| self.ready()? => resolve, stat, ls, read, read_text, create_dir, delete, rename,
        glob, grep, watch
    }

    delegate! { |self| self.room().await? => edit, copy }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        Some(self)
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        let backend = self.ready()?;
        let Some(meter) = &self.meter else {
            return backend.write(path, content, options).await;
        };
        let there = backend.stat(path, StatOptions::default()).await;
        let replaced = there.ok().and_then(|entry| entry.size).unwrap_or_default();
        let counted = match content {
            Content::Bytes(bytes) => {
                let more = (bytes.len() as u64).saturating_sub(replaced);
                meter.admit(more).await.map(|()| Content::Bytes(bytes))
            }
            Content::Stream(stream) => {
                let limited = meter.limit_stream(stream, replaced).await;
                // How much it brings is not known yet.
                meter.forget();
                limited.map(Content::Stream)
            }
        };
        let content = counted.map_err(Error::context(NAME, Operation::Write, path))?;
        backend.write(path, content, options).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Sandbox for LocalSandbox {
    delegate! { |self| self.backend => last_activity, command_names, shell_list }

    delegate! {
        |self| self.ready()? => trace, shell_read, shell_write, shell_kill, connect, shell_attach,
        shell_resize, shell_signal
    }

    delegate! { |self| self.room().await? => execute, stream, shell_start }

    fn id(&self) -> String {
        self.place.id.to_string()
    }

    async fn start(&self) -> Result<()> {
        self.ready()?.start().await
    }

    async fn stop(&self, mode: StopMode) -> Result<()> {
        self.backend.stop(mode).await?;
        drop(self.in_use().take());
        Ok(())
    }

    async fn is_alive(&self) -> Result<bool> {
        Ok(self.is_in_use() && self.backend.is_alive().await?)
    }
}
