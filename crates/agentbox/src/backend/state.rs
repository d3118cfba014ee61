//! `state[:FILE]`: files in memory, saved to a JSON document if one is named.

mod document;
mod saved;

use std::path::Path;
use std::sync::Arc;

use backend_core::Backend;
use backend_core::ops::StopMode;
use backend_state::{FILE_BYTES, StateBackend, TOTAL_BYTES};
use serde::Deserialize;

use self::document::Document;
use self::saved::SavedState;
use super::open_backend::OpenBackend;
use super::spec::BackendSpec;
use crate::exit::Failure;

/// The table `[state]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    max_file_bytes: Option<u64>,
    max_total_bytes: Option<u64>,
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
    let builder = StateBackend::builder()
        .max_file_bytes(max_file_bytes)
        .max_total_bytes(settings.max_total_bytes.unwrap_or(TOTAL_BYTES));
    let backend: Arc<dyn Backend> = match spec.argument.as_deref() {
        None => Arc::new(builder.build()),
        Some(path) => {
            let (document, builder) = Document::open(Path::new(path), builder)?;
            Arc::new(SavedState::new(builder.build(), document, max_file_bytes))
        }
    };
    Ok(OpenBackend::new(backend, Some(StopMode::Keep)))
}
