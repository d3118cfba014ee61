//! Decisions and the overhead of a guard, beside pydantic-ai-backend.
//!
//! - Rule number i, counted from 0, denies by i modulo 5: `/data/d{i}/**`,
//!   `**/name{i}`, `**/*.ext{i}`, `/srv/lit{i}/file.txt`, `**/*word{i}*`. The path
//!   `/home/user/project/src/module/file_name.rs` matches none of them, so that
//!   every rule counts, and reading it is allowed by default.
//! - The command line is `cargo test --all 2>&1 | tail -50 > /tmp/out.txt` under the
//!   permissive preset. The peer matches its patterns against the whole line and
//!   looks for denied paths among its words; ours is parsed.
//! - What a guard adds to a read has no peer: the difference between a guarded
//!   backend and the same one without a guard.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should stop"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use backend_core::ops::ReadOptions;
use backend_core::{Backend, BackendExt as _, VPath};
use backend_state::StateBackend;
use criterion::{Criterion, criterion_group, criterion_main};
use futures::executor::block_on;
use futures::future::{FutureExt as _, poll_immediate};
use futures::stream::{FuturesUnordered, StreamExt as _};
use permissions::command::CommandContext;
use permissions::rules::{PathRule, PathRules};
use permissions::{Access, Action, Guarded, Op, Policy, Preset, Ruleset};

const PATH: &str = "/home/user/project/src/module/file_name.rs";
const COMMAND: &str = "cargo test --all 2>&1 | tail -50 > /tmp/out.txt";

/// Creates `count` denials of all usual kinds, none of which matches [`PATH`].
fn ruleset(count: usize) -> Ruleset {
    let pattern = |number: usize| match number % 5 {
        0 => format!("/data/d{number}/**"),
        1 => format!("**/name{number}"),
        2 => format!("**/*.ext{number}"),
        3 => format!("/srv/lit{number}/file.txt"),
        _ => format!("**/*word{number}*"),
    };
    let mut section = PathRules::default();
    section.rules = (0..count)
        .map(|number| PathRule::new(&pattern(number), Action::Deny).unwrap())
        .collect();
    let mut ruleset = Ruleset::default();
    ruleset.read = Some(section);
    ruleset
}

fn rules(criterion: &mut Criterion) {
    let path = VPath::parse(PATH).unwrap();
    for count in [20, 200] {
        let rules = ruleset(count).compile(&VPath::root());
        assert_eq!(rules.judge(Op::Read, &path).action, Action::Allow);
        criterion.bench_function(&format!("permissions_rules_{count}"), |bencher| {
            bencher.iter(|| rules.judge(Op::Read, black_box(&path)));
        });
    }
}

fn command(criterion: &mut Criterion) {
    let root = VPath::root();
    let ruleset = Preset::Permissive.ruleset();
    let policy = Policy::builder().ruleset(&ruleset, &root).build();
    let judge = || policy.judge_command(CommandContext::new(black_box(COMMAND), &root));
    assert_eq!(judge().verdict.action(), Action::Allow);
    criterion.bench_function("permissions_command", |bencher| bencher.iter(judge));
}

/// Returns slow lines of 64 kB each.
fn slow_lines() -> Vec<String> {
    let repeated = |part: &str| {
        let mut line = String::new();
        for number in 0.. {
            let next = part.replace("{N}", &number.to_string());
            if line.len() + next.len() > 64 * 1024 - 8 {
                break;
            }
            line.push_str(&next);
        }
        line + "a"
    };
    [
        "a b;",
        "cd x;",
        "cd ..;",
        "cat x{N};",
        "x{N} ",
        "a|",
        "a\n",
        ">x{N};",
        "a/x{N}*b ",
        "-x{N}/y:z ",
        "$x{N}/y ",
        "env a;",
        "f{N}(){ a; };",
        "if a;then b;fi;",
        "sh -c 'cat x{N}';",
        "find a -exec b c{N} \\; ;",
        "git -C a{N} b;",
        "../",
        "a/",
        "make -C a ",
        "rm -r a{N} ",
        "$((x=1)) ",
    ]
    .map(repeated)
    .into_iter()
    .chain([many_directories(), "/proc/self/cwd".repeat(4_000)])
    .collect()
}

/// Returns a line whose words are charged for many directories.
fn many_directories() -> String {
    let cds: String = (0..16).map(|n| format!("cd d{n}/a/b/c/d/e/f;")).collect();
    format!("{cds}foo {}{}", "rm -r ".repeat(15), "a ".repeat(4_000))
}

/// Measures the slowest of the lines.
fn worst(criterion: &mut Criterion) {
    let root = VPath::root();
    let policy = Policy::builder()
        .ruleset(&Preset::Permissive.ruleset(), &root)
        .build();
    let lines = slow_lines();
    let time = |line: &String| {
        let begun = Instant::now();
        black_box(policy.judge_command(CommandContext::new(black_box(line), &root)));
        begun.elapsed()
    };
    // Take the fastest of a few runs of each, so that other load does not count.
    let quickest = |line: &&String| (0..5).map(|_| time(line)).min();
    let slowest = lines.iter().max_by_key(quickest).unwrap();
    criterion.bench_function("permissions_command_worst", |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| time(slowest)).sum());
    });
    let globs: Vec<String> = (0..300).map(|n| format!("src/mod{n}/*.c")).collect();
    let line = format!("wc {}", globs.join(" "));
    let mut rules = ruleset(10_000);
    rules.default = Action::Allow;
    let policy = Policy::builder().ruleset(&rules, &root).build();
    let judge = || policy.judge_command(CommandContext::new(black_box(&line), &root));
    assert_eq!(judge().verdict.action(), Action::Allow);
    criterion.bench_function("permissions_globs_10000", |bencher| bencher.iter(judge));
}

/// Measures reads of one client while lines of others are judged.
fn beside(criterion: &mut Criterion) {
    let (bare, path) = (StateBackend::new(), VPath::parse(PATH).unwrap());
    block_on(bare.write_file(PATH, "x".repeat(1024))).unwrap();
    let policy = Policy::builder().ruleset(&Preset::Permissive.ruleset(), &bare.working_dir());
    let guarded = Guarded::builder(bare).policy(policy.build()).build();
    let lines = slow_lines();
    criterion.bench_function("permissions_read_beside", |bencher| {
        bencher.iter_custom(|times| {
            // Judge them on other threads, repeatedly, until the reads are done.
            let plan = |number: usize| {
                let (guarded, line) = (guarded.clone(), lines.get(number % lines.len()));
                let access = line.map(|line| Access::command(line.as_str()));
                async move { guarded.plan(access).await.is_ok() }.boxed()
            };
            let mut judging: FuturesUnordered<_> = (0..16).map(plan).collect();
            let mut taken = Duration::ZERO;
            for _ in 0..times {
                while let Some(Some(_)) = block_on(poll_immediate(judging.next())) {
                    judging.push(plan(judging.len()));
                }
                taken += reads(&guarded, &path, 1);
            }
            taken
        });
    });
}

/// Measures the duration of `times` reads.
fn reads(backend: &dyn Backend, path: &VPath, times: u64) -> Duration {
    let begun = Instant::now();
    for _ in 0..times {
        let read = backend.read(black_box(path), ReadOptions::default());
        black_box(block_on(read).unwrap());
    }
    begun.elapsed()
}

fn guard(criterion: &mut Criterion) {
    let bare = StateBackend::new();
    let path = VPath::parse(PATH).unwrap();
    block_on(bare.write_file(PATH, "x".repeat(1024))).unwrap();
    let policy = Policy::builder().ruleset(&ruleset(20), &bare.working_dir());
    let guarded = Guarded::builder(bare.clone())
        .policy(policy.build())
        .build();
    criterion.bench_function("permissions_guard_read", |bencher| {
        bencher.iter_custom(|times| {
            let guarded = reads(&guarded, &path, times);
            guarded.saturating_sub(reads(&bare, &path, times))
        });
    });
}

criterion_group!(benches, rules, command, worst, beside, guard);
criterion_main!(benches);
