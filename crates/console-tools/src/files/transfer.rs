//! [`Transfer`]: the common part of `move_file` and `copy_file`, in both dialects.

use backend_core::ops::{Entry, FileKind, StatOptions};
use backend_core::{Error, ErrorKind, VPath};
use permissions::access::Intent;
use permissions::approval::Effect;
use permissions::tool::Tool;
use permissions::{Access, Kind};

use super::model_path::{ModelPath, refusal};
use super::output::TransferOutput;
use crate::context::Context;
use crate::reply::{Reply, ToolError, fixable};
use crate::tool::Preview;

/// The source and destination as the model wrote them.
type Ends<'a> = (&'a str, &'a str);

pub(super) struct Transfer {
    pub(super) source: ModelPath,
    pub(super) destination: ModelPath,
}

impl Transfer {
    pub(super) fn console(context: &Context, (from, to): Ends<'_>) -> Result<Self, ToolError> {
        Ok(Self {
            source: ModelPath::console(context, "source", from)?,
            destination: ModelPath::console(context, "destination", to)?,
        })
    }

    pub(super) fn filesystem(context: &Context, (from, to): Ends<'_>) -> Result<Self, ToolError> {
        Ok(Self {
            source: ModelPath::filesystem(context, from)?,
            destination: ModelPath::filesystem(context, to)?,
        })
    }

    pub(super) fn paths(&self) -> (&VPath, &VPath) {
        (&self.source.path, &self.destination.path)
    }

    pub(super) fn reply(&self, verb: &str) -> Reply {
        let (from, to) = (&self.source.shown, &self.destination.shown);
        Reply::text(format!("{verb} {from} to {to}"))
    }

    pub(super) fn output(&self) -> TransferOutput {
        TransferOutput {
            source: self.source.path.as_str().to_owned(),
            destination: self.destination.path.as_str().to_owned(),
        }
    }

    /// Converts an error, in the words of the console tools.
    pub(super) async fn explain(&self, context: &Context, error: Error) -> ToolError {
        let (from, to) = (&self.source, &self.destination);
        match error.kind() {
            ErrorKind::AlreadyExists => {
                if is_directory(context, to).await {
                    let name = from.path.file_name().unwrap_or("name");
                    let shown = to.shown.trim_end_matches('/');
                    fixable!(
                        "'{shown}' is a directory; give the whole new path, such as \
                         '{shown}/{name}'"
                    )
                } else if is_directory(context, from).await {
                    to.explain(error)
                } else {
                    fixable!(
                        "'{}' exists already; set overwrite to replace it, or choose another \
                         destination",
                        to.shown
                    )
                }
            }
            ErrorKind::NotADirectory => to.explain(error),
            _ => from.explain(error),
        }
    }

    /// Returns the error of the `filesystem` profile, which replaces nothing.
    pub(super) fn destination_exists(&self) -> ToolError {
        let shown = &self.destination.shown;
        fixable!("Destination already exists: {shown}")
    }
}

async fn is_directory(context: &Context, target: &ModelPath) -> bool {
    let backend = &context.non_interactive;
    let found = backend.stat(&target.path, StatOptions::default()).await;
    found.is_ok_and(|entry| entry.is_dir())
}

/// A tool of the `filesystem` profile that moves or copies. Unlike the console's, it
/// accepts only files, and therefore looks at the source first.
pub(super) struct FilesystemTransfer {
    pub(super) tool: Tool,
    pub(super) verb: &'static str,
    pub(super) intent: fn(VPath, VPath) -> Intent,
    pub(super) effect: fn(String, String) -> Effect,
}

impl FilesystemTransfer {
    /// Returns the accesses of the call: a look at the source, then the operation.
    pub(super) fn accesses(&self, at: &Context, ends: Ends<'_>) -> Result<Vec<Access>, ToolError> {
        let transfer = Transfer::filesystem(at, ends)?;
        Ok(self.accesses_of(&transfer, Kind::Directory, None))
    }

    fn accesses_of(&self, transfer: &Transfer, kind: Kind, bytes: Option<u64>) -> Vec<Access> {
        let (from, to) = transfer.paths();
        let intent = (self.intent)(from.clone(), to.clone());
        let intent = intent.kind(kind).bytes(bytes);
        let look = Intent::ls(from.clone()).accesses();
        look.chain(intent.accesses()).collect()
    }

    /// Builds the preview for the approver. A source that is not a file is only looked at.
    pub(super) async fn preview(&self, unguarded: &Context, ends: Ends<'_>) -> Preview {
        let Ok(transfer) = Transfer::filesystem(unguarded, ends) else {
            return Preview::default();
        };
        let (from, to) = transfer.paths();
        match unguarded.backend.stat(from, StatOptions::default()).await {
            Ok(entry) if entry.is_file() => {
                let accesses = self.accesses_of(&transfer, Kind::File, entry.size);
                let effect = (self.effect)(from.to_string(), to.to_string());
                Preview::new(effect).with_accesses(accesses)
            }
            _ => Preview::default().with_accesses(Intent::ls(from.clone()).accesses()),
        }
    }

    /// Returns the file at the source. Anything else is not moved or copied.
    pub(super) async fn check_source(
        &self,
        context: &Context,
        transfer: &Transfer,
    ) -> Result<Entry, ToolError> {
        let options = StatOptions::default();
        let stat = context.backend.stat(&transfer.source.path, options).await;
        let entry = stat.map_err(|error| self.explain(transfer, error))?;
        match entry.kind {
            FileKind::File => Ok(entry),
            FileKind::Directory => Err(self.is_a_directory(transfer)),
            _ => Err(fixable!("Not a file: {}", transfer.source.shown)),
        }
    }

    fn is_a_directory(&self, transfer: &Transfer) -> ToolError {
        let (verb, shown) = (self.verb, &transfer.source.shown);
        fixable!("Cannot {verb} directory: {shown}")
    }

    pub(super) fn explain(&self, transfer: &Transfer, error: Error) -> ToolError {
        let (source, destination) = (&transfer.source, &transfer.destination);
        if let Some(refused) = refusal(self.tool, &error, &[source, destination]) {
            return refused;
        }
        let (verb, source, destination) = (self.verb, &source.shown, &destination.shown);
        match error.kind() {
            ErrorKind::NotFound => fixable!("Source file not found: {source}"),
            ErrorKind::AlreadyExists => transfer.destination_exists(),
            ErrorKind::IsADirectory => self.is_a_directory(transfer),
            _ => {
                let message = error.message();
                let text = format!("Cannot {verb} '{source}' to '{destination}': {message}");
                ToolError::from(error).reworded(text)
            }
        }
    }

    pub(super) fn explain_refusal(&self, at: &Context, ends: Ends<'_>, error: Error) -> ToolError {
        Transfer::filesystem(at, ends)
            .map_or_else(|other| other, |transfer| self.explain(&transfer, error))
    }
}
