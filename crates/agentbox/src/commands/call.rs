//! `agentbox call TOOL JSON`: one call, for scripts.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use console_tools::{Block, FailureClass, Reply};
use serde_json::{Value, json};

use crate::app::App;
use crate::approval;
use crate::exit::{self, Failure, usage};
use crate::output;
use crate::signals::Interrupts;
use crate::terminal::safe::sanitized;

/// Options of `call`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The tool's name; `agentbox tools` lists them.
    tool: String,
    /// Its arguments as JSON; - reads standard input, @FILE a file.
    #[arg(value_name = "JSON|-|@FILE", default_value = "{}")]
    arguments: String,
    /// Prints text, blocks, structured data and the kind of failure as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode, Failure> {
    let interrupts = Interrupts::watch()?;
    let limit = app.config.options.limits.argument_bytes;
    let source = args.arguments.clone();
    let arguments = tokio::task::spawn_blocking(move || arguments(&source, limit));
    let arguments = interrupts.unless(arguments).await?;
    let arguments = arguments.map_err(anyhow::Error::from)??;
    let opened = interrupts.unless(app.open()).await??;
    let toolset = app
        .toolset(&opened)
        .approver(approval::terminal(app.approval_advice(&opened)))
        .build();
    let chat = toolset?.conversation("call");
    let call = chat.call(&args.tool, arguments.as_str());
    let reply = interrupts.unless(call).await;
    if reply.is_ok()
        && let Some(sandbox) = opened.backend.as_sandbox()
        && !sandbox.shell_list().await.unwrap_or_default().is_empty()
    {
        output::note(
            "agentbox: background shells end with this call; use the console or mcp for some that stay",
        );
    }
    opened.stop().await;
    let reply = reply?;
    show(&reply, args.json)?;
    Ok(ExitCode::from(exit::of_reply(reply.failure)))
}

/// Reads the JSON from the command line, a file or standard input.
fn arguments(source: &str, limit: usize) -> Result<String, Failure> {
    let most = (limit as u64).saturating_add(1);
    let read = |from: &mut dyn Read, name: &str| {
        let mut text = String::new();
        let read = from.take(most).read_to_string(&mut text);
        read.map_err(|error| usage!("the arguments in {name} cannot be read: {error}; give JSON"))?;
        Ok(text)
    };
    match source.strip_prefix('@') {
        None if source == "-" => read(&mut std::io::stdin().lock(), "standard input"),
        None => Ok(source.to_owned()),
        Some(name) => {
            let file = std::fs::File::open(Path::new(name));
            let mut file = file
                .map_err(|error| usage!("the file {name} cannot be read: {error}; name another"))?;
            read(&mut file, name)
        }
    }
}

fn show(reply: &Reply, json: bool) -> Result<(), Failure> {
    if json {
        return output::print_json(&as_json(reply));
    }
    if !reply.is_success() {
        output::note(&sanitized(&reply.text));
        return Ok(());
    }
    output::print_foreign(&reply.text)?;
    if !reply.blocks.is_empty() {
        let what = match reply.blocks.len() {
            1 => "an image or document is".to_owned(),
            many => format!("{many} images or documents are"),
        };
        output::note(&format!("agentbox: {what} not shown; use --json"));
    }
    Ok(())
}

fn as_json(reply: &Reply) -> Value {
    let blocks = reply.blocks.iter().filter_map(|block| match block {
        Block::Image { media_type, data } => Some(json!({
            "type": "image", "media_type": media_type, "data": STANDARD.encode(data),
        })),
        Block::Document {
            media_type,
            data,
            name,
        } => Some(json!({
            "type": "document", "media_type": media_type, "name": name, "data": STANDARD.encode(data),
        })),
        _ => None,
    });
    json!({
        "text": reply.text,
        "blocks": blocks.collect::<Vec<Value>>(),
        "structured": reply.structured,
        "failure": reply.failure.map(FailureClass::as_str),
    })
}
