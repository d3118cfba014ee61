//! The transcripts and files in `docs/` that need only this machine.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::TestDir;
use crate::support::pages::{blocks, transcripts};

#[test]
fn the_transcript_of_watching_is_accurate() {
    let [shown, typed] = &transcripts("watching.md")[..] else {
        panic!("two transcripts");
    };
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("project")).unwrap();
    dir.file("template.rs", "fn main() {}\n");
    let (command, shown) = shown.split_first().unwrap();
    let command = command.strip_prefix("$ agentbox ").unwrap();
    let arguments: Vec<&str> = command
        .split(' ')
        .map(|word| word.trim_matches('\''))
        .collect();
    let mut child = dir.start(&arguments);
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();
    let (note, shown) = shown.split_first().unwrap();
    assert_eq!(&notes.next().unwrap().unwrap(), note);
    let mut printed = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut shown = shown.iter();
    for line in typed {
        let line = line.strip_prefix("$ ").unwrap();
        let mut shell = Command::new("sh");
        let ran = shell.args(["-c", line]).current_dir(dir.path(".")).status();
        assert!(ran.unwrap().success(), "{line}");
        if line.contains(".log") {
            continue;
        }
        let expected = shown.next().unwrap();
        // The page says that a new file may be told as changed as well.
        let told = printed.by_ref().map(Result::unwrap);
        let told = told.skip_while(|line| line.starts_with("changed /src/main.rs"));
        assert_eq!(told.take(1).next().as_ref(), Some(expected));
    }
    assert_eq!(shown.next(), None);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn the_transcripts_of_mcp_in_five_minutes_are_accurate() {
    let [doctor, config, exchange] = &transcripts("mcp-in-five-minutes.md")[..] else {
        panic!("three transcripts");
    };
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("project")).unwrap();
    let arguments = |transcript: &[String]| -> Vec<String> {
        let command = transcript[0].strip_prefix("$ agentbox ").unwrap();
        command.split(' ').map(str::to_owned).collect()
    };
    let run = |transcript: &[String]| {
        let arguments = arguments(transcript);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ended = dir.run(&arguments).code(0);
        let home = dir.path("").canonicalize().unwrap();
        let printed = (ended.err + &ended.out)
            .replace(
                env!("CARGO_BIN_EXE_agentbox"),
                "/home/you/.cargo/bin/agentbox",
            )
            .replace(home.to_str().unwrap(), "/home/you");
        printed.lines().map(str::to_owned).collect::<Vec<_>>()
    };

    // The lines that are left out depend on the machine.
    let printed = run(doctor);
    for line in doctor[1..].iter().filter(|line| *line != "…") {
        assert!(printed.contains(line), "{line}\n{printed:?}");
    }
    assert_eq!(run(config), config[1..]);

    let arguments = arguments(exchange);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut command = dir.command(&arguments);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for line in &exchange[1..] {
        if line.contains(r#""method":"#) {
            writeln!(input, "{line}").unwrap();
            continue;
        }
        let answer = answers.next().unwrap().unwrap();
        match line.strip_suffix('…') {
            Some(beginning) => assert!(answer.starts_with(beginning), "{answer}"),
            None => assert_eq!(&answer, line),
        }
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    assert_eq!(dir.read("project/notes.md"), "hello\n");
}

#[test]
fn the_settings_of_harden_are_accepted() {
    let [config] = &blocks("harden.md", "toml")[..] else {
        panic!("one config file");
    };
    let dir = TestDir::new();
    dir.file("config.toml", config);
    let tokens = dir.file("tokens", "alice 6b1f0c7d2e934a58b7c1d09e\n");
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
    // Settings are checked before the daemon is looked for.
    let socket = format!("unix://{}", dir.path("no.sock").display());
    let arguments = ["mcp", "--config", "config.toml"];
    let ended = dir
        .run_with(&arguments, &[("DOCKER_HOST", &socket)])
        .code(3);
    ended.complains("no Docker daemon listens");
}

/// Only where the kernel can keep paths from commands. Elsewhere the test says that it was
/// skipped, and that commands are refused.
#[test]
fn the_transcript_of_path_rules_for_commands_is_accurate() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("project")).unwrap();
    let files = [
        blocks("permissions.md", "toml"),
        blocks("permissions.md", "sh"),
    ];
    let mut written = 0;
    for block in files.iter().flatten() {
        let Some((name, content)) = block.split_once('\n') else {
            continue;
        };
        if let Some(name) = name.strip_prefix("# ").filter(|name| !name.contains(' ')) {
            dir.file(name, content);
            written += 1;
        }
    }
    assert_eq!(written, 3);
    dir.file("project/.env", "TOKEN=never-shown\n");
    let [transcript] = &transcripts("permissions.md")[..] else {
        panic!("one transcript");
    };
    let command = transcript[0].strip_prefix("$ agentbox ").unwrap();
    let arguments: Vec<&str> = command.split(' ').collect();

    // The words of the line say nothing about the file.
    dir.run(&["check", "rules.toml", "execute", "sh build.sh"])
        .code(0);
    let found = dir
        .run(&["doctor", "--json", "--backend", "local:project"])
        .json();
    let findings = found["findings"].as_array().unwrap();
    let rules = findings.iter().find(|one| one["name"] == "path rules");
    let rules = rules.unwrap();
    if rules["ok"] != true {
        // No command may get through where the kernel cannot hold it.
        let refused = dir.run(&arguments);
        assert_ne!(refused.code, 0, "{}", refused.err);
        assert!(!refused.out.contains("never-shown") && !refused.out.contains("built"));
        let Some(cause) = backend_testkit::processes::mounts_refused() else {
            panic!("the system lets views be mounted: {rules}");
        };
        eprintln!("skipped: the system lets no view be mounted: {cause}");
        return;
    }
    let ended = dir.run(&arguments).code(0);
    let printed = ended.err + &ended.out;
    let printed: Vec<&str> = printed.lines().collect();
    assert_eq!(printed, transcript[1..]);
    assert_eq!(dir.read("project/.env"), "TOKEN=never-shown\n");
    assert!(!dir.path("project/copy").exists() || dir.read("project/copy").is_empty());
}
