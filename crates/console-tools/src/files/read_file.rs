//! `read_file`: lines, pictures and documents for the console tools, a window of
//! characters for the `filesystem` profile.

mod chars;
mod lines;

use async_trait::async_trait;
use backend_core::Error;
use permissions::Access;
use permissions::access::Intent;
use permissions::approval::Effect;
use permissions::tool::Tool;

use super::model_path::ModelPath;
use super::output::ReadOutput;
use crate::args::{console, filesystem};
use crate::context::Context;
use crate::reply::{ToolError, ToolResult};
use crate::tool::{Builtin, Preview};

/// Shows lines, a picture or a document.
pub(crate) struct Console;

#[async_trait]
impl Builtin for Console {
    type Args = console::ReadFileArgs;
    type Output = ReadOutput;
    const TOOL: Tool = Tool::ReadFile;
    // A large file is read in several steps.
    const IN_DOUBT_ONLY: bool = true;

    fn accesses(context: &Context, args: &Self::Args) -> Result<Vec<Access>, ToolError> {
        let file = ModelPath::console(context, "path", &args.path)?;
        Ok(Intent::read(file.path).accesses().collect())
    }

    async fn preview(context: &Context, args: &Self::Args) -> Preview {
        match ModelPath::console(context, "path", &args.path) {
            Ok(file) => Preview::reading(&file.path),
            Err(_) => Preview::default(),
        }
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        lines::read(context, &args).await
    }
}

/// Returns a window of characters.
pub(crate) struct Filesystem;

#[async_trait]
impl Builtin for Filesystem {
    type Args = filesystem::ReadFileArgs;
    type Output = chars::ReadCharsOutput;
    const TOOL: Tool = Console::TOOL;
    // A file is read in pieces.
    const IN_DOUBT_ONLY: bool = true;

    fn accesses(context: &Context, args: &Self::Args) -> Result<Vec<Access>, ToolError> {
        chars::check_window(args)?;
        let file = ModelPath::filesystem(context, &args.path)?;
        Ok(Intent::read(file.path).accesses().collect())
    }

    fn call_description(args: &Self::Args) -> String {
        format!("Read from {}", args.path)
    }

    async fn preview(_: &Context, args: &Self::Args) -> Preview {
        Preview::new(Effect::read(&*args.path))
    }

    fn explain_refusal(context: &Context, args: &Self::Args, error: Error) -> ToolError {
        ModelPath::filesystem(context, &args.path)
            .map_or_else(|other| other, |file| chars::explain(&file, error))
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        chars::read(context, &args).await
    }
}
