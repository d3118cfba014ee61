//! `agentbox mcp-config CLIENT`: what a client's configuration needs.

use std::process::ExitCode;

use clap::ValueEnum;
use console_tools::Options;
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::exit::Failure;
use crate::output;

/// Options of `mcp-config`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The client.
    #[arg(value_enum)]
    client: Client,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Codex,
    Continue,
    Cursor,
    Gemini,
    Python,
    Vscode,
    Windsurf,
    Zed,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::environment(format!(
            "this program's place is not known: {error}; start it by its path"
        ))
    })?;
    let program = program
        .to_str()
        .ok_or_else(|| Failure::environment("this program's path is no UTF-8; put it elsewhere"))?;
    // A snippet whose directory is missing would not work.
    app.wanted.directory()?;
    let arguments = arguments(app)?;
    output::note(args.client.where_to());
    output::print(&args.client.snippet(program, &arguments))?;
    Ok(ExitCode::SUCCESS)
}

/// What starts the same server from anywhere.
fn arguments(app: &App) -> Result<Vec<String>, Failure> {
    let mut arguments = vec!["mcp".to_owned(), "--backend".to_owned(), app.wanted.spec()];
    if let Some(rules) = app.rules.as_ref().and_then(|rules| rules.name()) {
        arguments.extend(["--permissions".to_owned(), rules]);
    }
    let (ours, usual) = (&app.config.options, Options::default());
    if ours.edit_format != usual.edit_format {
        arguments.extend(["--edit-format".to_owned(), word(&ours.edit_format)]);
    }
    if ours.profile != usual.profile {
        arguments.extend(["--profile".to_owned(), word(&ours.profile)]);
    }
    if let Some(log) = &app.config.log {
        arguments.extend(["--log".to_owned(), log.clone()]);
    }
    if let Some(file) = &app.config.file {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        let file = file.to_str().ok_or_else(|| {
            Failure::usage("the config file's path is no UTF-8; put it elsewhere")
        })?;
        arguments.extend(["--config".to_owned(), file.to_owned()]);
    }
    Ok(arguments)
}

/// What a choice is called on the command line.
fn word(choice: &impl Serialize) -> String {
    let word = serde_json::to_value(choice).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

impl Client {
    /// Where the snippet belongs.
    fn where_to(self) -> &'static str {
        match self {
            Self::ClaudeCode => "# .mcp.json of the project, or ~/.claude.json",
            Self::ClaudeDesktop => {
                "# claude_desktop_config.json (Settings, Developer, Edit Config)"
            }
            Self::Codex => "# ~/.codex/config.toml",
            Self::Continue => "# .continue/mcpServers/agentbox.yaml",
            Self::Cursor => "# .cursor/mcp.json of the project, or ~/.cursor/mcp.json",
            Self::Gemini => "# ~/.gemini/settings.json",
            Self::Python => "# needs: pip install mcp",
            Self::Vscode => "# .vscode/mcp.json",
            Self::Windsurf => "# ~/.codeium/windsurf/mcp_config.json",
            Self::Zed => "# settings.json (zed: open settings)",
        }
    }

    fn snippet(self, program: &str, arguments: &[String]) -> String {
        let plain = json!({"command": program, "args": arguments});
        let stdio = json!({"type": "stdio", "command": program, "args": arguments});
        let under = |key: &str, server: Value| pretty(&json!({ key: {"agentbox": server} }));
        match self {
            Self::ClaudeDesktop | Self::Cursor | Self::Gemini | Self::Windsurf => {
                under("mcpServers", plain)
            }
            Self::ClaudeCode => under("mcpServers", stdio),
            Self::Vscode => under("servers", stdio),
            Self::Zed => under("context_servers", plain),
            Self::Codex => {
                let server = toml::Table::from_iter([
                    ("command".to_owned(), toml::Value::from(program)),
                    ("args".to_owned(), toml::Value::from(arguments.to_vec())),
                ]);
                format!("[mcp_servers.agentbox]\n{server}")
            }
            Self::Continue => yaml(program, arguments),
            Self::Python => python(program, arguments),
        }
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// A text as JSON has it, which YAML and Python read alike.
fn literal(text: &str) -> String {
    Value::from(text).to_string()
}

fn yaml(program: &str, arguments: &[String]) -> String {
    let mut text = format!(
        "name: agentbox\nversion: 0.0.1\nschema: v1\nmcpServers:\n  - name: agentbox\n    command: {}\n    args:\n",
        literal(program)
    );
    for argument in arguments {
        text.push_str(&format!("      - {}\n", literal(argument)));
    }
    text
}

fn python(program: &str, arguments: &[String]) -> String {
    let arguments: Vec<String> = arguments.iter().map(|text| literal(text)).collect();
    format!(
        r#"import asyncio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

server = StdioServerParameters(command={}, args=[{}])

async def main():
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        print([tool.name for tool in (await session.list_tools()).tools])
        print(await session.call_tool("write_file", {{"path": "hello.txt", "content": "hello\n"}}))

asyncio.run(main())
"#,
        literal(program),
        arguments.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_snippet_survives_odd_paths() {
        let program = "/odd \"path\"/ü\\agentbox";
        let arguments = [
            "mcp".to_owned(),
            "--backend".to_owned(),
            "local:/a'b\nc".to_owned(),
        ];
        for client in Client::value_variants() {
            let text = client.snippet(program, &arguments);
            let read: Value = match client {
                Client::Codex => {
                    let table: toml::Table = toml::from_str(&text).unwrap();
                    serde_json::to_value(table).unwrap()["mcp_servers"]["agentbox"].clone()
                }
                Client::Continue | Client::Python => {
                    assert!(text.contains(&literal(program)), "{text}");
                    continue;
                }
                _ => {
                    let read: Value = serde_json::from_str(&text).unwrap();
                    let servers = read.as_object().unwrap().values().next().unwrap();
                    servers["agentbox"].clone()
                }
            };
            assert_eq!(read["command"], program);
            assert_eq!(read["args"][2], arguments[2].as_str());
        }
    }
}
