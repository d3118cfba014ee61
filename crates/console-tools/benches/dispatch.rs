//! The overhead of a toolset (calls, definitions, terminal rendering), beside
//! pydantic-ai-backend.
//!
//! - The files are in memory, under the 20 rules of `permissions_rules_20` for reading and
//!   for editing, of which none matches.
//! - The directory has a file of 1 KiB, one of 2,000 lines of 50 bytes, and 18 others.
//! - `tools_read` and `tools_read_2000` read these two, `tools_ls` lists them,
//!   `tools_edit` replaces text in line 1,001 of the large one, and back again.
//! - `tools_definitions` makes a toolset and lists its tools; `tools_definitions_again`
//!   lists those of one that is there.
//! - What a call adds to a read, and what a terminal would show, have no peer.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should stop"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backend_core::ops::ReadOptions;
use backend_core::{Backend, BackendExt as _, VPath};
use backend_state::StateBackend;
use console_tools::{Chat, Toolset, terminal};
use criterion::{Criterion, criterion_group, criterion_main};
use futures::executor::block_on;
use permissions::rules::{PathRule, PathRules};
use permissions::{Action, Ruleset};

const SMALL: &str = "/home/user/project/src/module/small.rs";
const LARGE: &str = "/home/user/project/src/module/large.rs";

/// Returns 20 denials of every common kind, for reading and for editing, none of which
/// matches a file that is used.
fn ruleset() -> Ruleset {
    let pattern = |number: usize| match number % 5 {
        0 => format!("/data/d{number}/**"),
        1 => format!("**/name{number}"),
        2 => format!("**/*.ext{number}"),
        3 => format!("/srv/lit{number}/file.txt"),
        _ => format!("**/*word{number}*"),
    };
    let mut section = PathRules::default();
    section.rules = (0..20)
        .map(|number| PathRule::new(&pattern(number), Action::Deny).unwrap())
        .collect();
    section.default = Action::Allow;
    let mut ruleset = Ruleset::default();
    ruleset.default = Action::Allow;
    ruleset.read = Some(section.clone());
    ruleset.edit = Some(section);
    ruleset
}

/// Creates a directory with a file of 1 KiB, one of 2,000 lines, and 18 others.
fn files() -> StateBackend {
    let backend = StateBackend::new();
    let write = |path: &str, text: String| block_on(backend.write_file(path, text)).unwrap();
    write(SMALL, format!("{}\n", "x".repeat(63)).repeat(16));
    let lines =
        (0..2_000).map(|line| format!("{:<49}\n", format!("let value_{line} = compute();")));
    write(LARGE, lines.collect());
    for number in 0..18 {
        write(
            &format!("/home/user/project/src/module/f{number:02}.rs"),
            "x\n".into(),
        );
    }
    backend
}

fn toolset(backend: &StateBackend) -> Toolset {
    under(backend, ruleset())
}

fn under(backend: &StateBackend, ruleset: Ruleset) -> Toolset {
    let builder = Toolset::builder(Arc::new(backend.clone())).ruleset(ruleset);
    builder.build().unwrap()
}

/// Makes a call, which must succeed.
fn called(chat: &Chat, tool: &str, arguments: &str) -> usize {
    let reply = block_on(chat.call(tool, black_box(arguments)));
    assert!(reply.is_success(), "{}", reply.text);
    reply.text.len()
}

fn elapsed(times: u64, mut once: impl FnMut()) -> Duration {
    let begun = Instant::now();
    (0..times).for_each(|_| once());
    begun.elapsed()
}

fn reading(criterion: &mut Criterion) {
    let backend = files();
    let chat = toolset(&backend).conversation("bench");
    let path = VPath::parse(SMALL).unwrap();
    let arguments = format!(r#"{{"path": "{SMALL}"}}"#);
    criterion.bench_function("tools_dispatch", |bencher| {
        bencher.iter_custom(|times| {
            let tool = elapsed(times, || {
                called(&chat, "read_file", &arguments);
            });
            let bare = elapsed(times, || {
                let read = backend.read(black_box(&path), ReadOptions::default());
                black_box(block_on(read).unwrap());
            });
            tool.saturating_sub(bare)
        });
    });
    criterion.bench_function("tools_read", |bencher| {
        bencher.iter(|| called(&chat, "read_file", &arguments));
    });
    let arguments = format!(r#"{{"path": "{LARGE}"}}"#);
    criterion.bench_function("tools_read_2000", |bencher| {
        bencher.iter(|| called(&chat, "read_file", &arguments));
    });
    criterion.bench_function("tools_ls", |bencher| {
        bencher.iter(|| called(&chat, "ls", r#"{"path": "/home/user/project/src/module"}"#));
    });
}

/// Measures edits, each of which reverts the previous one.
fn editing(criterion: &mut Criterion) {
    let chat = toolset(&files()).conversation("bench");
    called(&chat, "read_file", &format!(r#"{{"path": "{LARGE}"}}"#));
    let edit = |old: &str, new: &str| {
        format!(
            r#"{{"path": "{LARGE}", "old_string": "{old}_1000 = compute();", "new_string": "{new}_1000 = compute();"}}"#
        )
    };
    let mut edits = [edit("value", "other"), edit("other", "value")]
        .into_iter()
        .cycle();
    criterion.bench_function("tools_edit", |bencher| {
        bencher.iter(|| called(&chat, "edit_file", &edits.next().unwrap()));
    });
}

fn definitions(criterion: &mut Criterion) {
    let (backend, rules) = (files(), ruleset());
    criterion.bench_function("tools_definitions", |bencher| {
        bencher.iter(|| black_box(under(&backend, rules.clone()).definitions()));
    });
    let known = toolset(&backend);
    criterion.bench_function("tools_definitions_again", |bencher| {
        bencher.iter(|| black_box(known.definitions()));
    });
}

/// Returns 1 MiB of typical build output: colours, and a progress bar that is redrawn
/// in place.
fn printed() -> Vec<u8> {
    let mut text = String::new();
    let mut line = 0;
    while text.len() < 1024 * 1024 {
        line += 1;
        match line % 10 {
            0 => {
                for percent in (0..=100).step_by(20) {
                    let _ = write!(text, "\r\x1b[2K\x1b[36mbuilding\x1b[0m {percent:>3} %");
                }
                text.push('\n');
            }
            _ => {
                let _ = writeln!(
                    text,
                    "\x1b[1m\x1b[32m   Compiling\x1b[0m some-crate-{line} v1.2.{line} (/src/crates/some-crate-{line})"
                );
            }
        }
    }
    text.truncate(1024 * 1024);
    text.into_bytes()
}

fn output(criterion: &mut Criterion) {
    let printed = printed();
    assert!(!terminal::render(&printed).contains(['\x1b', '\r']));
    criterion.bench_function("tools_terminal", |bencher| {
        bencher.iter(|| terminal::render(black_box(&printed)));
    });
}

criterion_group!(benches, reading, editing, definitions, output);
criterion_main!(benches);
