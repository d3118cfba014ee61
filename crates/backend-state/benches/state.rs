//! Files in memory, beside the same work in pydantic-ai-backend.
//!
//! - The 20k store has 100 directories `/d0000` .. `/d0099` with 200 files each,
//!   `f000.py`, `f001.txt`, `f002.py` and so on, so that half of them are Python.
//!   Each file has 20 lines, and each line contains `value`.
//! - The 1M store has 5,000 such directories; each file has one line.
//! - `state_write` overwrites `/d0050/f100.py` with 16 lines of 64 bytes.
//! - The listings are of `/d0050`, the searches start at `/`.
//! - A snapshot of the peer is a shallow copy of the map of files: it has none of its own.
//! - The 100 MB file is `big.txt` with 2,000,000 lines of 50 bytes, newline included; 50
//!   lines are read from the line with index 1,000,000. In memory the peer keeps a list of
//!   lines, so that it only cuts it; on disk it is its `LocalBackend` that reads.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should stop"
)]

use std::hint::black_box;
use std::io::{Read as _, Seek as _, Write as _};
use std::time::Duration;

use backend_core::ops::{GlobQuery, GrepQuery, LsOptions, TextOptions, WriteOptions};
use backend_core::text::{Progress, WindowScanner};
use backend_core::{Backend as _, VPath};
use backend_state::{Snapshot, StateBackend};
use bytes::Bytes;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use futures::executor::block_on;

/// Creates a store of `directories` times 200 files, half of them Python.
fn store(directories: usize, content: impl Fn(usize, usize) -> String) -> StateBackend {
    let content = &content;
    let files = (0..directories).flat_map(|directory| {
        (0..200).map(move |file| {
            let extension = if file % 2 == 0 { "py" } else { "txt" };
            let path = format!("/d{directory:04}/f{file:03}.{extension}");
            (path, content(directory, file))
        })
    });
    StateBackend::builder()
        .snapshot(Snapshot::from_files(files).unwrap())
        .build()
}

/// Returns twenty lines, each with the word `value`.
fn twenty_lines(directory: usize, file: usize) -> String {
    let lines = (0..20).map(|line| format!("value_{line:02} = compute({directory}, {file})"));
    lines.collect::<Vec<_>>().join("\n")
}

fn write(criterion: &mut Criterion) {
    let backend = store(100, twenty_lines);
    let path = VPath::parse("/d0050/f100.py").unwrap();
    let content = Bytes::from(format!("{}\n", "x".repeat(63)).repeat(16));
    criterion.bench_function("state_write", |bencher| {
        bencher.iter(|| {
            let content = content.clone().into();
            block_on(backend.write(&path, content, WriteOptions::default())).unwrap()
        });
    });
}

fn list(criterion: &mut Criterion) {
    let path = VPath::parse("/d0050").unwrap();
    for (name, directories) in [("state_ls_20k", 100), ("state_ls_1m", 5_000)] {
        let backend = store(directories, |_, _| "value = 1".to_owned());
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| block_on(backend.ls(&path, LsOptions::default())).unwrap());
        });
    }
}

fn snapshot(criterion: &mut Criterion) {
    let backend = store(5_000, |_, _| "value = 1".to_owned());
    criterion.bench_function("state_snapshot_1m", |bencher| {
        bencher.iter(|| black_box(backend.snapshot()));
    });
}

fn search(criterion: &mut Criterion) {
    let backend = store(100, twenty_lines);
    let glob = GlobQuery::new("**/*.py", VPath::root()).limit(usize::MAX);
    criterion.bench_function("state_glob_20k", |bencher| {
        bencher.iter(|| block_on(backend.glob(glob.clone())).unwrap());
    });
    let grep = GrepQuery::new("value", VPath::root()).max_matches(usize::MAX);
    let matches = block_on(backend.grep(grep.clone())).unwrap().matches;
    assert_eq!(matches, 400_000);
    criterion.bench_function("state_grep_20k", |bencher| {
        bencher.iter_batched(
            || grep.clone(),
            |query| block_on(backend.grep(query)).unwrap(),
            BatchSize::PerIteration,
        );
    });
}

/// Returns a hundred megabytes in two million lines.
fn large_content() -> Bytes {
    Bytes::from(format!("{}\n", "x".repeat(49)).repeat(2_000_000))
}

fn window(criterion: &mut Criterion) {
    let snapshot = Snapshot::from_files([("/big.txt", large_content())]).unwrap();
    let backend = StateBackend::builder().snapshot(snapshot).build();
    let path = VPath::parse("/big.txt").unwrap();
    let options = TextOptions::default().offset(1_000_000).limit(50);
    criterion.bench_function("state_window_100mb", |bencher| {
        bencher.iter(|| block_on(backend.read_text(&path, options)).unwrap());
    });
}

/// Does the work of every backend over a file system: reads, and stops when the
/// window is full.
fn window_of_a_file(criterion: &mut Criterion) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&large_content()).unwrap();
    let request = TextOptions::default().offset(1_000_000).limit(50);
    let mut buffer = vec![0; 64 * 1024];
    criterion.bench_function("text_window_100mb", |bencher| {
        bencher.iter(|| {
            file.rewind().unwrap();
            let mut scanner = WindowScanner::new(request).unwrap();
            loop {
                let length = file.read(&mut buffer).unwrap();
                if length == 0 || scanner.push(&buffer[..length]) == Progress::Done {
                    return scanner.finish().unwrap();
                }
            }
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .sample_size(20);
    targets = write, list, snapshot, search, window, window_of_a_file
}
criterion_main!(benches);
