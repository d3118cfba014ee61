//! `mcp-config`: the output is parsed as its client would, and used.

mod named_tokens;
mod snippet;

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};
use snippet::{address, command};

use super::mcp::Client;
use crate::support::{ProgramOutput, TestDir, names};

/// All clients, except programs in Python: the stage `clients` of the tests runs the
/// code printed for them.
const CLIENTS: &[&str] = &[
    "claude-code",
    "claude-desktop",
    "claude-mcp-add",
    "cline",
    "codex",
    "continue",
    "cursor",
    "gemini",
    "goose",
    "jetbrains",
    "opencode",
    "vscode",
    "windsurf",
    "zed",
];

const TOKEN: &str = "MCP_AGENTBOX_TOKEN";

/// Runs `mcp-config` for a client.
fn config(dir: &TestDir, client: &str, flags: &[&str]) -> ProgramOutput {
    config_with(dir, client, flags, &[])
}

fn config_with(
    dir: &TestDir,
    client: &str,
    flags: &[&str],
    variables: &[(&str, &str)],
) -> ProgramOutput {
    dir.run_with(&[&["mcp-config", client], flags].concat(), variables)
}

#[test]
fn every_snippet_starts_a_server_that_answers() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("it's \"odd\" \\ $5")).unwrap();
    dir.file(
        "config/agentbox/config.toml",
        "[options]\ninclude_background = false\n",
    );
    let home = dir.path("config");
    let variables = [
        ("XDG_CONFIG_HOME", home.to_str().unwrap()),
        ("AGENTBOX_OPTIONS_INCLUDE_FILE_OPERATIONS", "false"),
        (
            "AGENTBOX_OPTIONS_DESCRIPTIONS",
            r#"{grep = "it's \"quoted\""}"#,
        ),
        ("AGENTBOX_EDIT_FORMAT", "hashline"),
    ];
    for client in CLIENTS {
        let flags = ["--backend", "local:./it's \"odd\" \\ $5/."];
        let ended = config_with(&dir, client, &flags, &variables).code(0);
        assert!(ended.err.starts_with("# "), "{client}: {}", ended.err);
        let (words, env) = command(client, &ended.out);
        assert_eq!(words[0], env!("CARGO_BIN_EXE_agentbox"), "{client}");
        assert!(
            !words.iter().any(|word| word.ends_with("/.")),
            "{client}: {words:?}"
        );
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env_clear()
            .envs(&env)
            .current_dir("/");
        let mut client = Client::greet(command);
        let tools = client.asks("tools/list", json!({}))["tools"].take();
        let tools = tools.as_array().unwrap();
        let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name);
        assert!(tool("execute").is_some() && tool("hashline_edit").is_some());
        assert!(
            tool("run_in_background").is_none(),
            "the config file counts"
        );
        assert!(tool("move_file").is_none(), "the variable counts");
        assert_eq!(tool("grep").unwrap()["description"], "it's \"quoted\"");
        drop(client.input.take());
        assert!(client.child.wait().unwrap().success());
    }
}

#[test]
fn what_containers_need_comes_along_and_secrets_do_not() {
    let dir = TestDir::new();
    let here = dir.path("").canonicalize().unwrap();
    let ask = |backend: &str, host: &str| {
        let variables = [
            ("DOCKER_HOST", host),
            ("SANDBOX_AGENT", "agents/sandbox-agent"),
            ("AGENTBOX_DOCKER_CA_BUNDLE", "ca.pem"),
            (
                "AGENTBOX_DOCKER_VOLUMES",
                r#"["./data:/data:ro", "cache:/cache"]"#,
            ),
            ("AGENTBOX_DOCKER_ENV", r#"{KEY = "hush"}"#),
            ("AGENTBOX_DOCKER_ADDRESS", "tcp://me:hush@10.0.0.9:2375"),
            ("AGENTBOX_LOG", "info"),
        ];
        let flags = ["--backend", backend];
        let ended = config_with(&dir, "cursor", &flags, &variables).code(0);
        assert!(!ended.out.contains("hush") && !ended.err.contains("hush"));
        assert!(
            ended.err.contains("AGENTBOX_DOCKER_ENV may hold secrets"),
            "{}",
            ended.err
        );
        (command("cursor", &ended.out), ended.err)
    };
    let ((words, env), _) = ask("docker:alpine", "tcp://10.0.0.1:2375");
    assert_eq!(
        words[1..],
        ["mcp", "--backend", "docker:alpine", "--log", "info"]
    );
    let from_here = |name: &str| here.join(name).display().to_string();
    let wanted = [
        ("AGENTBOX_DOCKER_CA_BUNDLE", from_here("ca.pem")),
        (
            "AGENTBOX_DOCKER_VOLUMES",
            format!(r#"["{}:/data:ro", "cache:/cache"]"#, from_here("data")),
        ),
        ("DOCKER_HOST", "tcp://10.0.0.1:2375".to_owned()),
        ("SANDBOX_AGENT", from_here("agents/sandbox-agent")),
    ];
    let wanted = wanted.map(|(name, value)| (name.to_owned(), value));
    assert_eq!(env, BTreeMap::from(wanted));
    let ((_, env), notes) = ask("docker:alpine", "tcp://me:hush@10.0.0.1:2375");
    assert!(!env.contains_key("DOCKER_HOST"));
    assert!(notes.contains("DOCKER_HOST may hold secrets"), "{notes}");
    let ((_, env), _) = ask("state", "tcp://10.0.0.1:2375");
    assert!(!env.contains_key("DOCKER_HOST"), "{env:?}");
}

#[test]
fn rules_given_by_a_variable_are_not_lost() {
    let dir = TestDir::new();
    let rules = r#"{default = "deny", ls = {default = "allow"}}"#;
    let variables = [("AGENTBOX_PERMISSIONS", rules)];
    let flags = ["--backend", "state"];
    let with = |variables: &[(&str, &str)]| config_with(&dir, "zed", &flags, variables).code(0).out;
    let (words, env) = command("zed", &with(&variables));
    assert_eq!(words[1..], ["mcp", "--backend", "state"]);
    assert_eq!(env["AGENTBOX_PERMISSIONS"], rules);
    let variables = [("AGENTBOX_PERMISSIONS", "readonly")];
    let (words, env) = command("zed", &with(&variables));
    assert_eq!(words[4..], ["--permissions", "readonly"]);
    assert!(env.is_empty(), "{env:?}");
    // A flag with the default value outranks a file with another.
    dir.file("config.toml", "profile = \"lean\"\n");
    let more = ["--config", "config.toml", "--profile", "coding"];
    let ended = config(&dir, "zed", &[&flags[..], &more].concat());
    let (words, _) = command("zed", &ended.code(0).out);
    assert_eq!(words[4..6], ["--profile", "coding"]);
}

#[test]
fn servers_that_listen_are_reached_by_every_client_but_one() {
    let dir = TestDir::new();
    dir.file("token", "never-shown-0123456789\n");
    for client in CLIENTS {
        let plain = ["--http", "127.0.0.1:8000"];
        let ended = config(&dir, client, &[&plain[..], &["--no-token"]].concat());
        if *client == "claude-desktop" {
            ended.code(64).complains("names programs only");
            continue;
        }
        let ended = ended.code(0);
        assert!(
            ended.err.contains("# serve it with: agentbox mcp "),
            "{}",
            ended.err
        );
        assert!(ended.err.contains("--no-token"), "{}", ended.err);
        let (url, header) = address(client, &ended.out);
        assert_eq!(
            (&*url, &*header),
            ("http://127.0.0.1:8000/mcp", ""),
            "{client}"
        );
        // The server has a token by default, so the client needs it.
        let ended = config(&dir, client, &plain).code(0);
        let usual = dir.path("home/.config/agentbox/token");
        let line = format!("--token-file {}", usual.display());
        assert!(ended.err.contains(&line), "{}", ended.err);
        let told = ended.err.matches("agentbox/token").count();
        assert_eq!(told, 2, "{}", ended.err);
        let (_, header) = address(client, &ended.out);
        assert!(header.contains(TOKEN), "{client}: {header}");
        let flags = ["--http", "0.0.0.0:8000", "--token-file", "token"];
        let ended = config(&dir, client, &flags).code(0);
        let file = dir.path("token");
        let line = format!("--http 0.0.0.0:8000 --token-file {}", file.display());
        assert!(ended.err.contains(&line), "{}", ended.err);
        assert!(
            !(ended.out + &ended.err).contains("never-shown"),
            "{client}"
        );
        let (url, header) = address(client, &config(&dir, client, &flags).out);
        assert_eq!(url, "http://127.0.0.1:8000/mcp", "{client}");
        assert!(header.contains(TOKEN), "{client}: {header}");
        assert!(
            header.starts_with("Bearer ") || *client == "codex",
            "{client}: {header}"
        );
        let far = config(&dir, client, &["--http", "https://box.example/mcp"]);
        let (url, header) = address(client, &far.code(0).out);
        assert_eq!(url, "https://box.example/mcp");
        assert!(header.contains(TOKEN), "{client}: {header}");
    }
    // A client that starts a server configured to listen would wait forever.
    dir.file("config.toml", "[mcp]\nhttp = \"127.0.0.1:8123\"\n");
    let configured = config(&dir, "zed", &["--config", "config.toml"]);
    let (url, _) = address("zed", &configured.code(0).out);
    assert_eq!(url, "http://127.0.0.1:8123/mcp");
}

#[test]
fn addresses_that_mean_nothing_are_refused() {
    let dir = TestDir::new();
    for (address, about) in [
        ("8000", "127.0.0.1:8000"),
        ("ftp://host/mcp", "nor a valid URL"),
        ("https://me:hush@host/mcp", "password"),
    ] {
        let refused = config(&dir, "zed", &["--http", address]);
        refused.code(64).complains(about);
    }
    let alone = config(&dir, "zed", &["--token-file", "token"]);
    alone.code(64).complains("--http");
    let open = config(&dir, "zed", &["--http", "0.0.0.0:8000", "--no-token"]);
    open.code(64).complains("need a token");
}

#[test]
fn a_client_that_may_not_ask_comes_with_a_note() {
    let dir = TestDir::new();
    dir.file("mounts.toml", "root = \"home\"\n");
    let notes = |client: &str, flags: &[&str]| config(&dir, client, flags).code(0).err;
    let note = "need approval";
    for flags in [
        &["--permissions", "default"][..],
        &["--backend", "mounts:mounts.toml"],
    ] {
        for client in ["zed", "windsurf", "gemini", "pydantic-ai"] {
            let said = notes(client, flags);
            assert_eq!(said.matches(note).count(), 1, "{client}: {said}");
        }
        for client in ["claude-code", "cursor", "vscode"] {
            let said = notes(client, flags);
            assert!(!said.contains(note), "{client}: {said}");
        }
    }
    for flags in [&["--permissions", "readonly"][..], &[]] {
        assert!(!notes("zed", flags).contains(note), "{flags:?}");
    }
}

#[test]
fn a_server_that_could_not_start_is_not_printed() {
    let dir = TestDir::new();
    for (spec, code, about) in [
        ("docker", 64, "docker:IMAGE"),
        ("docker:runtime=pyton-web", 64, "python-web"),
        ("composite:missing.toml", 64, "missing.toml"),
        ("mounts:missing.toml", 64, "missing.toml"),
        ("local:home/none", 3, "mkdir"),
    ] {
        let flags = ["--backend", spec];
        let served = ["--backend", spec, "--http", "127.0.0.1:8000"];
        for flags in [&flags[..], &served] {
            config(&dir, "zed", flags).code(code).complains(about);
        }
    }
}

#[test]
fn paths_are_those_that_last() {
    let dir = TestDir::new();
    // The path found in PATH is used, not the current target of the link.
    let bin = dir.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let link = bin.join("agentbox");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_agentbox"), &link).unwrap();
    for (called, program) in [
        ("agentbox", &*link),
        ("bin/agentbox", &*link),
        (
            "elsewhere",
            std::path::Path::new(env!("CARGO_BIN_EXE_agentbox")),
        ),
    ] {
        let mut command = dir.command(&["mcp-config", "cursor", "--backend", "state"]);
        std::os::unix::process::CommandExt::arg0(&mut command, called);
        command.env("PATH", &bin);
        let ended = ProgramOutput::new(command.output().unwrap()).code(0);
        let server = ended.json()["mcpServers"]["agentbox"].take();
        assert_eq!(server["command"], program.to_str().unwrap(), "{called}");
    }
    let flags = ["--http", "127.0.0.1:8000", "--token-file", "bin/../token"];
    let said = config(&dir, "zed", &flags).code(0).err;
    let token = dir.path("").canonicalize().unwrap().join("token");
    assert!(said.contains(token.to_str().unwrap()), "{said}");
    assert!(!said.contains(".."), "{said}");
    std::fs::create_dir(dir.path("project")).unwrap();
    for given in [
        "local:bin/../project",
        "local:project/../bin/..",
        "state:bin/../new",
    ] {
        let said = config(&dir, "zed", &["--backend", given]).code(0).out;
        assert!(!said.contains(".."), "{given}: {said}");
    }
    // A server elsewhere has the same path by default.
    for url in ["http://box.example:8000", "http://box.example:8000/"] {
        let ended = config(&dir, "zed", &["--http", url]).code(0);
        let (url, _) = address("zed", &ended.out);
        assert_eq!(url, "http://box.example:8000/mcp");
        assert!(ended.err.contains("had no path"), "{}", ended.err);
    }
    // Variables are expanded only in the project's file, and only the token is one.
    let line = |flags: &[&str]| {
        let flags = [&["--http", "127.0.0.1:1"], flags].concat();
        config(&dir, "claude-mcp-add", &flags).code(0).out
    };
    assert!(line(&[]).contains("--scope project"));
    assert!(!line(&["--no-token"]).contains("--scope"));
}

#[test]
fn the_line_that_serves_keeps_what_variables_have_set() {
    let dir = TestDir::new();
    let variables = [
        ("AGENTBOX_OPTIONS_INCLUDE_EXECUTE", "false"),
        ("AGENTBOX_OPTIONS_DESCRIPTIONS", r#"{grep = "it's"}"#),
        ("AGENTBOX_PERMISSIONS", r#"{default = "deny"}"#),
        ("AGENTBOX_MCP_ORIGINS", r#"["http://localhost:6274"]"#),
        ("AGENTBOX_MCP_NO_TOKEN", "true"),
        ("AGENTBOX_MCP_HTTP", "127.0.0.1:8000"),
    ];
    let ended = config_with(&dir, "zed", &["--backend", "state"], &variables).code(0);
    let line = ended
        .err
        .lines()
        .find_map(|line| line.strip_prefix("# serve it with: "));
    let words = shlex::split(line.unwrap()).unwrap();
    let wanted = [
        "AGENTBOX_OPTIONS_DESCRIPTIONS={grep = \"it's\"}",
        "AGENTBOX_OPTIONS_INCLUDE_EXECUTE=false",
        "AGENTBOX_PERMISSIONS={default = \"deny\"}",
        "agentbox",
        "mcp",
        "--backend",
        "state",
        "--http",
        "127.0.0.1:8000",
        "--no-token",
        "--origin",
        "http://localhost:6274",
    ];
    assert_eq!(words, wanted);
    // A shell reads them as assignments, not as the name of a program.
    assert!(line.unwrap().starts_with("AGENTBOX_OPTIONS_DESCRIPTIONS="));
}

#[test]
fn what_a_client_would_replace_is_refused() {
    let dir = TestDir::new();
    for (name, clients) in [
        (
            "${HOME}",
            &[
                "claude-code",
                "claude-mcp-add",
                "cline",
                "cursor",
                "gemini",
                "jetbrains",
                "vscode",
                "windsurf",
            ][..],
        ),
        ("$HOME", &["gemini"]),
        ("${{ secrets.X }}", &["claude-code", "continue", "gemini"]),
        ("{env:HOME}", &["opencode"]),
        ("{file:x}", &["opencode"]),
        ("5$ {a} $1", &[]),
    ] {
        std::fs::create_dir_all(dir.path(name)).unwrap();
        let backend = format!("local:{name}");
        for client in clients {
            let refused = config(&dir, client, &["--backend", &backend]);
            refused.code(64).complains("replaces");
        }
        for client in ["claude-desktop", "codex", "goose", "zed", "python"] {
            let ended = config(&dir, client, &["--backend", &backend]);
            assert!(ended.code(0).out.contains(name), "{client}");
        }
    }
    // If the text can be escaped, it is used.
    let fine = config(&dir, "opencode", &["--backend", "local:${HOME}"]);
    let (words, _) = command("opencode", &fine.code(0).out);
    assert!(words[3].ends_with("/${HOME}"), "{words:?}");
    let url = config(&dir, "goose", &["--http", "http://localhost/$HOME"]);
    url.code(64).complains("replaces");
}

#[test]
fn programs_in_python_are_printed_whole() {
    let dir = TestDir::new();
    for (client, started, reached) in [
        (
            "python",
            "StdioServerParameters(",
            "streamable_http_client(",
        ),
        ("pydantic-ai", "StdioTransport(", "MCPToolset(\"http"),
    ] {
        let out = config(&dir, client, &[]).code(0).out;
        assert!(out.contains(started), "{client}: {out}");
        assert!(
            out.contains(env!("CARGO_BIN_EXE_agentbox")),
            "{client}: {out}"
        );
        let flags = ["--http", "10.0.0.1:80"];
        let out = config(&dir, client, &flags).code(0).out;
        assert!(out.contains(reached), "{client}: {out}");
        assert!(
            out.contains(&format!("os.environ[\"{TOKEN}\"]")),
            "{client}: {out}"
        );
    }
}

#[test]
fn snippets_work_from_anywhere() {
    let dir = TestDir::new();
    let rules = dir.file("rules.toml", "default = \"allow\"\n");
    let here = dir.path("").canonicalize().unwrap();
    let arguments = |flags: &[&str]| {
        let ended = config(&dir, "claude-desktop", flags).code(0);
        assert!(ended.err.contains("# "), "{}", ended.err);
        let server = ended.json()["mcpServers"]["agentbox"].clone();
        assert_eq!(server["command"], env!("CARGO_BIN_EXE_agentbox"));
        let word = |word: &Value| word.as_str().unwrap().to_owned();
        let words = server["args"].as_array().unwrap().iter();
        words.map(word).collect::<Vec<String>>()
    };
    let workspace = format!("local:{}", here.join("agentbox-workspace").display());
    assert_eq!(arguments(&[]), ["mcp", "--backend", &workspace]);
    let flags = [
        "--permissions",
        "rules.toml",
        "--edit-format",
        "hashline",
        "--backend",
        "state",
    ];
    let rules = rules.canonicalize().unwrap();
    let wanted = [
        "mcp",
        "--backend",
        "state",
        "--permissions",
        rules.to_str().unwrap(),
        "--edit-format",
        "hashline",
    ];
    assert_eq!(arguments(&flags), wanted);
    // The directory exists when the client needs it.
    assert_eq!(names(&here), ["agentbox-workspace", "home", "rules.toml"]);
    let missing = config(&dir, "zed", &["--backend", "local:missing"]);
    missing.code(3).complains("mkdir");
    dir.file("config.toml", "profile = \"lean\"\n");
    let config = here.join("config.toml");
    let wanted = [
        "mcp",
        "--backend",
        "state",
        "--profile",
        "lean",
        "--config",
        config.to_str().unwrap(),
    ];
    assert_eq!(
        arguments(&["--backend", "state", "--config", "config.toml"]),
        wanted
    );
}
