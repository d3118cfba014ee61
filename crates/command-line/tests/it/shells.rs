//! Compares the analysis of programs with the shells of this machine: in a line that is
//! understood, no command that one of them runs is missed. Every command in the
//! programs is `say` or `no`, which print their number.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use backend_core::VPath;
use command_line::{CommandContext, Findings, analyze};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

/// Runs each of its arguments as a program, with an empty `PATH`. Prints the numbers
/// that each says, and then whether it could be parsed.
const DRIVER: &str = r#"
PATH=/nowhere
exec 8>&1 >/dev/null 2>&1 </dev/null
say() { echo "$n $1" >&8; }
no() { echo "$n $1" >&8; return 1; }
n=0
for program do
    (eval "$program")
    (eval "if no; then
$program
fi") 8>/dev/null && echo "$n read" >&8
    n=$((n + 1))
done
wait
"#;

/// The outcome of a program in a shell.
#[derive(Debug, Default, Clone)]
struct Ran {
    numbers: BTreeSet<u32>,
    read: bool,
}

/// Runs every program in `shell`. Returns `None` if that shell is not installed.
fn ran(shell: &str, programs: &[String]) -> Option<Vec<Ran>> {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new(shell)
        .args(["-c", DRIVER, shell])
        .args(programs)
        .current_dir(directory.path())
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let mut all = vec![Ran::default(); programs.len()];
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let (program, said) = line.split_once(' ').unwrap();
        let ran = &mut all[program.parse::<usize>().unwrap()];
        match said {
            "read" => ran.read = true,
            said => ran.numbers.extend(said.parse::<u32>()),
        }
    }
    assert!(
        all.iter().any(|ran| ran.read),
        "{shell}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(all)
}

/// Runs the programs in every installed shell. `sh` may be one of the others.
fn shells(programs: &[String]) -> Vec<(&'static str, Vec<Ran>)> {
    let shells = ["sh", "dash", "bash"].into_iter();
    let all: Vec<_> = shells
        .filter_map(|shell| Some((shell, ran(shell, programs)?)))
        .collect();
    assert!(!all.is_empty(), "there is no shell here");
    all
}

fn find(line: &str) -> Findings {
    analyze(CommandContext::new(line, &VPath::root()))
}

/// Returns the numbers of the commands found in a line.
fn found(findings: &Findings) -> BTreeSet<u32> {
    let commands = findings.commands.iter();
    let said = commands.filter_map(|command| {
        let command = command.to_string();
        let rest = command.strip_prefix("say ").or(command.strip_prefix("no "));
        rest?.split(' ').next()?.parse().ok()
    });
    said.collect()
}

/// Returns the first `count` values of a strategy.
fn some<T>(strategy: impl Strategy<Value = T>, count: usize) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    let mut values = Vec::new();
    while values.len() < count {
        values.push(strategy.new_tree(&mut runner).unwrap().current());
    }
    values
}

/// Generates programs in which `@` stands for the number of a command.
fn program() -> impl Strategy<Value = String> {
    let words = [
        "", " a", " 'b c'", " \"$x\"", " >f", " 2>&1", " # it's", " \\\n d",
    ];
    let simple = (
        prop::sample::select(vec!["say", "no", "x=1 say", "s\\ay", "'no'"]),
        prop::sample::select(words.to_vec()),
    )
        .prop_map(|(name, words)| format!("{name} @{words}"));
    simple.prop_recursive(4, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        let joined = (
            two.clone(),
            prop::sample::select(vec!["\n", "\n&&", "\n||", "\n|", "\n&\n"]),
        );
        prop_oneof![
            joined.prop_map(|((left, right), join)| match join.strip_prefix('\n') {
                Some("") | None => format!("{left}\n{right}"),
                Some(join) => format!("{{ {left}\n}} {join} {{ {right}\n}}"),
            }),
            inner.clone().prop_map(|a| format!("{{ {a}\n}}")),
            inner.clone().prop_map(|a| format!("( :; {a}\n) <&-")),
            inner.clone().prop_map(|a| format!("! {{ {a}\n}}")),
            two.clone()
                .prop_map(|(a, b)| format!("if {a}\nthen {b}\nfi")),
            two.clone()
                .prop_map(|(a, b)| format!("if {a}\nthen {b}\nelif {a}\nthen {b}\nelse {b}\nfi")),
            inner
                .clone()
                .prop_map(|a| format!("for x in a \"}}\" do; do {a}\ndone")),
            inner
                .clone()
                .prop_map(|a| format!("while no @; do {a}\ndone")),
            two.prop_map(|(a, b)| format!("case x in y|if) {a}\n;; (x) {b}\nesac")),
            inner.clone().prop_map(|a| format!("f() {{ {a}\n}}\nf")),
            inner.clone().prop_map(|a| format!("say @ $({a}\n)")),
            inner
                .clone()
                .prop_map(|a| format!("say @ \"a $({a}\n) ${{y:-$({a}\n)}}\"")),
            Just("say @ $(( 1 + $(say @)2 ))".to_owned()),
            inner
                .clone()
                .prop_map(|a| format!("say @ $(case x in (x) {a}\nesac)")),
            inner.clone().prop_map(|a| format!(
                "say @ <<E <<-'F'; no @\n) it's $(say @)\nE\n\t`$(\n\tF\n{a}"
            )),
            inner.prop_map(|a| format!("say @ \"$(say @ <<'E'\n)\nE\n{a}\n)\"")),
        ]
    })
}

/// Numbers the commands of a program, and returns their count with it.
fn numbered(program: &str) -> (String, u32) {
    let mut count = 0;
    let mut text = String::new();
    for part in program.split_inclusive('@') {
        match part.strip_suffix('@') {
            Some(part) => {
                text += &format!("{part}{count}");
                count += 1;
            }
            None => text += part,
        }
    }
    (text, count)
}

#[test]
fn programs_are_read_as_shells_read_them() {
    let programs: Vec<_> = some(program(), 150).iter().map(|p| numbered(p)).collect();
    let texts: Vec<String> = programs.iter().map(|(text, _)| text.clone()).collect();
    for (shell, ran) in shells(&texts) {
        for ((text, count), ran) in programs.iter().zip(ran) {
            assert!(ran.read, "{shell} does not read this:\n{text}");
            let findings = find(text);
            assert!(findings.is_understood(), "{:?}\n{text}", findings.notes);
            assert_eq!(found(&findings), (0..*count).collect(), "{text}");
            assert!(ran.numbers.is_subset(&found(&findings)), "{shell}:\n{text}");
        }
    }
}

/// Fragments of valid and invalid programs. None starts a loop or ends the shell.
const PIECES: &[&str] = &[
    "say @", "say @", "say @", "say @", "no @", "\n", "\n", " ", " ", ";", ";", "&", "|", "&&",
    "||", "(", ")", "{ ", " }", "$(", "`", "'", "\"", "\\", "\\\n", "#", " #", "<<E", "<<-'E'",
    "\nE\n", "\n\tE\n", "<", ">", ">&", "2>", "12>", "'f'", "${x:-", "}", "$((", "))", "((", "if ",
    "then ", "else ", "fi", "x) ", "(x) ", "esac", ";;", ";&", "do ", "done", "[[ ", " ]]", "! ",
    "time ", "x=", "x=(", "x[", "]", "+=", "g()", "$'", "$", "$x", "$$", "=", "é=", "\r", "\t",
    "<(", ">(", "<<<", "&>", "|&", "!", "{", "-",
];
const LONG_PIECES: &[&str] = &["case x in ", "for x in "];

fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select([PIECES, LONG_PIECES].concat())
}

/// Generates programs with a fragment where it does not belong.
fn broken() -> impl Strategy<Value = String> {
    // Leave out programs that could become an endless loop.
    let sound = program().prop_filter("ends", |text| {
        !text.contains("while") && !text.contains("f()")
    });
    let at = any::<prop::sample::Index>();
    (sound, at, 0..5_usize, piece()).prop_map(|(text, at, len, piece)| {
        let mut chars: Vec<char> = text.chars().collect();
        let at = at.index(chars.len());
        chars.splice(at..chars.len().min(at + len), piece.chars());
        chars.into_iter().collect()
    })
}

#[test]
fn nothing_that_a_shell_runs_is_missed() {
    let pieces = proptest::collection::vec(piece(), 1..9);
    let texts = prop_oneof![1 => pieces.prop_map(|pieces| pieces.concat()), 2 => broken()];
    let texts: Vec<_> = some(texts, 300)
        .iter()
        .map(|text| numbered(text).0)
        .collect();
    let all: Vec<_> = texts.iter().map(|text| find(text)).collect();
    let understood = all.iter().filter(|findings| findings.is_understood());
    assert!(understood.count() >= 50);
    for (shell, ran) in shells(&texts) {
        for ((text, findings), ran) in texts.iter().zip(&all).zip(ran) {
            // A computed word may be anything, and rules take that into account.
            let computed = findings.commands.iter().any(|command| {
                let command = command.to_string();
                let mut said = command.split(' ').take(2);
                said.any(|word| word.contains("$(?)"))
            });
            assert!(
                ran.numbers.is_subset(&found(findings)) || computed || !findings.is_understood(),
                "{shell} runs {:?} of {text:?}, and {:?} were found",
                ran.numbers,
                findings.commands
            );
        }
    }
}
