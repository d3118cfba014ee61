//! [`Transfer`]: what `move_file` and `copy_file` share.

use backend_core::ops::{Entry, FileKind, StatOptions};
use backend_core::{Error, ErrorKind, VPath};
use permissions::access::Intent;
use permissions::approval::Effect;
use permissions::{Access, Kind};

use super::failure;
use super::model_path::{ModelPath, refusal};
use crate::tool::Preview;
use crate::{Context, ToolError};

/// The source and destination of a move or copy.
pub(super) struct Transfer {
    tool: &'static str,
    pub(super) source: ModelPath,
    pub(super) destination: ModelPath,
}

impl Transfer {
    pub(super) fn new(
        context: &Context,
        tool: &'static str,
        source: &str,
        destination: &str,
    ) -> Result<Self, ToolError> {
        Ok(Self {
            tool,
            source: ModelPath::new(context, source)?,
            destination: ModelPath::new(context, destination)?,
        })
    }

    /// Returns the accesses of the call: a look at the source, then the operation.
    pub(super) fn accesses(
        &self,
        intent: fn(VPath, VPath) -> Intent,
        kind: Kind,
        bytes: Option<u64>,
    ) -> Vec<Access> {
        let (from, to) = (&self.source.path, &self.destination.path);
        let intent = intent(from.clone(), to.clone()).kind(kind).bytes(bytes);
        let look = Intent::ls(from.clone()).accesses();
        look.chain(intent.accesses()).collect()
    }

    /// Builds the preview for the approver. If the source is not a file, the call only
    /// stats it.
    pub(super) async fn preview(
        &self,
        unguarded: &Context,
        intent: fn(VPath, VPath) -> Intent,
        effect: fn(String, String) -> Effect,
    ) -> Preview {
        let (from, to) = (&self.source.path, &self.destination.path);
        match unguarded.backend.stat(from, StatOptions::default()).await {
            Ok(entry) if entry.is_file() => {
                let accesses = self.accesses(intent, Kind::File, entry.size);
                Preview::new(effect(from.to_string(), to.to_string())).with_accesses(accesses)
            }
            _ => Preview::default().with_accesses(Intent::ls(from.clone()).accesses()),
        }
    }

    pub(super) fn shown(&self) -> (&str, &str) {
        (&self.source.shown, &self.destination.shown)
    }

    /// Returns the file at the source. Anything else is not moved or copied.
    pub(super) async fn file(&self, context: &Context, verb: &str) -> Result<Entry, ToolError> {
        let stat = context
            .backend
            .stat(&self.source.path, StatOptions::default());
        let entry = stat.await.map_err(|error| self.explain(verb, error))?;
        let shown = &self.source.shown;
        match entry.kind {
            FileKind::File => Ok(entry),
            FileKind::Directory => Err(ToolError::fixable(format!(
                "Cannot {verb} directory: {shown}"
            ))),
            _ => Err(ToolError::fixable(format!("Not a file: {shown}"))),
        }
    }

    pub(super) fn exists(&self) -> ToolError {
        let shown = &self.destination.shown;
        ToolError::fixable(format!("Destination already exists: {shown}"))
    }

    pub(super) fn explain(&self, verb: &str, error: Error) -> ToolError {
        if let Some(refused) = refusal(self.tool, &error, &[&self.source, &self.destination]) {
            return refused;
        }
        let (source, destination) = self.shown();
        match error.kind() {
            ErrorKind::NotFound => ToolError::fixable(format!("Source file not found: {source}")),
            ErrorKind::AlreadyExists => self.exists(),
            ErrorKind::IsADirectory => {
                ToolError::fixable(format!("Cannot {verb} directory: {source}"))
            }
            _ => {
                let message = error.message();
                let text = format!("Cannot {verb} '{source}' to '{destination}': {message}");
                failure(ToolError::from(error).class(), text)
            }
        }
    }
}
