//! The cost of routing, for the figures in `docs/benchmarks.md`.
//!
//! `composite_read_1k` is a small read through a thousand routes, `composite_read_direct` the same
//! read without a composite, and `composite_read_added` the difference. `composite_route_1k`
//! measures the route lookup alone: resolving a route's own prefix calls no child.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should stop"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backend_composite::{Composite, Route};
use backend_core::ops::{GlobQuery, ReadOptions, ResolveOptions};
use backend_core::{Backend, BackendExt as _, VPath};
use backend_state::StateBackend;
use backend_testkit::path;
use criterion::{Criterion, criterion_group, criterion_main};
use futures::executor::block_on;

/// Creates a composite with a default and a thousand routes, each to a store with one file.
fn composite() -> Composite {
    let mut builder = Composite::builder().default_backend(Arc::new(StateBackend::new()));
    for number in 0..1_000 {
        let prefix = path(&format!("/tenants/t{number:04}/files"));
        builder = builder.route(Route::new(prefix, Arc::new(StateBackend::new())));
    }
    let composite = builder.build().unwrap();
    for number in 0..1_000 {
        let file = format!("/tenants/t{number:04}/files/notes.md");
        block_on(composite.write_file(&file, "value = 1\n".repeat(10))).unwrap();
    }
    composite
}

fn route(criterion: &mut Criterion) {
    let composite = composite();
    let prefix = path("/tenants/t0777/files");
    criterion.bench_function("composite_route_1k", |bencher| {
        bencher.iter(|| block_on(composite.resolve(&prefix, ResolveOptions::default())).unwrap());
    });
}

fn read(criterion: &mut Criterion) {
    let composite = composite();
    let file = path("/tenants/t0777/files/notes.md");
    criterion.bench_function("composite_read_1k", |bencher| {
        bencher.iter(|| block_on(composite.read(&file, ReadOptions::default())).unwrap());
    });
    let child = composite
        .remove_route(&path("/tenants/t0777/files"))
        .unwrap();
    let below = path("/notes.md");
    criterion.bench_function("composite_read_direct", |bencher| {
        bencher.iter(|| block_on(child.backend().read(&below, ReadOptions::default())).unwrap());
    });
    let child_again = Arc::clone(child.backend());
    composite.add_route(child).unwrap();
    let time = |backend: &dyn Backend, path: &VPath, calls| {
        let start = Instant::now();
        for _ in 0..calls {
            black_box(block_on(backend.read(path, ReadOptions::default())).unwrap());
        }
        start.elapsed()
    };
    criterion.bench_function("composite_read_added", |bencher| {
        bencher.iter_custom(|calls| {
            let direct = time(&*child_again, &below, calls);
            time(&composite, &file, calls).saturating_sub(direct)
        });
    });
}

fn search(criterion: &mut Criterion) {
    let composite = composite();
    let query = GlobQuery::new("*.md", VPath::root());
    assert_eq!(
        block_on(composite.glob(query.clone())).unwrap().files.len(),
        1_000
    );
    criterion.bench_function("composite_glob_1k", |bencher| {
        bencher.iter(|| block_on(composite.glob(query.clone())).unwrap());
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .sample_size(20);
    targets = route, read, search
}
criterion_main!(benches);
