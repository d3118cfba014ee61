//! The overhead of a blocking call: from a plain thread, and from inside a runtime.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should stop"
)]

use std::hint::black_box;
use std::sync::Arc;

use backend_core::ops::StatOptions;
use backend_core::{Backend as _, VPath};
use backend_state::{Snapshot, StateBackend};
use backend_sync::{BlockingAdapter, Engine, SyncBackend};
use criterion::{Criterion, criterion_group, criterion_main};
use tokio::runtime::{Builder, Runtime};

fn backend() -> (StateBackend, VPath) {
    let files = Snapshot::from_files([("/a/file.txt", "hello\n")]).unwrap();
    let backend = StateBackend::builder().snapshot(files).build();
    (backend, VPath::parse("/a/file.txt").unwrap())
}

/// The call without an adapter.
fn bare(criterion: &mut Criterion) {
    let (backend, path) = backend();
    criterion.bench_function("sync_bare_stat", |bencher| {
        bencher.iter(|| {
            let entry = backend.stat(black_box(&path), StatOptions::default());
            futures::executor::block_on(entry).unwrap()
        });
    });
}

fn plain_thread(criterion: &mut Criterion) {
    let (backend, path) = backend();
    let lender = Runtime::new().unwrap();
    let borrowed = Engine::borrowed(lender.handle()).unwrap();
    for (name, engine) in [
        ("sync_stat_plain_thread", Engine::shared()),
        ("sync_stat_plain_thread_borrowed", borrowed),
    ] {
        let files = SyncBackend::new(Arc::new(backend.clone())).on(&engine);
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                files
                    .stat(black_box(&path), StatOptions::default())
                    .unwrap()
            });
        });
    }
}

fn inside_a_runtime(criterion: &mut Criterion) {
    let (backend, path) = backend();
    let files = SyncBackend::new(Arc::new(backend));
    let single = Builder::new_current_thread().build().unwrap();
    let multi = Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    for (name, runtime) in [
        ("sync_stat_in_current_thread", single),
        ("sync_stat_in_multi_thread", multi),
    ] {
        criterion.bench_function(name, |bencher| {
            runtime.block_on(async {
                bencher.iter(|| {
                    files
                        .stat(black_box(&path), StatOptions::default())
                        .unwrap()
                });
            });
        });
    }
}

/// The reverse: async, blocking, async.
fn wrapped_back(criterion: &mut Criterion) {
    let (backend, path) = backend();
    let adapter = BlockingAdapter::new(SyncBackend::new(Arc::new(backend)));
    criterion.bench_function("sync_stat_wrapped_back", |bencher| {
        bencher.iter(|| {
            let entry = adapter.stat(black_box(&path), StatOptions::default());
            futures::executor::block_on(entry).unwrap()
        });
    });
}

criterion_group!(benches, bare, plain_thread, inside_a_runtime, wrapped_back);
criterion_main!(benches);
