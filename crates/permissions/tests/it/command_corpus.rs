//! Judges corpora of command lines with rulesets. None of the lines is ever run.
use std::path::Path;

use backend_core::VPath;
use permissions::command::{CommandContext, CommandPolicy, CommandReport};
use permissions::rules::Ruleset;
use permissions::{Action, Policy, Preset, Verdict};

use crate::support::corpus::corpus;

fn permissive() -> CommandPolicy {
    CommandPolicy::new(&Preset::Permissive.ruleset())
}

/// Judges a line with all layers, including the path rules.
fn whole(ruleset: &Ruleset, line: &str) -> Verdict {
    let directory = VPath::parse("/workspace").unwrap();
    let policy = Policy::builder().ruleset(ruleset, &directory).build();
    let command = CommandContext::new(line, &directory);
    policy.judge_command(command).verdict
}

/// Allows a few programs, denies one, and asks about everything else.
fn git_only() -> Ruleset {
    let text = r#"{
        "default": "ask",
        "read": {"default": "allow"},
        "execute": {
            "default": "ask",
            "rules": [
                {"pattern": "rm *", "action": "deny"},
                {"pattern": "git *", "action": "allow"},
                {"pattern": "ls *", "action": "allow"},
                {"pattern": "cat *", "action": "allow"},
                {"pattern": "cargo *", "action": "allow"},
                {"pattern": "echo *", "action": "allow"},
                {"pattern": "find *", "action": "allow"},
                {"pattern": "rg *", "action": "allow"},
                {"pattern": "sed *", "action": "allow"},
                {"pattern": "sort *", "action": "allow"},
                {"pattern": "tar *", "action": "allow"}
            ]
        }
    }"#;
    serde_json::from_str(text).unwrap()
}

/// Allows everything, including opaque code, except reading one directory.
fn vault() -> Ruleset {
    let text = r#"{
        "default": "allow",
        "read": {
            "default": "allow",
            "rules": [{"pattern": "/workspace/vault/**", "action": "deny"}]
        },
        "execute": {"default": "allow", "opaque": "allow"}
    }"#;
    serde_json::from_str(text).unwrap()
}

/// Allows everyday programs by name.
fn programs() -> Ruleset {
    let allowed = "apt-get cc gcc less make man patch rsync ssh systemd-run true zip";
    let rule = |name| format!(r#"{{"pattern": "{name} *", "action": "allow"}}"#);
    let rules: Vec<String> = allowed.split(' ').map(rule).collect();
    let text = format!(
        r#"{{"default": "allow", "execute": {{"default": "ask", "rules": [{}]}}}}"#,
        rules.join(",")
    );
    serde_json::from_str(&text).unwrap()
}

fn judge(policy: &CommandPolicy, line: &str) -> CommandReport {
    let directory = VPath::parse("/workspace").unwrap();
    policy.judge(CommandContext::new(line, &directory))
}

#[test]
fn dangerous_commands_are_denied() {
    let entries = corpus("dangerous.txt");
    assert!(entries.len() >= 560, "{}", entries.len());
    // The rules make no difference here.
    let mut lenient = Preset::Permissive.ruleset();
    let rules = r#"{"default": "allow", "opaque": "allow", "rules": [{"pattern": "*", "action": "allow"}]}"#;
    lenient.execute = Some(serde_json::from_str(rules).unwrap());
    let policies = [permissive(), CommandPolicy::new(&lenient)];
    let wrong: Vec<_> = entries
        .iter()
        .filter(|(_, line)| {
            policies
                .iter()
                .any(|policy| judge(policy, line).verdict.action() != Action::Deny)
        })
        .map(|(_, line)| format!("{line}\n    {}", judge(&policies[0], line).verdict))
        .collect();
    assert!(wrong.is_empty(), "not denied:\n{}", wrong.join("\n"));
}

#[test]
fn everyday_commands_are_allowed() {
    let entries = corpus("everyday.txt");
    assert!(entries.len() >= 720, "{}", entries.len());
    let ruleset = Preset::Permissive.ruleset();
    let others: Vec<_> = entries
        .iter()
        .map(|(_, line)| (line, whole(&ruleset, line)))
        .filter(|(_, verdict)| verdict.action() != Action::Allow)
        .map(|(line, verdict)| format!("{line}\n    {verdict}"))
        .collect();
    assert!(
        others.len() * 50 <= entries.len(),
        "{} of {} are not allowed:\n{}",
        others.len(),
        entries.len(),
        others.join("\n")
    );
    // Also if the working directory is the root of the backend.
    let policy = permissive();
    for directory in ["/workspace", "/"] {
        let directory = VPath::parse(directory).unwrap();
        let denied = |line: &str| {
            let command = CommandContext::new(line, &directory);
            policy.judge(command).verdict.action() == Action::Deny
        };
        let denied: Vec<_> = entries.iter().filter(|(_, line)| denied(line)).collect();
        assert!(denied.is_empty(), "taken for dangerous: {denied:?}");
    }
}

#[test]
fn no_bypass_is_allowed() {
    let entries = corpus("bypass.txt");
    assert!(entries.len() >= 1480, "{}", entries.len());
    let (permissive, git_only) = (Preset::Permissive.ruleset(), git_only());
    let (vault, programs) = (vault(), programs());
    let mut allowed = Vec::new();
    let mut denied = 0;
    for (section, line) in &entries {
        let verdict = match section.as_str() {
            "permissive" => whole(&permissive, line),
            "git-only" => whole(&git_only, line),
            "vault" => whole(&vault, line),
            "programs" => whole(&programs, line),
            other => panic!("no ruleset is called {other}"),
        };
        match verdict.action() {
            Action::Allow => allowed.push(format!("{section}: {line}\n    {verdict}")),
            Action::Ask => {}
            Action::Deny => denied += 1,
        }
    }
    assert!(
        allowed.is_empty(),
        "{} allowed:\n{}",
        allowed.len(),
        allowed.join("\n")
    );
    assert_eq!(denied, DENIED, "of {} attempts", entries.len());
}

/// The number of attempts that are denied outright rather than asked about.
const DENIED: usize = 844;

mod needs_everyday {
    use super::*;

    /// Lines from scripts of other projects, one per line of a file.
    #[test]
    #[ignore = "needs everyday: cargo xtask test-all --only everyday"]
    fn lines_of_other_projects_are_not_refused() {
        #[expect(
            clippy::disallowed_methods,
            reason = "the stage says where the lines are"
        )]
        let file = std::env::var("EVERYDAY_LINES").unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(lines.len() >= 1000, "{}", lines.len());
        let policy = permissive();
        let (mut refused, mut asked) = (Vec::new(), 0);
        for line in &lines {
            let verdict = |directory| {
                let directory = VPath::parse(directory).unwrap();
                policy.judge(CommandContext::new(line, &directory)).verdict
            };
            let verdicts = [verdict("/workspace"), verdict("/")];
            let worst = verdicts.iter().max_by_key(|verdict| verdict.action());
            match worst.map(|verdict| (verdict.action(), verdict)) {
                Some((Action::Deny, verdict)) => refused.push(format!("{line}\n    {verdict}")),
                Some((Action::Ask, _)) => asked += 1,
                _ => {}
            }
        }
        let percent = |count: usize| count as f64 * 100.0 / lines.len() as f64;
        let figures = format!(
            "{} lines: {} refused ({:.2} %), {asked} asked about ({:.1} %)",
            lines.len(),
            refused.len(),
            percent(refused.len()),
            percent(asked)
        );
        std::fs::write(Path::new(&file).with_extension("figures"), &figures).unwrap();
        println!("{figures}\n{}", refused.join("\n"));
        assert!(percent(refused.len()) < 1.0, "{figures}");
    }
}
