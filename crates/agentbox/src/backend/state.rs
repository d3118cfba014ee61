//! `state[:FILE]`: files in memory, saved to a JSON document if one is named.

mod document;
mod saved;

use std::path::Path;
use std::sync::Arc;

use backend_core::Backend;
use backend_state::{FILE_BYTES, StateBackend, TOTAL_BYTES};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Deserialize;

use self::document::Document;
use self::saved::SavedState;
use super::{Argument, BackendSpec, Kind, Opened};
use crate::exit::Failure;

pub(super) const KIND: Kind = Kind {
    name: "state",
    usage: "state[:FILE]",
    argument: Argument::File,
    keys: &["max_file_bytes", "max_total_bytes"],
    paths: &[],
    check,
    open,
};

/// The table `[state]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    max_file_bytes: u64,
    max_total_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_file_bytes: FILE_BYTES,
            max_total_bytes: TOTAL_BYTES,
        }
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

fn check(spec: &BackendSpec) -> Result<Vec<&'static str>, Failure> {
    settings(spec)?;
    Ok(vec![KIND.name])
}

fn open(spec: &BackendSpec) -> BoxFuture<'_, Result<Opened, Failure>> {
    async move {
        let settings = settings(spec)?;
        let builder = StateBackend::builder()
            .max_file_bytes(settings.max_file_bytes)
            .max_total_bytes(settings.max_total_bytes);
        let backend: Arc<dyn Backend> = match spec.argument.as_deref() {
            None => Arc::new(builder.build()),
            Some(path) => {
                let (document, builder) = Document::open(Path::new(path), builder)?;
                let limit = settings.max_file_bytes;
                Arc::new(SavedState::new(builder.build(), document, limit))
            }
        };
        Ok(Opened::new(backend))
    }
    .boxed()
}
