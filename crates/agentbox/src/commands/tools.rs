//! `agentbox tools`: the tools that a model would be offered.

use std::process::ExitCode;

use clap::ValueEnum;

use crate::app::App;
use crate::backend::spec::Prepare;
use crate::console::help::first_sentence;
use crate::exit::Failure;
use crate::output;

/// Options of `tools`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Prints descriptions and schemas as JSON.
    #[arg(long)]
    json: bool,
    /// The API whose tool format the JSON has; implies --json.
    #[arg(long, value_enum)]
    shape: Option<Shape>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shape {
    /// The tools of an MCP server.
    Mcp,
    /// The tools of OpenAI's chat completions.
    Openai,
    /// The tools of OpenAI's responses.
    OpenaiResponses,
    /// The tools of Anthropic's messages.
    Anthropic,
}

pub(crate) async fn run(mut app: App, args: &Args) -> Result<ExitCode, Failure> {
    // No tool is called, so no preparation is needed.
    app.spec.prepare = Prepare::No;
    let opened = app.open().await?;
    let definitions = app.toolset(&opened).build()?.definitions();
    if args.json || args.shape.is_some() {
        let shaped = match args.shape.unwrap_or(Shape::Mcp) {
            Shape::Mcp => definitions.mcp(),
            Shape::Openai => definitions.openai(),
            Shape::OpenaiResponses => definitions.openai_responses(),
            Shape::Anthropic => definitions.anthropic(),
        };
        output::print_json(&shaped)?;
    } else {
        output::print(&output::table(definitions.iter().map(|tool| {
            let first = first_sentence(&tool.description).trim_end_matches('.');
            let asks = if tool.asks { " (asks)" } else { "" };
            (tool.name.as_str(), format!("{first}{asks}"))
        })))?;
    }
    Ok(ExitCode::SUCCESS)
}
