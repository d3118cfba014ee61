//! [`Transfer`]: what `move_file` and `copy_file` share.

use backend_core::ops::StatOptions;
use backend_core::{Error, ErrorKind};

use super::ModelPath;
use super::output::{TransferOutput, value};
use crate::{Context, Reply, ToolError};

/// The source and destination of a move or copy.
pub(super) struct Transfer {
    pub(super) source: ModelPath,
    pub(super) destination: ModelPath,
}

impl Transfer {
    pub(super) fn new(
        context: &Context,
        source: &str,
        destination: &str,
    ) -> Result<Self, ToolError> {
        Ok(Self {
            source: ModelPath::new(context, "source", source)?,
            destination: ModelPath::new(context, "destination", destination)?,
        })
    }

    pub(super) async fn explain(&self, context: &Context, error: Error) -> ToolError {
        let (from, to) = (&self.source, &self.destination);
        match error.kind() {
            ErrorKind::AlreadyExists => {
                if is_directory(context, to).await {
                    let name = from.path.file_name().unwrap_or("name");
                    let shown = to.shown.trim_end_matches('/');
                    ToolError::fixable(format!(
                        "'{shown}' is a directory; give the whole new path, such as \
                         '{shown}/{name}'"
                    ))
                } else if is_directory(context, from).await {
                    to.explain(error)
                } else {
                    ToolError::fixable(format!(
                        "'{}' exists already; set overwrite to replace it, or choose another \
                         destination",
                        to.shown
                    ))
                }
            }
            ErrorKind::NotADirectory => to.explain(error),
            _ => from.explain(error),
        }
    }

    pub(super) fn reply(&self, verb: &str) -> Reply {
        let (from, to) = (&self.source, &self.destination);
        let output = TransferOutput {
            source: from.path.as_str().to_owned(),
            destination: to.path.as_str().to_owned(),
        };
        Reply::text(format!("{verb} {} to {}", from.shown, to.shown)).structured(value(&output))
    }
}

async fn is_directory(context: &Context, target: &ModelPath) -> bool {
    let found = context
        .non_interactive
        .stat(&target.path, StatOptions::default());
    found.await.is_ok_and(|entry| entry.is_dir())
}
