//! Line hashes of real source text, beside pydantic-ai-backend.
//!
//! - `hashline_render` renders every `crates/*/src/**/*.rs` of this workspace, in the
//!   order of their paths, joined to one text.
//! - `hashline_edit` replaces line 1,000 of the first 2,000 lines of that text.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should stop"
)]

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::{Criterion, criterion_group, criterion_main};
use hashline::{Anchor, ApplyOptions, Edit, Tag, TagWidth, apply, render};

/// Returns the Rust sources of all crates, ordered by path.
fn sources() -> String {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut paths = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        collect(&entry.unwrap().path().join("src"), &mut paths);
    }
    paths.sort();
    let files = paths.iter().map(|path| fs::read_to_string(path).unwrap());
    files.collect()
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

fn rendering(criterion: &mut Criterion) {
    let text = sources();
    criterion.bench_function("hashline_render", |bencher| {
        bencher.iter(|| black_box(render(&text)));
    });
}

fn editing(criterion: &mut Criterion) {
    let text = sources();
    let lines: Vec<&str> = text.split('\n').take(2_000).collect();
    let edit = Edit::Replace {
        start: Anchor::new(1_000, Tag::of(lines[999], TagWidth::Two)),
        end: None,
        content: "replaced".to_owned(),
    };
    let (text, edits) = (lines.join("\n"), [edit]);
    criterion.bench_function("hashline_edit", |bencher| {
        bencher.iter(|| apply(&text, &edits, ApplyOptions::default()).unwrap());
    });
}

criterion_group!(benches, rendering, editing);
criterion_main!(benches);
