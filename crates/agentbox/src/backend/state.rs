//! `state[:FILE]`: files in memory, saved to a JSON document if one is named.

mod document;
mod memory;
mod saved;

use std::path::Path;
use std::sync::Arc;

use backend_core::ops::StopMode;
use backend_core::{Backend, Sandbox};
use backend_state::{FILE_BYTES, StateBackend, StateBuilder, TOTAL_BYTES};
use serde::Deserialize;
use sessions::{Factory, OpenRequest};

use self::document::Document;
use self::memory::MemorySandbox;
use self::saved::SavedState;
use super::open_backend::OpenBackend;
use super::spec::BackendSpec;
use crate::exit::Failure;

/// The table `[state]`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    max_file_bytes: Option<u64>,
    max_total_bytes: Option<u64>,
}

impl Settings {
    fn builder(self) -> StateBuilder {
        StateBackend::builder()
            .max_file_bytes(self.max_file_bytes.unwrap_or(FILE_BYTES))
            .max_total_bytes(self.max_total_bytes.unwrap_or(TOTAL_BYTES))
    }
}

/// Reads the table, and refuses an empty file name.
fn settings(spec: &BackendSpec) -> Result<Settings, Failure> {
    match spec.argument.as_deref() {
        Some("") => Err(Failure::usage(
            "state: names no file; write state:FILE, or state for memory alone",
        )),
        _ => spec.settings(),
    }
}

pub(super) fn check(spec: &BackendSpec) -> Result<(), Failure> {
    settings(spec).map(drop)
}

pub(super) fn open(spec: &BackendSpec) -> Result<OpenBackend, Failure> {
    let settings = settings(spec)?;
    let max_file_bytes = settings.max_file_bytes.unwrap_or(FILE_BYTES);
    let builder = settings.builder();
    let backend: Arc<dyn Backend> = match spec.argument.as_deref() {
        None => Arc::new(builder.build()),
        Some(path) => {
            let (document, builder) = Document::open(Path::new(path), builder)?;
            Arc::new(SavedState::new(builder.build(), document, max_file_bytes))
        }
    };
    Ok(OpenBackend::new(backend, Some(StopMode::Keep)))
}

/// Returns what creates the files of sessions, which end with them.
pub(super) fn session_factory(
    spec: &BackendSpec,
    root: Option<&Path>,
) -> Result<impl Factory, Failure> {
    let settings = settings(spec)?;
    if spec.argument.is_some() {
        return Err(Failure::usage(
            "state:FILE is one document for all; write --backend state for sessions in memory, or \
             leave out --workspaces and names of tokens",
        ));
    }
    if root.is_some() {
        return Err(Failure::usage(
            "sessions of state are in memory; leave out --workspaces, or use another backend",
        ));
    }
    Ok(move |_: OpenRequest| async move {
        let sandbox: Arc<dyn Sandbox> = Arc::new(MemorySandbox::new(settings.builder().build()));
        Ok::<_, backend_core::Error>(sandbox)
    })
}
