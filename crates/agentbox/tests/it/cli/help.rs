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

#[test]
fn help_is_what_it_was() {
    let dir = TestDir::new();
    insta::assert_snapshot!("help", dir.run(&["--help"]).code(0).out);
    for command in COMMANDS {
        let help = dir.run(&[command, "-h"]).code(0).out;
        insta::assert_snapshot!(format!("help-{command}"), help);
    }
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
