//! Tests that the cost of judging a line is bounded, is linear in its length, and does
//! not delay other calls. Costs are counted in steps: no test here looks at a clock.

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use backend_core::ops::Command;
use backend_core::{BackendExt as _, ErrorKind, Sandbox as _, VPath};
use backend_testkit::fails;
use futures::future::{join_all, poll_immediate};
use permissions::command::{CommandContext, MAX_STEPS};
use permissions::rules::{CommandRule, CommandRules, PathRule, PathRules};
use permissions::{Action, CommandJudgement, Guarded, Policy, Preset, Reason, Refusal, Ruleset};

use crate::support::scene::local;

fn permissive() -> Policy {
    let root = VPath::root();
    Policy::builder()
        .ruleset(&Preset::Permissive.ruleset(), &root)
        .build()
}

fn judge(policy: &Policy, line: &str) -> CommandJudgement {
    policy.judge_command(CommandContext::new(line, &VPath::root()))
}

fn is_too_complicated(judged: &CommandJudgement) -> bool {
    let why = &judged.verdict.decisive().reason;
    judged.verdict.action() == Action::Deny
        && matches!(why, Reason::Refused(refusal) if **refusal == Refusal::TooComplicated)
}

/// Parts that lines are built from by repetition.
const PARTS: &[&str] = &[
    "a b;",
    "cd x;",
    "cd ..;",
    "cat x{N};",
    "x{N} ",
    "a|",
    "a&&",
    "a\n",
    ">x{N};",
    "./x{N};",
    "x{N}=y;",
    "'a' ",
    "\"$a\" ",
    "$(a) ",
    "`a`;",
    "a[b]*c ",
    "*a{N}*b ",
    "{a,b} ",
    "-x{N} ",
    "a=b:c ",
    "env a;",
    "(a);",
    "f{N}(){ a; };",
    "if a;then b;fi;",
    "for x in a;do b;done;",
    "a <<E{N}\nE{N}\n",
    "a <b{N} ",
    "ln -s a{N} b{N};",
    "find a -exec b \\; ;",
    "git -C a b;",
    "~/a ",
    "/proc/self/cwd/",
    "../",
    "a/",
    "é",
    "rm -r a{N};",
    "make -C a ",
    "git -C a b{N};",
    "tar -C a b ",
    "cd d{N}/a/b;",
    "$((x{N}=1)) ",
    "a <<E{N}\n./x y/z\nE{N}\n",
    "[[ ! -f a{N} ]];",
    "f{N}(){ a; };f{N};",
    "f{N}(){ cd a; };f{N};",
    "for x in a;do cd b{N};done;",
    "while a;do b >c{N};done;",
    "trap a{N} EXIT;cd b{N};",
];

/// Repeats a part up to `bytes`, with its repetitions numbered.
fn line(part: &str, bytes: usize) -> String {
    let mut line = String::new();
    for number in 0.. {
        if line.len() >= bytes {
            break;
        }
        line.push_str(&part.replace("{N}", &number.to_string()));
    }
    line.push('a');
    line
}

#[test]
fn steps_grow_with_the_line() {
    let policy = permissive();
    let mut wrong = String::new();
    for part in PARTS {
        let steps = |bytes| judge(&policy, &line(part, bytes)).steps;
        let (short, long) = (steps(1_000), steps(4_000));
        // Allow twice the linear cost: numbers get longer, and directories deeper.
        let linear = short * 8 + 2_000;
        if long > linear && long < MAX_STEPS {
            writeln!(wrong, "{part:?}: {short}, then {long}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The step limit bounds the work for any line, so this test ends.
#[test]
fn no_line_takes_more_than_its_steps() {
    let policy = permissive();
    for part in PARTS {
        let judged = judge(&policy, &line(part, 60_000));
        assert!(judged.steps <= MAX_STEPS, "{part:?}");
        if judged.steps == MAX_STEPS {
            assert!(is_too_complicated(&judged), "{part:?}: {}", judged.verdict);
        }
    }
    let judged = judge(&policy, &line("cd x;", 60_000));
    assert!(is_too_complicated(&judged), "{}", judged.verdict);
    assert_eq!(
        judged.verdict.to_string().lines().next(),
        Some(
            "command: deny, the command line is too complicated to be judged; run it in parts, or put it into a file"
        )
    );
}

/// If a line may be in many directories, every word is charged for each of them.
#[test]
fn many_directories_are_charged_for() {
    let policy = permissive();
    let cds: String = (0..16).map(|n| format!("cd d{n}/a/b/c/d/e/f;")).collect();
    for rest in [
        format!("foo {}{}", "rm -r ".repeat(15), "a ".repeat(4_000)),
        format!("rm -r {}", "a ".repeat(4_000)),
        format!("make {}", "-C a ".repeat(2_000)),
        format!(
            "cat {}",
            format!("{}{} ", "/proc/1/root".repeat(80), "/..".repeat(200)).repeat(40)
        ),
    ] {
        let judged = judge(&policy, &format!("{cds}{rest}"));
        assert!(
            is_too_complicated(&judged),
            "{} steps, {}",
            judged.steps,
            judged.verdict
        );
    }
}

/// Loops and calls are walked again, but the cost does not multiply unseen.
#[test]
fn nested_loops_and_calls_are_bounded() {
    let policy = permissive();
    for body in ["cd a", "cd ..", "cd /b && cd a", "cd $x", ">a{N}", "x={N}"] {
        for depth in [4, 12, 30] {
            let open = |number: usize| {
                let body = body.replace("{N}", &number.to_string());
                format!("for x in a; do {body}; ")
            };
            let open: String = (0..depth).map(open).collect();
            let judged = judge(&policy, &format!("{open}a; {}", "done; ".repeat(depth)));
            assert!(judged.steps <= MAX_STEPS, "{body} {depth}");
            assert!(depth > 4 || !is_too_complicated(&judged), "{body}");
        }
    }
    // Each function calls all the others twice.
    let calls: String = (0..8)
        .map(|number| format!("f{number}; f{number}; "))
        .collect();
    let all: String = (0..8)
        .map(|number| format!("f{number}() {{ cd d{number}; {calls}}}; "))
        .collect();
    let judged = judge(&policy, &format!("{all} f0"));
    assert!(judged.steps <= MAX_STEPS);
    // Definitions of one name are not collected without end.
    let judged = judge(&policy, &"f() { a; }; f; ".repeat(100));
    assert_eq!(judged.verdict.action(), Action::Ask, "{}", judged.verdict);
}

/// A line must not overflow the stack, which would end the process.
#[test]
fn a_test_that_is_negated_over_and_over_is_not_read() {
    let policy = permissive();
    for bytes in [100, 8_000, 60_000] {
        for part in ["! ", "!\n"] {
            let judged = judge(&policy, &format!("[[ {}x ]]", part.repeat(bytes / 2)));
            assert_ne!(judged.verdict.action(), Action::Allow);
        }
    }
    let judged = judge(&policy, "[[ ! -f x ]] && echo a; [[ ! -f y ]] && echo b");
    assert_eq!(judged.verdict.action(), Action::Allow, "{}", judged.verdict);
}

/// Lines that people write are far from the limit.
#[test]
fn long_everyday_lines_are_judged() {
    let policy = permissive();
    let files: Vec<String> = (0..2_000).map(|n| format!("src/module_{n}.rs")).collect();
    let document = "let value = one + two;\n".repeat(2_000);
    for line in [
        format!("wc -l {}", files.join(" ")),
        format!("cat > a.rs <<'EOF'\n{document}EOF"),
        "cargo test -p a 2>&1 | tail -5 && git add -A;\n".repeat(200),
    ] {
        let judged = judge(&policy, &line);
        let start: String = line.chars().take(40).collect();
        assert_eq!(
            judged.verdict.action(),
            Action::Allow,
            "{start}: {}",
            judged.steps
        );
    }
}

#[test]
fn work_that_nobody_waits_for_ends() {
    let stop = AtomicBool::new(true);
    let root = VPath::root();
    let context = CommandContext::new("echo a", &root).stop(&stop);
    assert!(is_too_complicated(&permissive().judge_command(context)));
}

#[test]
fn many_rules_cost_a_glob_little() {
    let rules = |count: usize| {
        let pattern = |number: usize| match number % 5 {
            0 => format!("/data/d{number}/**"),
            1 => format!("**/name{number}"),
            2 => format!("**/*.ext{number}"),
            3 => format!("/srv/lit{number}/file.txt"),
            _ => format!("**/*word{number}*"),
        };
        let mut section = PathRules::default();
        let numbers = 0..count;
        section.rules = numbers
            .map(|number| PathRule::new(&pattern(number), Action::Deny).unwrap())
            .collect();
        let mut ruleset = Ruleset::default();
        ruleset.default = Action::Allow;
        ruleset.read = Some(section);
        let mut commands = CommandRules::default();
        commands.default = Action::Allow;
        let command = |number| CommandRule::new(&format!("tool{number} *"), Action::Deny).unwrap();
        commands.rules = (0..count).map(command).collect();
        ruleset.execute = Some(commands);
        Policy::builder().ruleset(&ruleset, &VPath::root()).build()
    };
    let globs: Vec<String> = (0..300).map(|n| format!("src/mod{n}/*.c")).collect();
    let line = format!("wc {}", globs.join(" "));
    let (few, many) = (judge(&rules(10), &line), judge(&rules(10_000), &line));
    assert_eq!(many.verdict.action(), Action::Allow, "{}", many.verdict);
    assert!(
        many.steps < few.steps * 2,
        "{} and {}",
        few.steps,
        many.steps
    );
    let policy = rules(10_000);
    for denied in [
        "cat /data/d9990/x*",
        "cat /data/d999?/x",
        "cat /d*/d9990/x",
        "cat /srv/*/file.txt",
        "cat src/name999?",
        "cat src/*.ext9992",
        "cat src/*9994*",
        "tool9999 x",
    ] {
        assert_eq!(
            judge(&policy, denied).verdict.action(),
            Action::Deny,
            "{denied}"
        );
    }
}

#[tokio::test]
async fn others_are_served_while_lines_are_judged() {
    let (_directory, backend) = local();
    backend.write_file("/a", "text").await.unwrap();
    let guarded = Guarded::builder(backend).policy(permissive()).build();
    let line = line("cd x;", 60_000);
    // All are started, but none is judged on this thread, the only one of this runtime.
    // Some may already be judged when they are polled.
    let (mut waiting, mut results) = (Vec::new(), Vec::new());
    for _ in 0..16 {
        let mut call = Box::pin(guarded.execute(Command::new(&line)));
        match poll_immediate(call.as_mut()).await {
            None => waiting.push(call),
            Some(result) => results.push(result),
        }
    }
    assert!(
        !waiting.is_empty(),
        "all were judged by those who polled them"
    );
    assert_eq!(guarded.read_to_string("/a").await.unwrap(), "text");
    let ran = guarded.execute(Command::new("cat a")).await.unwrap();
    assert_eq!(ran.stdout.text(), "text");
    // Dropped calls are given up. The others are denied.
    waiting.truncate(4);
    results.extend(join_all(waiting).await);
    for result in results {
        let error = fails(ErrorKind::PermissionDenied, result);
        assert_eq!(Refusal::of(&error), Some(&Refusal::TooComplicated));
    }
}
