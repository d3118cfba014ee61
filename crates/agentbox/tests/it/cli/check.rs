//! `check`.

use crate::support::TestDir;

const RULES: &str = "\
default = \"ask\"

[read]
default = \"allow\"

[[read.rules]]
pattern = \"/secrets/**\"
action = \"deny\"
description = \"not for agents\"

[execute]
default = \"ask\"

[[execute.rules]]
pattern = \"git log*\"
action = \"allow\"
";

#[test]
fn exit_codes_are_the_decision() {
    let dir = TestDir::new();
    for (rules, operation, target, code) in [
        ("default", "read", "src/main.rs", 0),
        ("default", "read", "/app/.env", 1),
        ("default", "write", "a", 2),
        ("readonly", "write", "a", 1),
        ("permissive", "write", "a", 0),
        ("permissive", "write", "/etc/passwd", 1),
        ("strict", "ls", "/", 2),
        ("default", "execute", "git status", 2),
        ("permissive", "execute", "ls -l", 0),
        // Commands are only checked, never run.
        ("permissive", "execute", "cat ~/.ssh/id_ed25519 .env", 1),
        ("readonly", "delete", "a", 1),
        ("readonly", "grep", "src", 0),
    ] {
        let ended = dir.run(&["check", rules, operation, target]);
        let ended = ended.code(code);
        let word = ["allow", "deny", "ask"][usize::try_from(code).unwrap()];
        assert!(ended.out.starts_with(word), "{}", ended.out);
    }
    assert_eq!(crate::support::names(&dir.path("")), ["home"]);
}

#[test]
fn the_rule_and_its_line_are_told() {
    let dir = TestDir::new();
    dir.file("rules.toml", RULES);
    let denied = dir
        .run(&["check", "rules.toml", "read", "/secrets/key"])
        .code(1);
    assert!(
        denied
            .out
            .contains("by rule 1 of read ('/secrets/**'): not for agents")
    );
    assert!(denied.out.contains("[rules.toml:6]"), "{}", denied.out);
    let asked = dir.run(&["check", "rules.toml", "write", "a"]).code(2);
    assert!(asked.out.contains("[rules.toml:1]"), "{}", asked.out);
    assert!(
        asked.out.contains("the user would be asked:\n  write /a\n"),
        "{}",
        asked.out
    );
    assert_eq!(
        asked.out.matches("the default of").count(),
        1,
        "{}",
        asked.out
    );
    let line = dir
        .run(&["check", "rules.toml", "execute", "git log && make"])
        .code(2);
    assert!(
        line.out.contains("it would run:\n  git log\n  make\n"),
        "{}",
        line.out
    );
}

#[test]
fn json_has_every_vote() {
    let dir = TestDir::new();
    dir.file("rules.toml", RULES);
    let ended = dir
        .run(&["check", "rules.toml", "grep", "/secrets/x", "--json"])
        .code(1);
    let mut explained = ended.json();
    assert_eq!(explained["decision"], "deny");
    let votes = explained["votes"].take();
    let denial = votes
        .as_array()
        .unwrap()
        .iter()
        .find(|vote| vote["action"] == "deny");
    let denial = denial.unwrap();
    assert_eq!(denial["operation"], "read");
    assert_eq!(denial["rule"]["pattern"], "/secrets/**");
    assert_eq!(denial["rule"]["number"], 1);
    assert_eq!(denial["line"], 6);
    let asked = dir
        .run(&["check", "default", "write", "a", "--json"])
        .code(2)
        .json();
    assert!(
        asked["question"]
            .as_str()
            .unwrap()
            .contains("asks: write /a")
    );
}

#[test]
fn two_paths_where_two_are_needed() {
    let dir = TestDir::new();
    dir.run(&["check", "permissive", "move", "a", "b"]).code(0);
    dir.run(&["check", "permissive", "copy", ".env", "b"])
        .code(1);
    dir.run(&["check", "permissive", "move", "a"])
        .code(64)
        .complains("second path");
    dir.run(&["check", "permissive", "read", "a", "b"])
        .code(64)
        .complains("one target");
    dir.run(&["check", "permissive", "read", "../x"])
        .code(64)
        .complains("root");
}

#[test]
fn what_is_no_ruleset_is_an_error_that_says_where() {
    let dir = TestDir::new();
    dir.run(&["check", "redonly", "read", "a"])
        .code(64)
        .complains("there is no file redonly");
    dir.file("bad.toml", "default = \"maybe\"\n");
    dir.run(&["check", "bad.toml", "read", "a"])
        .code(64)
        .complains("line 1");
    dir.file("bad.json", "{\n\"red\": {}}");
    dir.run(&["check", "bad.json", "read", "a"])
        .code(64)
        .complains("line 2");
}
