//! Parses the printed snippets as their clients would.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use yaml_rust2::{Yaml, YamlLoader};

fn yaml(text: &str) -> Value {
    fn read(yaml: &Yaml) -> Value {
        match yaml {
            Yaml::String(text) => json!(text),
            Yaml::Integer(number) => json!(number),
            Yaml::Boolean(truth) => json!(truth),
            Yaml::Array(all) => all.iter().map(read).collect(),
            Yaml::Hash(pairs) => {
                let pair =
                    |(key, value): (&Yaml, &Yaml)| (key.as_str().unwrap().to_owned(), read(value));
                Value::Object(pairs.iter().map(pair).collect())
            }
            // A version number.
            other => json!(format!("{other:?}")),
        }
    }
    let documents = YamlLoader::load_from_str(text).unwrap();
    let [document] = &*documents else {
        panic!("not one document: {text}");
    };
    read(document)
}

/// Returns the part of a snippet that describes the server.
fn server(client: &str, text: &str) -> Value {
    let all: Value = match client {
        "codex" => {
            let table: toml::Table = toml::from_str(text).unwrap();
            serde_json::to_value(table).unwrap()
        }
        "continue" | "goose" => yaml(text),
        "claude-mcp-add" => return added(text),
        _ => serde_json::from_str(text).unwrap(),
    };
    let path = match client {
        "codex" => "/mcp_servers/agentbox",
        "continue" => "/mcpServers/0",
        "goose" => "/extensions/agentbox",
        "opencode" => "/mcp/agentbox",
        "vscode" => "/servers/agentbox",
        "zed" => "/context_servers/agentbox",
        _ => "/mcpServers/agentbox",
    };
    let found = all.pointer(path).cloned();
    found.unwrap_or_else(|| panic!("{client} has nothing at {path}: {text}"))
}

/// Parses a line like `claude mcp add` does: options that take every word up to the
/// next option, a name, and a command after `--` or a URL.
fn added(line: &str) -> Value {
    let words = shlex::split(line).unwrap();
    assert_eq!(words[..3], ["claude", "mcp", "add"]);
    let mut words = words[3..].iter().peekable();
    let (mut env, mut headers, mut plain) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--" => {
                assert_eq!(plain, ["agentbox"]);
                let command = words.next().unwrap();
                let args: Vec<&String> = words.collect();
                return json!({"command": command, "args": args, "env": env});
            }
            "--transport" | "--scope" => drop(words.next()),
            "--env" | "--header" => {
                let mut count = 0;
                while let Some(value) = words.next_if(|word| !word.starts_with("--")) {
                    let (map, between) = match word.as_str() {
                        "--env" => (&mut env, "="),
                        _ => (&mut headers, ": "),
                    };
                    let (name, value) = value.split_once(between).expect("NAME and value");
                    map.insert(name.to_owned(), value.to_owned());
                    count += 1;
                }
                assert_ne!(count, 0, "{word} has no value: {line}");
            }
            _ => plain.push(word.as_str()),
        }
    }
    let [name, url] = *plain else {
        panic!("no URL: {line}");
    };
    assert_eq!(name, "agentbox");
    json!({"url": url, "headers": headers})
}

/// Returns the command in a snippet, and its variables.
pub(super) fn command(client: &str, text: &str) -> (Vec<String>, BTreeMap<String, String>) {
    let server = server(client, text);
    let (program, args, env) = match client {
        "goose" => ("cmd", "args", "envs"),
        "opencode" => ("", "command", "environment"),
        _ => ("command", "args", "env"),
    };
    let word = |word: &Value| word.as_str().unwrap().to_owned();
    let program = server.get(program).map(word);
    let args = server[args].as_array().unwrap().iter().map(word);
    let env = server.get(env).and_then(Value::as_object);
    let env = env
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), word(value)));
    (program.into_iter().chain(args).collect(), env.collect())
}

/// Returns the address in a snippet, and the reference to the token.
pub(super) fn address(client: &str, text: &str) -> (String, String) {
    let server = server(client, text);
    let (url, header) = match client {
        "codex" => ("url", "/bearer_token_env_var"),
        "continue" => ("url", "/requestOptions/headers/Authorization"),
        "gemini" => ("httpUrl", "/headers/Authorization"),
        "goose" => ("uri", "/headers/Authorization"),
        "windsurf" => ("serverUrl", "/headers/Authorization"),
        _ => ("url", "/headers/Authorization"),
    };
    let header = server.pointer(header).and_then(Value::as_str);
    let url = server[url].as_str();
    let url = url.unwrap_or_else(|| panic!("{client} has no {url:?}: {text}"));
    (url.to_owned(), header.unwrap_or_default().to_owned())
}
