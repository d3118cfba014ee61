//! The cost of sessions in memory, for the figures in `docs/benchmarks.md`.
//!
//! `sessions_open_10k` opens ten thousand sessions at once, writes a file in each and reads
//! it. `sessions_call` is a small read through a session, `sessions_call_direct` the same read
//! without one, and `sessions_call_added` the difference. `sessions_reuse` finds a session that
//! is open, as for every request of a returning user.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should stop"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backend_core::ops::ReadOptions;
use backend_core::{Backend, BackendExt as _, Error, Sandbox, VPath};
use backend_state::StateBackend;
use backend_testkit::fake::{FakeSandbox, PausedClock};
use backend_testkit::path;
use criterion::{Criterion, criterion_group, criterion_main};
use sessions::{OpenRequest, SessionManager};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

const SESSIONS: usize = 10_000;

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build().unwrap()
}

/// Creates a manager of sandboxes in memory. Called inside a runtime.
fn manager() -> SessionManager {
    let clock = PausedClock::new();
    let factory = move |request: OpenRequest| {
        let files = StateBackend::new();
        let sandbox = FakeSandbox::new(request.id.as_str(), files, clock.clone());
        async move { Ok::<Arc<dyn Sandbox>, Error>(Arc::new(sandbox)) }
    };
    SessionManager::builder().factory(factory).build().unwrap()
}

/// Opens all sessions at once and uses each.
async fn open_all(manager: &SessionManager) {
    let mut users = JoinSet::new();
    for user in 0..SESSIONS {
        let manager = manager.clone();
        users.spawn(async move {
            let session = manager
                .get_or_create(&format!("user-{user}"))
                .await
                .unwrap();
            session.write_file("notes.md", "value = 1\n").await.unwrap();
            black_box(session.read_to_string("notes.md").await.unwrap());
        });
    }
    while let Some(user) = users.join_next().await {
        user.unwrap();
    }
    assert_eq!(manager.len(), SESSIONS);
}

fn open(criterion: &mut Criterion) {
    let runtime = runtime();
    criterion.bench_function("sessions_open_10k", |bencher| {
        bencher.iter_custom(|rounds| {
            let mut total = Duration::ZERO;
            for _ in 0..rounds {
                total += runtime.block_on(async {
                    let manager = manager();
                    let start = Instant::now();
                    open_all(&manager).await;
                    let elapsed = start.elapsed();
                    manager.shutdown(Duration::from_secs(60)).await;
                    elapsed
                });
            }
            total
        });
    });
}

async fn time(backend: &dyn Backend, file: &VPath, calls: u64) -> Duration {
    let start = Instant::now();
    for _ in 0..calls {
        black_box(backend.read(file, ReadOptions::default()).await.unwrap());
    }
    start.elapsed()
}

fn call(criterion: &mut Criterion) {
    let runtime = runtime();
    let file = path("/notes.md");
    let direct = FakeSandbox::new("direct", StateBackend::new(), PausedClock::new());
    let (manager, session) = runtime.block_on(async {
        direct.write_file("notes.md", "value = 1\n").await.unwrap();
        let manager = manager();
        // With many others beside it.
        open_all(&manager).await;
        let session = manager.get_or_create("user-777").await.unwrap();
        (manager, session)
    });
    criterion.bench_function("sessions_call", |bencher| {
        bencher.iter_custom(|calls| runtime.block_on(time(&session, &file, calls)));
    });
    criterion.bench_function("sessions_call_direct", |bencher| {
        bencher.iter_custom(|calls| runtime.block_on(time(&direct, &file, calls)));
    });
    criterion.bench_function("sessions_call_added", |bencher| {
        bencher.iter_custom(|calls| {
            let without = runtime.block_on(time(&direct, &file, calls));
            let with = runtime.block_on(time(&session, &file, calls));
            with.saturating_sub(without)
        });
    });
    criterion.bench_function("sessions_reuse", |bencher| {
        bencher.iter(|| runtime.block_on(manager.get_or_create("user-777")).unwrap());
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .sample_size(20);
    targets = open, call
}
criterion_main!(benches);
