//! The known clients, and their configuration formats.

use std::collections::BTreeMap;
use std::path::Path;

use clap::ValueEnum;
use serde_json::{Value, json};

/// The variable in which a client finds the token of an HTTP server. It is for clients
/// only: this program rejects variables that are not settings of its own.
const TOKEN_VARIABLE: &str = "MCP_AGENTBOX_TOKEN";

/// The way a client reaches the server.
#[derive(Debug)]
pub(super) enum Connection {
    /// The client starts the program.
    Stdio(Program),
    /// The server already listens.
    Http { url: String, token: bool },
}

/// A program that a client starts.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) path: String,
    pub(super) arguments: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
}

impl Connection {
    /// Returns all texts that are written into a snippet.
    pub(super) fn texts(&self) -> Vec<&str> {
        match self {
            Self::Stdio(program) => {
                let variables = program.environment.iter();
                let variables = variables.flat_map(|(name, value)| [name, value]);
                let words = program.command_line().chain(variables);
                words.map(String::as_str).collect()
            }
            Self::Http { url, .. } => vec![url],
        }
    }
}

impl Program {
    fn command_line(&self) -> impl Iterator<Item = &String> {
        [&self.path].into_iter().chain(&self.arguments)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    ClaudeCode,
    ClaudeDesktop,
    // A line for a shell: `claude mcp add`.
    ClaudeMcpAdd,
    Cline,
    Codex,
    Continue,
    Cursor,
    Gemini,
    Goose,
    Jetbrains,
    Opencode,
    PydanticAi,
    Python,
    Vscode,
    Windsurf,
    Zed,
}

impl Client {
    /// Returns a comment that says where the snippet belongs.
    pub(super) fn location_note(self) -> &'static str {
        match self {
            Self::ClaudeCode => {
                "# .mcp.json of the project; or run what `agentbox mcp-config claude-mcp-add` prints"
            }
            Self::ClaudeDesktop => {
                "# claude_desktop_config.json (Settings, Developer, Edit Config)"
            }
            Self::ClaudeMcpAdd => "# to be run in a shell, in the directory of the project",
            Self::Cline => "# cline_mcp_settings.json (MCP Servers, Configure)",
            Self::Codex => "# ~/.codex/config.toml",
            Self::Continue => "# .continue/mcpServers/agentbox.yaml",
            Self::Cursor => "# .cursor/mcp.json of the project, or ~/.cursor/mcp.json",
            Self::Gemini => "# ~/.gemini/settings.json",
            Self::Goose => "# merge into ~/.config/goose/config.yaml",
            Self::Jetbrains => {
                "# Settings, Tools, AI Assistant, Model Context Protocol; or .junie/mcp/mcp.json"
            }
            Self::Opencode => "# opencode.json of the project, or ~/.config/opencode/opencode.json",
            Self::PydanticAi => "# needs: pip install 'pydantic-ai-slim[mcp,openai]'",
            Self::Python => "# needs: pip install 'mcp>=2'",
            Self::Vscode => "# .vscode/mcp.json",
            Self::Windsurf => "# ~/.codeium/windsurf/mcp_config.json",
            Self::Zed => "# settings.json (zed: open settings)",
        }
    }

    /// Returns the note about the token, which is never in the snippet.
    pub(super) fn token_note(self, file: Option<&Path>, has_names: bool) -> String {
        let token = if has_names {
            "the client's own token"
        } else {
            "the token"
        };
        let shown = file.map(|file| file.display().to_string());
        let from = shown.as_ref().map(|file| format!(", from {file}"));
        // With the comma that ends an insertion.
        let inserted = from.as_ref().map(|from| format!("{from},"));
        let (from, inserted) = (from.unwrap_or_default(), inserted.unwrap_or_default());
        match self {
            Self::Cline | Self::Jetbrains | Self::Zed => format!(
                "# replace {TOKEN_VARIABLE} with {token}{from}: this client reads no variables there"
            ),
            Self::Continue => {
                format!("# put {token}{inserted} into ~/.continue/.env as {TOKEN_VARIABLE}=…")
            }
            Self::Vscode => match shown {
                Some(file) => format!("# VS Code asks for {token}, and keeps it: see {file}"),
                None => format!("# VS Code asks for {token}, and keeps it"),
            },
            // The file would give the client the tokens of all others, too.
            _ if has_names => format!(
                "# the client finds its own token{inserted} in a variable: export \
                 {TOKEN_VARIABLE}=THE-TOKEN-OF-ONE-NAME"
            ),
            _ => match shown.as_deref().map(shlex::try_quote) {
                Some(Ok(file)) => format!(
                    "# the client finds the token in a variable: export {TOKEN_VARIABLE}=\"$(cat {file})\""
                ),
                _ => format!(
                    "# the client finds the token in the variable {TOKEN_VARIABLE}; set it there"
                ),
            },
        }
    }

    /// Returns the syntax in a text that the client would expand and that cannot be
    /// escaped.
    pub(super) fn expands(self, text: &str, connection: &Connection) -> Option<&'static str> {
        let has_name = |after: &str| {
            after.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '{')
        };
        let forms: &[&'static str] = match self {
            // A name after a dollar sign is a variable, too.
            Self::Gemini => {
                let mut after = text.split('$').skip(1);
                return after.any(has_name).then_some("$NAME and ${…}");
            }
            Self::Goose if matches!(connection, Connection::Http { .. }) => &["$"],
            Self::Continue => &["${{"],
            Self::Opencode => &["{env:", "{file:"],
            Self::ClaudeCode
            | Self::ClaudeMcpAdd
            | Self::Cline
            | Self::Cursor
            | Self::Jetbrains
            | Self::Vscode
            | Self::Windsurf => &["${"],
            Self::ClaudeDesktop
            | Self::Codex
            | Self::Goose
            | Self::PydanticAi
            | Self::Python
            | Self::Zed => &[],
        };
        forms.iter().find(|form| text.contains(**form)).copied()
    }

    /// Returns the client's placeholder for the token.
    fn token(self) -> String {
        match self {
            Self::Cline | Self::Jetbrains | Self::Zed => TOKEN_VARIABLE.to_owned(),
            Self::Continue => format!("${{{{ secrets.{TOKEN_VARIABLE} }}}}"),
            Self::Cursor | Self::Windsurf => format!("${{env:{TOKEN_VARIABLE}}}"),
            Self::Opencode => format!("{{env:{TOKEN_VARIABLE}}}"),
            Self::Vscode => format!("${{input:{TOKEN_VARIABLE}}}"),
            _ => format!("${{{TOKEN_VARIABLE}}}"),
        }
    }

    /// Returns the `Authorization` header, if the server needs a token.
    fn headers(self, token: bool) -> BTreeMap<String, String> {
        let header = token.then(|| format!("Bearer {}", self.token()));
        let header = header.map(|value| ("Authorization".to_owned(), value));
        header.into_iter().collect()
    }

    /// Returns the snippet, or `None` if the client does not support this way.
    pub(super) fn snippet(self, connection: &Connection) -> Option<String> {
        Some(match self {
            Self::ClaudeMcpAdd => claude_mcp_add(self, connection)?,
            Self::Codex => codex(connection),
            Self::Continue => continue_yaml(self, connection),
            Self::Goose => goose(self, connection),
            Self::PydanticAi => pydantic_ai(connection),
            Self::Python => python(connection),
            _ => {
                let text = serde_json::to_string_pretty(&self.json(connection)?);
                text.unwrap_or_default()
            }
        })
    }

    /// Returns the snippet of a client that reads JSON.
    fn json(self, connection: &Connection) -> Option<Value> {
        let server = match connection {
            Connection::Stdio(program) if self == Self::Opencode => opencode(program),
            Connection::Stdio(program) => self.stdio_json(program),
            Connection::Http { url, token } => self.http_json(url, *token)?,
        };
        let servers = json!({ "agentbox": server });
        Some(match self {
            Self::Vscode => match connection {
                Connection::Http { token: true, .. } => json!({
                    "inputs": [{
                        "type": "promptString",
                        "id": TOKEN_VARIABLE,
                        "description": "The token of agentbox",
                        "password": true,
                    }],
                    "servers": servers,
                }),
                _ => json!({ "servers": servers }),
            },
            Self::Zed => json!({ "context_servers": servers }),
            Self::Opencode => json!({
                "$schema": "https://opencode.ai/config.json",
                "mcp": servers,
            }),
            _ => json!({ "mcpServers": servers }),
        })
    }

    /// Describes a server that the client starts.
    fn stdio_json(self, program: &Program) -> Value {
        let mut server = json!({});
        if matches!(self, Self::ClaudeCode | Self::Vscode) {
            server["type"] = json!("stdio");
        }
        server["command"] = json!(program.path);
        server["args"] = json!(program.arguments);
        if !program.environment.is_empty() {
            server["env"] = json!(program.environment);
        }
        server
    }

    /// Describes a server that listens.
    fn http_json(self, url: &str, token: bool) -> Option<Value> {
        let (key, kind) = match self {
            // Its file supports only programs.
            Self::ClaudeDesktop => return None,
            Self::ClaudeCode | Self::Vscode => ("url", Some("http")),
            Self::Cline => ("url", Some("streamableHttp")),
            Self::Gemini => ("httpUrl", None),
            Self::Opencode => ("url", Some("remote")),
            Self::Windsurf => ("serverUrl", None),
            _ => ("url", None),
        };
        let mut server = json!({});
        if let Some(kind) = kind {
            server["type"] = json!(kind);
        }
        server[key] = json!(url);
        if token {
            server["headers"] = json!(self.headers(token));
        }
        Some(server)
    }
}

/// Describes a server for opencode: program and arguments are one list, and the
/// environment has another name.
fn opencode(program: &Program) -> Value {
    let command: Vec<&String> = program.command_line().collect();
    let mut server = json!({ "type": "local", "command": command, "enabled": true });
    if !program.environment.is_empty() {
        server["environment"] = json!(program.environment);
    }
    server
}

/// Returns the `claude mcp add` command. Its options take every word that follows, so
/// the server's name comes after an option that takes a single word.
fn claude_mcp_add(client: Client, connection: &Connection) -> Option<String> {
    let mut words: Vec<String> = ["claude", "mcp", "add"].map(str::to_owned).to_vec();
    match connection {
        Connection::Stdio(program) => {
            for (name, value) in &program.environment {
                words.extend(["--env".to_owned(), format!("{name}={value}")]);
            }
            let fixed = ["--transport", "stdio", "agentbox", "--"];
            words.extend(fixed.map(str::to_owned));
            words.extend(program.command_line().cloned());
        }
        Connection::Http { url, token } => {
            // Variables are expanded only in that scope.
            if *token {
                words.extend(["--scope", "project"].map(str::to_owned));
            }
            words.extend(["--transport", "http", "agentbox", url].map(str::to_owned));
            for (name, value) in client.headers(*token) {
                words.extend(["--header".to_owned(), format!("{name}: {value}")]);
            }
        }
    }
    // Fails for text that cannot be a word of a command.
    shlex::try_join(words.iter().map(String::as_str)).ok()
}

fn codex(connection: &Connection) -> String {
    let server = match connection {
        Connection::Stdio(program) => Client::Codex.stdio_json(program),
        Connection::Http { url, token: false } => json!({ "url": url }),
        Connection::Http { url, token: true } => {
            json!({ "url": url, "bearer_token_env_var": TOKEN_VARIABLE })
        }
    };
    let table = toml::Table::try_from(json!({ "mcp_servers": { "agentbox": server } }));
    table.unwrap_or_default().to_string()
}

/// Formats a text as a JSON string, which YAML and Python read the same way.
fn literal(text: &str) -> String {
    Value::from(text).to_string()
}

fn literals(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| literal(text)).collect();
    format!("[{}]", texts.join(", "))
}

fn literal_map(map: &BTreeMap<String, String>) -> String {
    let pairs = map.iter();
    let pairs = pairs.map(|(name, value)| format!("{}: {}", literal(name), literal(value)));
    format!("{{{}}}", pairs.collect::<Vec<String>>().join(", "))
}

fn continue_yaml(client: Client, connection: &Connection) -> String {
    let mut text = "name: agentbox\nversion: 0.0.1\nschema: v1\nmcpServers:\n".to_owned();
    let mut add = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    add("  - name: agentbox".to_owned());
    match connection {
        Connection::Stdio(program) => {
            add(format!("    command: {}", literal(&program.path)));
            add(format!("    args: {}", literals(&program.arguments)));
            if !program.environment.is_empty() {
                add(format!("    env: {}", literal_map(&program.environment)));
            }
        }
        Connection::Http { url, token } => {
            add("    type: streamable-http".to_owned());
            add(format!("    url: {}", literal(url)));
            if *token {
                let headers = literal_map(&client.headers(true));
                add(format!("    requestOptions:\n      headers: {headers}"));
            }
        }
    }
    text
}

fn goose(client: Client, connection: &Connection) -> String {
    let head = "extensions:\n  agentbox:\n    name: agentbox\n    description: files and commands\n    \
                enabled: true\n    timeout: 300\n";
    match connection {
        Connection::Stdio(program) => format!(
            "{head}    type: stdio\n    cmd: {}\n    args: {}\n    envs: {}\n",
            literal(&program.path),
            literals(&program.arguments),
            literal_map(&program.environment),
        ),
        Connection::Http { url, token } => {
            let keys = token.then(|| TOKEN_VARIABLE.to_owned());
            format!(
                "{head}    type: streamable_http\n    uri: {}\n    headers: {}\n    envs: {{}}\n    \
                 env_keys: {}\n",
                literal(url),
                literal_map(&client.headers(*token)),
                literals(keys.as_slice()),
            )
        }
    }
}

/// Returns a Python expression that reads the headers from the environment.
fn python_headers() -> String {
    format!("{{\"Authorization\": \"Bearer \" + os.environ[\"{TOKEN_VARIABLE}\"]}}")
}

fn pydantic_ai(connection: &Connection) -> String {
    let (imports, server) = match connection {
        Connection::Stdio(program) => (
            "from fastmcp.client.transports import StdioTransport\n",
            format!(
                "StdioTransport(\n    command={},\n    args={},\n    env={},\n)",
                literal(&program.path),
                literals(&program.arguments),
                literal_map(&program.environment),
            ),
        ),
        Connection::Http { url, token: true } => (
            "import os\n\n",
            format!("{}, headers={}", literal(url), python_headers()),
        ),
        Connection::Http { url, token: false } => ("", literal(url)),
    };
    format!(
        "{imports}from pydantic_ai import Agent\nfrom pydantic_ai.mcp import MCPToolset\n\n\
         agentbox = MCPToolset({server}, include_instructions=True, tool_error_behavior=\"failed\")\n\
         agent = Agent(\"openai:gpt-5\", toolsets=[agentbox])\n\
         print(agent.run_sync(\"Write a haiku to poem.txt, and tell me its size.\").output)\n"
    )
}

fn python(connection: &Connection) -> String {
    let (imports, server) = match connection {
        Connection::Stdio(program) => (
            "import asyncio\nfrom mcp import Client, StdioServerParameters\n",
            format!(
                "StdioServerParameters(command={}, args={}, env={})",
                literal(&program.path),
                literals(&program.arguments),
                literal_map(&program.environment),
            ),
        ),
        Connection::Http { url, token: true } => (
            "import asyncio\nimport os\n\nimport httpx2\nfrom mcp import Client\n\
             from mcp.client.streamable_http import streamable_http_client\n",
            format!(
                "streamable_http_client({}, http_client=httpx2.AsyncClient(headers={}))",
                literal(url),
                python_headers()
            ),
        ),
        Connection::Http { url, token: false } => {
            ("import asyncio\nfrom mcp import Client\n", literal(url))
        }
    };
    format!(
        r#"{imports}
server = {server}

async def main():
    async with Client(server) as client:
        print([tool.name for tool in (await client.list_tools()).tools])
        print(await client.call_tool("write_file", {{"path": "hello.txt", "content": "hello\n"}}))

asyncio.run(main())
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_about_the_token_is_one_sentence() {
        let file = Some(Path::new("/srv/token"));
        for client in [Client::Cline, Client::Jetbrains, Client::Zed] {
            let note = client.token_note(file, false);
            assert!(
                note.contains("the token, from /srv/token: this client"),
                "{note}"
            );
        }
        for (client, file, has_names, part) in [
            (
                Client::Continue,
                file,
                false,
                "put the token, from /srv/token, into ",
            ),
            (Client::Continue, None, false, "put the token into "),
            (
                Client::Cursor,
                file,
                true,
                "its own token, from /srv/token, in a variable",
            ),
            (Client::Cursor, None, true, "its own token in a variable"),
        ] {
            let note = client.token_note(file, has_names);
            assert!(note.contains(part), "{note}");
        }
    }
}
