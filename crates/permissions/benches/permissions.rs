//! Decisions, and what a guard adds, beside pydantic-ai-backend in `cargo xtask bench`.
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
use permissions::command::CommandContext;
use permissions::rules::{PathRule, PathRules};
use permissions::{Action, Guarded, Op, Policy, Preset, Ruleset};

const PATH: &str = "/home/user/project/src/module/file_name.rs";
const COMMAND: &str = "cargo test --all 2>&1 | tail -50 > /tmp/out.txt";

/// `count` denials of every usual kind, of which none matches [`PATH`].
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

/// How long `times` reads take.
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

criterion_group!(benches, rules, command, guard);
criterion_main!(benches);
