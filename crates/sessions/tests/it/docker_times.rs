//! How long sessions in containers take to open, and what an idle one uses. The numbers
//! are printed; only their order is checked, because they depend on the machine.

use std::time::{Duration, Instant};

use sessions::{DockerEngine, Engine as _, SessionId, SessionManager};

use crate::support::docker::{Cleanup, engine, manager, new_space, run, runtime};

/// Sessions of each kind. The median counts.
const SAMPLES: usize = 7;

fn median<T: Ord + Copy>(mut samples: Vec<T>) -> T {
    samples.sort_unstable();
    samples[samples.len() / 2]
}

/// Opens a session and runs its first command.
async fn open(manager: &SessionManager, id: &str) -> Duration {
    let begun = Instant::now();
    let session = manager.get_or_create(id).await.unwrap();
    run(&session, "true").await;
    begun.elapsed()
}

/// Opens new sessions, with the pools of the engine filled each time.
async fn times(engine: &DockerEngine, kind: &str) -> Duration {
    let manager = manager(engine);
    let mut samples = Vec::new();
    for number in 0..SAMPLES {
        engine.warm().await.unwrap();
        samples.push(open(&manager, &format!("{kind}{number}")).await);
    }
    median(samples)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_ready_container_is_faster_than_a_new_one() {
    let (space, root) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let cold = engine(&space, root.path()).build().unwrap();
    let pooled = engine(&space, root.path())
        .pool(runtime(), 1)
        .build()
        .unwrap();
    // The first one looks at the image.
    open(&manager(&cold), "first").await;
    let new = times(&cold, "cold").await;
    let ready = times(&pooled, "pooled").await;
    let sessions = manager(&cold);
    let mut woken = Vec::new();
    let mut memory = Vec::new();
    for number in 0..SAMPLES {
        let id = format!("cold{number}");
        let usage = cold.usage(&SessionId::new(&id).unwrap()).await.unwrap();
        memory.extend(usage.and_then(|usage| usage.memory_bytes));
        sessions.release(&id).await.unwrap();
        woken.push(open(&sessions, &id).await);
    }
    let woken = median(woken);
    let memory = median(memory) / 1024;
    println!("cold {new:?}, ready {ready:?}, woken {woken:?}, idle {memory} KiB");
    assert!(ready < new, "{ready:?} and {new:?}");
    for record in sessions.list().await.unwrap() {
        sessions.purge(record.id.as_str()).await.unwrap();
    }
    pooled.close().await.unwrap();
}
