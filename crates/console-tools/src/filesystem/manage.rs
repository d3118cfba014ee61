//! `delete_file`, `move_file` and `copy_file`.

use async_trait::async_trait;
use backend_core::ops::{
    CopyOptions, DeleteOptions, Entry, FileKind, RenameOptions, ResolveOptions, StatOptions,
};
use backend_core::{Error, ErrorKind, VPath};
use permissions::access::Intent;
use permissions::approval::Effect;
use permissions::{Access, Kind};
use serde_json::Value;

use super::failure;
use super::place::{Place, refusal};
use super::read::other;
use crate::args::filesystem as args;
use crate::tool::{Annotations, Builtin, Preview};
use crate::{Context, Reply, ToolError, ToolResult};

pub(crate) struct DeleteFile;

#[async_trait]
impl Builtin for DeleteFile {
    type Args = args::DeleteFile;
    const NAME: &'static str = "delete_file";
    const ANNOTATIONS: Annotations = Annotations {
        read_only: false,
        destructive: true,
        idempotent: true,
        open_world: false,
    };

    fn output_schema() -> Option<Value> {
        None
    }

    fn words(args: &Self::Args) -> String {
        format!("Delete {}", args.path)
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let place = Place::new(context, &args.path)?;
        let shown = &place.shown;
        let deleted = context
            .backend
            .delete(&place.path, DeleteOptions::default());
        deleted.await.map_err(|error| {
            place
                .refusal(Self::NAME, &error)
                .unwrap_or_else(|| match error.kind() {
                    ErrorKind::NotFound | ErrorKind::NotADirectory => {
                        ToolError::fixable(format!("File not found: {shown}"))
                    }
                    // The working directory and its parents give `InvalidInput`.
                    ErrorKind::IsADirectory | ErrorKind::InvalidInput => ToolError::fixable(
                        format!("Cannot delete directory with delete_file: {shown}"),
                    ),
                    _ => other("delete", &place, error),
                })
        })?;
        Ok(Reply::text(format!("Deleted {shown}")))
    }
}

pub(crate) struct MoveFile;

#[async_trait]
impl Builtin for MoveFile {
    type Args = args::MoveFile;
    const NAME: &'static str = "move_file";
    const ANNOTATIONS: Annotations = Annotations {
        read_only: false,
        destructive: true,
        idempotent: false,
        open_world: false,
    };

    fn output_schema() -> Option<Value> {
        None
    }

    fn accesses(context: &Context, args: &Self::Args) -> Result<Vec<Access>, ToolError> {
        let pair = Pair::new(context, Self::NAME, &args.source, &args.destination)?;
        Ok(pair.accesses(Intent::rename, Kind::Directory, None))
    }

    fn words(args: &Self::Args) -> String {
        format!("Move {} to {}", args.source, args.destination)
    }

    async fn preview(context: &Context, args: &Self::Args) -> Preview {
        match Pair::new(context, Self::NAME, &args.source, &args.destination) {
            Ok(pair) => pair.preview(context, Intent::rename, Effect::rename).await,
            Err(_) => Preview::default(),
        }
    }

    fn refused(context: &Context, args: &Self::Args, error: Error) -> ToolError {
        match Pair::new(context, Self::NAME, &args.source, &args.destination) {
            Ok(pair) => pair.explain("move", error),
            Err(other) => other,
        }
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let pair = Pair::new(context, Self::NAME, &args.source, &args.destination)?;
        pair.file(context, "move").await?;
        let (from, to) = (&pair.source.path, &pair.destination.path);
        if from == to {
            return Err(pair.exists());
        }
        let moved = context.backend.rename(from, to, RenameOptions::default());
        moved.await.map_err(|error| pair.explain("move", error))?;
        let (source, destination) = pair.shown();
        Ok(Reply::text(format!("Moved {source} to {destination}")))
    }
}

pub(crate) struct CopyFile;

#[async_trait]
impl Builtin for CopyFile {
    type Args = args::CopyFile;
    const NAME: &'static str = "copy_file";
    const ANNOTATIONS: Annotations = Annotations {
        read_only: false,
        destructive: false,
        idempotent: false,
        open_world: false,
    };

    fn output_schema() -> Option<Value> {
        None
    }

    fn accesses(context: &Context, args: &Self::Args) -> Result<Vec<Access>, ToolError> {
        let pair = Pair::new(context, Self::NAME, &args.source, &args.destination)?;
        Ok(pair.accesses(Intent::copy, Kind::Directory, None))
    }

    fn words(args: &Self::Args) -> String {
        format!("Copy {} to {}", args.source, args.destination)
    }

    async fn preview(context: &Context, args: &Self::Args) -> Preview {
        match Pair::new(context, Self::NAME, &args.source, &args.destination) {
            Ok(pair) => pair.preview(context, Intent::copy, Effect::copy).await,
            Err(_) => Preview::default(),
        }
    }

    fn refused(context: &Context, args: &Self::Args, error: Error) -> ToolError {
        match Pair::new(context, Self::NAME, &args.source, &args.destination) {
            Ok(pair) => pair.explain("copy", error),
            Err(other) => other,
        }
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let mut pair = Pair::new(context, Self::NAME, &args.source, &args.destination)?;
        let backend = &context.backend;
        if pair.file(context, "copy").await?.link {
            // A link is copied as the file that it points to.
            let resolved = backend.resolve(&pair.source.path, ResolveOptions::default());
            pair.source.path = resolved
                .await
                .map_err(|error| pair.explain("copy", error))?;
        }
        let (from, to) = (&pair.source.path, &pair.destination.path);
        if from == to {
            return Err(pair.exists());
        }
        let copied = backend.copy(from, to, CopyOptions::default());
        copied.await.map_err(|error| pair.explain("copy", error))?;
        let (source, destination) = pair.shown();
        Ok(Reply::text(format!("Copied {source} to {destination}")))
    }
}

/// The source and destination of a move or copy.
struct Pair {
    tool: &'static str,
    source: Place,
    destination: Place,
}

impl Pair {
    fn new(
        context: &Context,
        tool: &'static str,
        source: &str,
        destination: &str,
    ) -> Result<Self, ToolError> {
        Ok(Self {
            tool,
            source: Place::new(context, source)?,
            destination: Place::new(context, destination)?,
        })
    }

    /// Returns the accesses of the call: a look at the source, then the operation.
    fn accesses(
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
    async fn preview(
        &self,
        bare: &Context,
        intent: fn(VPath, VPath) -> Intent,
        effect: fn(String, String) -> Effect,
    ) -> Preview {
        let (from, to) = (&self.source.path, &self.destination.path);
        match bare.backend.stat(from, StatOptions::default()).await {
            Ok(entry) if entry.is_file() => {
                let accesses = self.accesses(intent, Kind::File, entry.size);
                Preview::showing(effect(from.to_string(), to.to_string())).instead(accesses)
            }
            _ => Preview::default().instead(Intent::ls(from.clone()).accesses()),
        }
    }

    fn shown(&self) -> (&str, &str) {
        (&self.source.shown, &self.destination.shown)
    }

    /// Returns the file at the source. Anything else is not moved or copied.
    async fn file(&self, context: &Context, verb: &str) -> Result<Entry, ToolError> {
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

    fn exists(&self) -> ToolError {
        let shown = &self.destination.shown;
        ToolError::fixable(format!("Destination already exists: {shown}"))
    }

    fn explain(&self, verb: &str, error: Error) -> ToolError {
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
