//! Help, completions, manual pages, and wrong usage.

use crate::support::{TestDir, names};

const COMMANDS: [&str; 17] = [
    "mcp",
    "mcp-config",
    "call",
    "tools",
    "run",
    "forward",
    "watch",
    "check",
    "doctor",
    "runtimes",
    "sandboxes",
    "agent",
    "sessions",
    "shell",
    "tour",
    "completions",
    "man",
];

/// The page with the help of all commands.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/command-line.md");

const HEAD: &str = "\
# Command line

Made from the program by a test; do not edit.
[The program](../crates/agentbox/README.md) says how to use it, [Options](options.md) lists the settings of the config file.
The common options, with which each help ends, are shown once.
";

/// Adds a command, and those beneath it.
fn add_help(page: &mut String, dir: &TestDir, command: &[&str], common: &str) {
    let short = [command, &["-h"]].concat();
    let help = dir.run(&short).code(0).out;
    let help = match help.strip_suffix(common) {
        Some(help) => help,
        None => panic!("{command:?} does not end with the common options: {help}"),
    };
    let level = "#".repeat(command.len() + 1);
    let command_line = command.join(" ");
    page.push_str(&format!(
        "\n{level} `agentbox {command_line}`\n\n```text\n{}\n```\n",
        help.trim_end()
    ));
    for inner in subcommands(help) {
        add_help(page, dir, &[command, &[inner]].concat(), common);
    }
}

/// Returns the commands that a help lists, except for `help` itself.
fn subcommands(help: &str) -> impl Iterator<Item = &str> {
    let list = help
        .split_once("\nCommands:\n")
        .map_or("", |(_, list)| list);
    let list = list.split_once("\n\n").map_or(list, |(list, _)| list);
    let names = list.lines().filter_map(|line| {
        let is_name = line.starts_with("  ") && !line.starts_with("   ");
        line.split_whitespace().next().filter(|_| is_name)
    });
    names.filter(|name| *name != "help")
}

/// `UPDATE_REFERENCE=1` in the environment rewrites the page.
#[test]
fn the_page_of_the_command_line_is_current() {
    let dir = TestDir::new();
    let all = dir.run(&["--help"]).code(0).out;
    let mut page = format!("{HEAD}\n```text\n{}\n```\n", all.trim_end());
    // One line between paragraphs has blanks.
    page = page.replace("\n          \n", "\n\n");
    let tools = dir.run(&["tools", "-h"]).code(0).out;
    let common = &tools[tools.find("\nCommon options:").unwrap()..];
    let told: Vec<&str> = subcommands(&all).collect();
    for command in COMMANDS {
        assert!(told.contains(&command), "{command}");
    }
    for command in told {
        add_help(&mut page, &dir, &[command], common);
    }
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap();
    let mut lines = written.lines().zip(page.lines());
    assert_eq!(
        lines.find(|(written, now)| written != now),
        None,
        "run this test with UPDATE_REFERENCE=1 and look at the change"
    );
    assert_eq!(written.len(), page.len());
}

#[test]
fn the_version_is_told() {
    let version = TestDir::new().run(&["--version"]).code(0).out;
    assert_eq!(
        version,
        concat!("agentbox ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn wrong_usage_is_64() {
    let dir = TestDir::new();
    for wrong in [
        &["frobnicate"][..],
        &["--backend"],
        &["call"],
        &["run"],
        &["run", "ls"],
        &["call", "ls", "--jsn"],
        &["check", "default", "fly", "/a"],
        &["mcp-config", "emacs"],
        &["completions", "csh"],
        &["--edit-format", "ed", "tools"],
        &["--profile", "fat", "tools"],
        &["--log", "loud", "tools"],
        &["mcp", "--http", "nowhere"],
    ] {
        let ended = dir.run(wrong).code(64);
        assert!(ended.err.contains("error: "), "{wrong:?}: {}", ended.err);
        assert_eq!(ended.out, "");
    }
    let ended = dir.run(&["mcp-config", "emacs"]);
    for client in ["claude-desktop", "cursor", "vscode", "zed", "python"] {
        assert!(ended.err.contains(client), "{}", ended.err);
    }
}

#[test]
fn every_shell_has_completions() {
    let dir = TestDir::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = dir.run(&["completions", shell]).code(0).out;
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn manual_pages_are_written() {
    let dir = TestDir::new();
    let page = dir.run(&["man"]).code(0).out;
    assert!(page.contains(".TH agentbox 1"), "{page}");
    dir.run(&["man", "pages/man1"]).code(0);
    let pages = names(&dir.path("pages/man1"));
    assert!(pages.contains(&"agentbox.1".to_owned()), "{pages:?}");
    for command in COMMANDS {
        assert!(
            pages.contains(&format!("agentbox-{command}.1")),
            "{pages:?}"
        );
    }
    dir.file("taken", "");
    dir.run(&["man", "taken/man1"])
        .code(3)
        .complains("give another directory");
}

#[test]
fn what_is_piped_has_no_colours() {
    let dir = TestDir::new();
    for arguments in [
        &["tools"][..],
        &["--help"],
        &["doctor"],
        &["check", "default", "read", "a"],
    ] {
        let ended = dir.run(arguments);
        assert!(!ended.out.contains('\u{1b}') && !ended.err.contains('\u{1b}'));
    }
}

#[test]
fn a_reader_that_goes_is_no_failure() {
    let dir = TestDir::new();
    for arguments in [&["tools", "--json"][..], &["completions", "bash"], &["man"]] {
        let mut child = dir.start(arguments);
        // Closed before anything is read.
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            !said.contains("error") && !said.contains("panicked"),
            "{said}"
        );
    }
}
