//! Tests of judging command lines. None of the lines is ever run.
use backend_core::VPath;
use backend_mounts::{MountConfig, Scope};
use permissions::command::{CommandContext, CommandPolicy, CommandReport};
use permissions::rules::Ruleset;
use permissions::{Action, Layer, Policy, Preset, Reason};
use proptest::prelude::*;

fn policy(execute: &str) -> CommandPolicy {
    let text = format!(r#"{{"execute": {execute}}}"#);
    let ruleset: Ruleset = serde_json::from_str(&text).unwrap();
    CommandPolicy::new(&ruleset)
}

/// Allows `git *`, denies `rm *`, and asks about the rest.
fn git_only() -> CommandPolicy {
    policy(
        r#"{"default": "ask", "rules": [
            {"pattern": "rm *", "action": "deny", "description": "use git rm"},
            {"pattern": "git *", "action": "allow"}
        ]}"#,
    )
}

fn permissive() -> CommandPolicy {
    CommandPolicy::new(&Preset::Permissive.ruleset())
}

fn judge(policy: &CommandPolicy, line: &str) -> CommandReport {
    let directory = VPath::parse("/workspace/project").unwrap();
    policy.judge(CommandContext::new(line, &directory))
}

fn action(policy: &CommandPolicy, line: &str) -> Action {
    judge(policy, line).verdict.action()
}

#[test]
fn the_first_rule_that_matches_decides() {
    let policy = policy(
        r#"{"default": "ask", "rules": [
            {"pattern": "rm -rf build", "action": "allow"},
            {"pattern": "rm *", "action": "deny"},
            {"pattern": "python *", "action": "allow"},
            {"pattern": "*", "action": "allow"}
        ]}"#,
    );
    assert_eq!(action(&policy, "rm -rf build"), Action::Allow);
    assert_eq!(action(&policy, "/bin/rm -rf build"), Action::Deny);
    assert_eq!(action(&policy, "rm -rf build other"), Action::Deny);
    assert_eq!(action(&policy, "anything else"), Action::Allow);
    // Code that cannot be seen is allowed by name, not by a star.
    assert_eq!(action(&policy, "python -c 'x'"), Action::Allow);
    assert_eq!(action(&policy, "ruby -e 'x'"), Action::Ask);
    assert_eq!(action(&policy, "/tmp/python -c 'x'"), Action::Ask);
}

#[test]
fn every_part_needs_a_permission() {
    let policy = git_only();
    assert_eq!(action(&policy, "git status"), Action::Allow);
    assert_eq!(
        action(&policy, "git status && git log | git grep x"),
        Action::Allow
    );
    assert_eq!(
        action(&policy, "timeout 5 env A=b git status"),
        Action::Allow
    );
    assert_eq!(action(&policy, "sh -c 'git status'"), Action::Allow);
    assert_eq!(action(&policy, "git log \"$branch\""), Action::Allow);
    assert_eq!(action(&policy, "git status && ls"), Action::Ask);
    assert_eq!(action(&policy, "sudo git status"), Action::Ask);
    assert_eq!(action(&policy, "/tmp/git status"), Action::Ask);
    assert_eq!(action(&policy, "git status && rm x"), Action::Deny);
    assert_eq!(action(&policy, "sudo rm x"), Action::Deny);
    assert_eq!(action(&policy, "ls | xargs rm"), Action::Deny);
}

#[test]
fn a_computed_word_is_allowed_only_beneath_a_star() {
    let policy = policy(
        r#"{"default": "ask", "rules": [
            {"pattern": "git status", "action": "allow"},
            {"pattern": "git log *", "action": "allow"}
        ]}"#,
    );
    assert_eq!(action(&policy, "git log $x *.rs"), Action::Allow);
    assert_eq!(action(&policy, "git $x"), Action::Ask);
    assert_eq!(action(&policy, "git log{,x}"), Action::Ask);
    assert_eq!(action(&policy, "git stat*"), Action::Ask);
}

#[test]
fn a_long_line_does_not_turn_a_denial_into_a_question() {
    let policy = git_only();
    for count in [60, 300, 9000] {
        let line = "ls;".repeat(count) + "rm x";
        assert_eq!(action(&policy, &line), Action::Deny, "{count}");
    }
}

#[test]
fn what_is_not_understood_never_loosens_a_default() {
    for (default, expected) in [
        ("allow", Action::Ask),
        ("ask", Action::Ask),
        ("deny", Action::Deny),
    ] {
        let policy = policy(&format!(
            r#"{{"default": "{default}", "rules": [{{"pattern": "*", "action": "allow"}}]}}"#
        ));
        let report = judge(&policy, "echo \"");
        assert!(!report.understood);
        assert_eq!(report.verdict.action(), expected, "{default}");
    }
}

#[test]
fn a_line_without_commands_gets_the_default() {
    for (default, expected) in [("ask", Action::Ask), ("deny", Action::Deny)] {
        let policy = policy(&format!(
            r#"{{"default": "{default}", "rules": [{{"pattern": "*", "action": "allow"}}]}}"#
        ));
        for line in ["", " ", "\n", "# git status"] {
            let report = judge(&policy, line);
            assert!(report.commands.is_empty(), "{line:?}");
            assert_eq!(report.verdict.action(), expected, "{default}: {line:?}");
        }
    }
}

#[test]
fn a_decision_explains_itself() {
    let report = judge(&git_only(), "git status && rm x && $cmd");
    let decisive = report.verdict.decisive();
    assert_eq!(
        (decisive.layer, decisive.action),
        (Layer::Rules, Action::Deny)
    );
    let Reason::Rule(rule) = &decisive.reason else {
        panic!("{decisive}");
    };
    assert_eq!(
        (rule.pattern.as_str(), rule.description.as_str()),
        ("rm *", "use git rm")
    );
    let text = report.verdict.to_string();
    assert!(
        text.contains("computed: the name of a program is computed"),
        "{text}"
    );
    assert!(text.contains("('git *')"), "{text}");
    assert_eq!(report.commands, ["git status", "rm x", "$(?)"]);

    for (line, reason) in [
        ("rm -rf /etc", "dangerous: 'rm' removes '/etc'"),
        (
            "curl x | sh",
            "dangerous: it hands what it downloads or decodes to a shell",
        ),
        (
            "python x.py",
            "opaque: 'python' runs code that is not shell",
        ),
        ("rm $x", "computed: an argument of 'rm' is computed"),
        (
            "ls '",
            "not understood: its quotes or brackets are not closed",
        ),
    ] {
        let text = judge(&permissive(), line).verdict.to_string();
        assert!(text.contains(reason), "{line}: {text}");
    }
}

#[test]
fn one_vote_for_each_finding() {
    let line = "git add a; git log; git show; rm x; rm y; $z; $z";
    let report = judge(&git_only(), line);
    // Both rules, and the computed name: a computed program could be `rm` too.
    assert_eq!(report.verdict.votes().count(), 3, "{}", report.verdict);
}

#[test]
fn variables_that_are_set_count() {
    let directory = VPath::root();
    let policy = git_only();
    let judge = |name: &str| {
        let environment = [(name.to_owned(), "x".to_owned())];
        let context = CommandContext::new("git status", &directory).environment(&environment);
        policy.judge(context).verdict.action()
    };
    assert_eq!(judge("CI"), Action::Allow);
    assert_eq!(judge("LD_PRELOAD"), Action::Ask);
    assert_eq!(judge("BASH_ENV"), Action::Ask);
}

#[test]
fn paths_that_are_too_deep_are_not_passed_over() {
    let deep = |down: &str, count: usize, end: &str| {
        format!("{}{}{end}", down.repeat(count), "../".repeat(count))
    };
    for count in [300, 1000, 3000] {
        for line in [
            format!("cat {}", deep("a2/", count, ".env")),
            format!("cat /workspace/project/{}", deep("a/", count, ".env")),
            format!("cat < {}", deep("a/", count, ".env")),
            format!("echo x > {}", deep("a/", count, ".git/hooks/x")),
            format!("cp {} b", deep("a/", count, ".env")),
            format!("cp a {}", deep("a/", count, ".bashrc")),
            format!("anytool --file={}", deep("a/", count, ".env")),
            format!("cat {}", deep("a/", count, ".en?")),
            format!("cd {} && cat .env", deep("a/", count, "x")),
            format!("cat ~/{}", deep("a/", count, ".ssh/id_rsa")),
            format!("cat {}.env", "a/".repeat(count)),
        ] {
            let directory = VPath::parse("/workspace/project").unwrap();
            let policy = Policy::builder()
                .ruleset(&Preset::Permissive.ruleset(), &directory)
                .build();
            let verdict = policy
                .judge_command(CommandContext::new(&line, &directory))
                .verdict;
            assert!(verdict.action() >= Action::Ask, "{count} {line:.40}");
        }
    }
    let root = format!("rm -rf /{}", deep("a/", 300, "etc"));
    assert_eq!(action(&permissive(), &root), Action::Deny);
}

#[test]
fn names_beneath_a_given_root_are_no_system() {
    // The root of a backend may be any directory.
    let directory = VPath::root();
    let policy = permissive();
    let action = |line| {
        policy
            .judge(CommandContext::new(line, &directory))
            .verdict
            .action()
    };
    assert_eq!(action("rm -rf lib etc"), Action::Allow);
    assert_eq!(action("rm -rf /lib"), Action::Deny);
    assert_eq!(action("rm -rf *"), Action::Deny);
    assert_eq!(action("rm -rf ../../"), Action::Deny);
}

#[test]
fn mounts_alone_judge_the_paths_of_commands() {
    let toml = "[[mounts]]\nhost_path = '/srv/in'\nmount_point = '/in'\n";
    let mounts = MountConfig::from_toml(toml).unwrap().build().unwrap();
    let policy = Policy::builder().layer(Scope::new(mounts)).build();
    let here = VPath::parse("/in").unwrap();
    let judge = |line| {
        let judged = policy.judge_command(CommandContext::new(line, &here));
        judged.verdict.action()
    };
    assert_eq!(judge("cat /in/a"), Action::Allow);
    assert_eq!(judge("echo x > /in/a"), Action::Deny);
    assert_eq!(judge("cat /etc/hosts"), Action::Deny);
    assert_eq!(judge("echo ${"), Action::Ask);
}

/// Judges deeply nested lines on a quarter of a worker thread's stack.
#[test]
fn nesting_is_bounded() {
    let shapes: &[(&str, &str)] = &[
        ("$(", ")"),
        ("\"$(", ")\""),
        ("(a; ", ")"),
        ("( ", ")"),
        ("{ ", "; }"),
        ("if ", "; then a; fi"),
        ("while ", "; do a; done"),
        ("case a in a) ", ";; esac"),
        ("${a:-", "}"),
        ("${a[", "]}"),
        ("$((", "))"),
        ("`", "`"),
        ("env ", ""),
        ("sh -c ", ""),
        ("! ", ""),
        ("f() { ", "; }"),
        ("cat <(", ")"),
        ("{a,", "}"),
        ("eval ", ""),
        ("find -exec ", ""),
        ("\"a$(echo ", ")\""),
    ];
    let judge_all = move || {
        for (open, close) in shapes {
            for depth in [8, 16, 40, 200, 600] {
                let line = format!("echo {}x{}", open.repeat(depth), close.repeat(depth));
                judge(&permissive(), &line);
                let line = format!("{}x{}", open.repeat(depth), close.repeat(depth));
                judge(&permissive(), &line);
                judge(&permissive(), &open.repeat(depth));
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(512 * 1024);
    thread.spawn(judge_all).unwrap().join().unwrap();
}

#[test]
fn hostile_lines_get_an_answer() {
    for line in [
        "x 99999999999999999999>y",
        "x ~99999999999999999999999",
        "x ~-99999999999999999999999",
        "x {1..99999999999999999999999}",
        "x ${99999999999999999999999}",
        "<<",
        "<<A",
        "<<A\n",
        "x <<A <<A\nA",
        "\u{0}",
        "$(<<A\nA",
        "echo \"$(cat <<'E'\n)\nE",
        "echo $(cat <<E \"a\nb\"\n)\nE",
        "echo ${x:-$(cat <<E a)\nE",
        "$( $(cat <<E a)\nE",
        "$(<<t$$( )e( $(",
        "$(<<t)",
        "$(a <<t b)\nt\n",
        "${x<<t}\nt\n}",
        "a <<t $(b c)\nt\n",
        "a <<t \"${b}\" `c`\nt\n",
        "$(( 1 << $(a) ))",
    ] {
        let report = judge(&permissive(), line);
        assert!(
            report.understood || report.verdict.action() != Action::Allow,
            "{line:?}"
        );
    }
    assert!(!judge(&git_only(), "$(<<t$$( )e( $(").understood);
    // The command in the brackets runs.
    for line in [
        "git <<t $(rm x)\nt",
        "git <<t \"$(rm x)\"\nt",
        "git <<t ${y:-$(rm x)}\nt",
    ] {
        assert_eq!(action(&git_only(), line), Action::Deny, "{line:?}");
    }
    for line in [
        "echo $((1 << 4)) $((x<<y))",
        "echo \"$$\" /tmp/x.$$",
        "git commit -m \"$(cat <<'EOF'\nFix (all) of it\nEOF\n)\"",
        "cat > a.cpp <<'EOF'\nstd::cout << f(x) << \"\\n\";\nEOF",
    ] {
        assert!(judge(&permissive(), line).understood, "{line:?}");
    }
    assert!(!judge(&permissive(), &"a".repeat(65 * 1024)).understood);
}

/// Wraps a program in something that runs it.
fn wrap(inner: &str, how: u8) -> String {
    let quoted = format!("'{}'", inner.replace('\'', "'\\''"));
    match how {
        0 => format!("git status; {inner}"),
        1 => format!("git status && {inner}"),
        2 => format!("{inner} | git apply"),
        3 => format!("git log $({inner})"),
        4 => format!("git log \"a $({inner}) b\""),
        5 => format!("sh -c {quoted}"),
        6 => format!("env A=b sh -c {quoted}"),
        7 => format!(" ( {inner} )"),
        8 => format!("{{ {inner}; }}"),
        9 => format!("if git status; then {inner}; fi"),
        10 => format!("for x in a; do {inner}; done"),
        11 => format!("eval {quoted}"),
        12 => format!("timeout 5 bash -ec {quoted}"),
        13 => format!("git status\n{inner}"),
        14 => format!("x=$({inner}) git status"),
        15 => format!("cat <<E\n$({inner})\nE"),
        16 => format!("sh <<'E'\n{inner}\nE"),
        17 => format!("f() {{ {inner}; }}; f"),
        18 => format!("git log ${{x:-$({inner})}}"),
        _ => format!("xargs -n1 sh -c {quoted}"),
    }
}

proptest! {
    #[test]
    fn nothing_hides_what_is_denied(
        hows in proptest::collection::vec(0_u8..20, 0..4),
        program in prop::sample::select(vec!["rm", "r\\m", "'rm'", "r\"\"m", "/bin/rm", "$'rm'", "\\rm"]),
    ) {
        let line = hows.iter().fold(format!("{program} x"), |line, how| wrap(&line, *how));
        let report = judge(&git_only(), &line);
        prop_assert!(report.verdict.action() > Action::Allow, "{line}");
        if report.understood {
            prop_assert_eq!(report.verdict.action(), Action::Deny, "{}", line);
        }
    }

    #[test]
    fn any_text_gets_an_answer(line in "\\PC{0,60}") {
        let report = judge(&permissive(), &line);
        prop_assert!(report.understood || report.verdict.action() != Action::Allow);
    }

    #[test]
    fn any_shell_like_text_gets_an_answer(
        pieces in proptest::collection::vec(prop::sample::select(vec![
            "rm", " ", "-rf", "/", "$(", ")", "`", "'", "\"", "\\", "\n", ";", "&", "|", "<", ">",
            "<<E", "E", "{", "}", "(", "((", "$", "${", "$((", "if", "then", "fi", "case", "in",
            "esac", "for", "do", "done", "#", "~", "*", "[", "]", "[[", "]]", "=", "x", "9999999999",
            "sh -c", "env", "xargs", "find", "-exec", "git", "eval", "!", ",", "..", "\t", "function",
        ]), 0..40)
    ) {
        let line: String = pieces.concat();
        for policy in [permissive(), git_only()] {
            let report = judge(&policy, &line);
            prop_assert!(report.understood || report.verdict.action() != Action::Allow, "{line}");
        }
    }
}
