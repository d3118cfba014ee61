use std::sync::Arc;
use std::sync::mpsc;

use backend_core::{Error, ErrorKind, Result};
use backend_state::StateBackend;
use backend_sync::{Cancel, Engine, SyncBackend};
use backend_testkit::fails;
use backend_testkit::fake::Intercepted;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use crate::support::slow::{Slow, in_time};

fn multi(workers: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder
        .worker_threads(workers)
        .enable_all()
        .build()
        .unwrap()
}

fn single() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A backend that waits for timers of the runtime it is polled on.
fn slow() -> SyncBackend {
    SyncBackend::new(Arc::new(Slow::default()))
}

/// Writes and reads, waiting for timers on the way.
fn works(files: &SyncBackend) {
    files.write_file("a/b.txt", "hello\n").unwrap();
    assert_eq!(files.read_to_string("a/b.txt").unwrap(), "hello\n");
    assert_eq!(files.search_text("hel+o").unwrap().matches, 1);
}

fn engines() -> Vec<Engine> {
    vec![Engine::shared(), Engine::own(1).unwrap()]
}

#[test]
fn plain_thread() {
    in_time(|| {
        for engine in engines() {
            works(&slow().on(&engine));
        }
        let runtime = multi(1);
        works(&slow().on(&Engine::borrowed(runtime.handle()).unwrap()));
    });
}

#[test]
fn inside_a_multi_thread_runtime() {
    in_time(|| {
        for engine in engines() {
            let files = slow().on(&engine);
            let runtime = multi(1);
            let inside = files.clone();
            runtime.block_on(async move { works(&inside) });
            let task = runtime.spawn(async move { works(&files) });
            runtime.block_on(task).unwrap();
        }
    });
}

#[test]
fn inside_a_current_thread_runtime() {
    in_time(|| {
        for engine in engines() {
            let files = slow().on(&engine);
            let runtime = single();
            let inside = files.clone();
            runtime.block_on(async move { works(&inside) });
            let task = runtime.spawn(async move { works(&files) });
            runtime.block_on(task).unwrap();
        }
    });
}

#[test]
fn inside_a_local_set() {
    in_time(|| {
        for engine in engines() {
            let lender = multi(1);
            let borrowed = Engine::borrowed(lender.handle()).unwrap();
            for runtime in [multi(2), single()] {
                for files in [slow().on(&engine), slow().on(&borrowed)] {
                    let local = LocalSet::new();
                    local.block_on(&runtime, async move {
                        tokio::task::spawn_local(async move { works(&files) })
                            .await
                            .unwrap();
                    });
                }
            }
        }
    });
}

#[test]
fn where_blocking_is_allowed() {
    in_time(|| {
        let runtime = multi(2);
        let borrowed = Engine::borrowed(runtime.handle()).unwrap();
        let mut engines = engines();
        // Also on the borrowed runtime itself.
        engines.push(borrowed);
        for engine in engines {
            let files = slow().on(&engine);
            let (one, two, three) = (files.clone(), files.clone(), files.clone());
            runtime.block_on(async move {
                let blocking = tokio::task::spawn_blocking(move || works(&one));
                blocking.await.unwrap();
                let in_place = async move { tokio::task::block_in_place(|| works(&two)) };
                tokio::spawn(in_place).await.unwrap();
            });
            let _context = runtime.enter();
            works(&three);
        }
    });
}

#[test]
fn inside_drop_of_a_task() {
    struct WritesLast(SyncBackend);
    impl Drop for WritesLast {
        fn drop(&mut self) {
            works(&self.0);
        }
    }
    in_time(|| {
        for engine in engines() {
            let files = slow().on(&engine);
            for runtime in [multi(1), single()] {
                let last = WritesLast(files.clone());
                let task = runtime.spawn(async move {
                    let _last = last;
                    std::future::pending::<()>().await;
                });
                runtime.block_on(async move {
                    tokio::task::yield_now().await;
                    task.abort();
                    assert!(task.await.unwrap_err().is_cancelled());
                });
                // And while the runtime itself is dropped.
                let last = WritesLast(files.clone());
                runtime.spawn(async move {
                    let _last = last;
                    std::future::pending::<()>().await;
                });
            }
        }
    });
}

#[test]
fn a_thread_that_ends() {
    struct WritesLast(SyncBackend);
    impl Drop for WritesLast {
        fn drop(&mut self) {
            works(&self.0);
        }
    }
    thread_local! {
        static LAST: std::cell::RefCell<Option<WritesLast>> = const { std::cell::RefCell::new(None) };
    }
    in_time(|| {
        std::thread::spawn(|| {
            let last = WritesLast(slow());
            LAST.with(|kept| *kept.borrow_mut() = Some(last));
            // Tokio's own thread-local is created later, so it is destroyed earlier.
            works(&slow());
        })
        .join()
        .unwrap();
    });
}

#[test]
fn a_task_of_the_borrowed_runtime_is_told() {
    in_time(|| {
        let runtime = multi(2);
        let files = slow().on(&Engine::borrowed(runtime.handle()).unwrap());
        let refused = |result: Result<String>| {
            let error = fails(ErrorKind::Unsupported, result);
            assert!(error.to_string().contains("spawn_blocking"), "{error}");
        };
        works(&files);
        let inside = files.clone();
        runtime.block_on(async move { refused(inside.read_to_string("a/b.txt")) });
        // Both workers at once.
        let tasks = [files.clone(), files.clone()]
            .map(|files| runtime.spawn(async move { files.read_to_string("a/b.txt") }));
        for task in tasks {
            refused(runtime.block_on(task).unwrap());
        }
    });
}

#[test]
fn every_worker_of_a_runtime_at_once() {
    in_time(|| {
        for engine in engines() {
            let runtime = multi(2);
            let files = slow().on(&engine);
            let calls = (0..8).map(|_| {
                let files = files.clone();
                runtime.spawn(async move { works(&files) })
            });
            let calls: Vec<_> = calls.collect();
            for call in calls {
                runtime.block_on(call).unwrap();
            }
        }
    });
}

#[test]
fn calls_within_calls() {
    in_time(|| {
        for engine in engines() {
            // A backend whose every call makes another blocking call, on the engine's
            // only thread.
            let under = slow().on(&engine);
            let nested = Intercepted::new(StateBackend::new(), move |_| {
                works(&under);
                Ok(())
            });
            let files = SyncBackend::new(Arc::new(nested)).on(&engine);
            works(&files);
            single().block_on(async { works(&files) });
        }
    });
}

#[test]
fn a_runtime_that_ends_meanwhile() {
    in_time(|| {
        for from_a_runtime in [false, true] {
            let runtime = multi(1);
            let (backend, began) = Slow::stuck();
            let files = SyncBackend::new(Arc::new(backend));
            let files = files.on(&Engine::borrowed(runtime.handle()).unwrap());
            let caller = std::thread::spawn(move || {
                let error = if from_a_runtime {
                    single().block_on(async { files.read_to_string("a") })
                } else {
                    files.read_to_string("a")
                };
                (error.unwrap_err(), files.read_to_string("a").unwrap_err())
            });
            began.recv().unwrap();
            runtime.shutdown_background();
            let (meanwhile, later) = caller.join().unwrap();
            assert_eq!(meanwhile.kind(), ErrorKind::Unavailable, "{meanwhile}");
            assert_eq!(later.kind(), ErrorKind::Unavailable, "{later}");
        }
    });
}

#[test]
fn dropped_anywhere() {
    in_time(|| {
        for runtime in [multi(1), single()] {
            let files = slow().on(&Engine::own(1).unwrap());
            works(&files);
            runtime.block_on(async move { drop(files) });
        }
        // Dropped by its own last task: the engine ends itself.
        let engine = Engine::own(1).unwrap();
        let (told, done) = mpsc::channel();
        let (alone, is_alone) = tokio::sync::oneshot::channel();
        let last = engine.clone();
        engine
            .run(async move {
                tokio::spawn(async move {
                    is_alone.await.unwrap();
                    drop(last);
                    told.send(()).unwrap();
                });
            })
            .unwrap();
        drop(engine);
        alone.send(()).unwrap();
        done.recv().unwrap();
        // A borrowed runtime that ends first.
        let runtime = multi(1);
        let files = slow().on(&Engine::borrowed(runtime.handle()).unwrap());
        drop(runtime);
        drop(files);
    });
}

#[test]
fn dropping_an_engine_cancels_what_runs_on_it() {
    struct Told(mpsc::Sender<()>);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.send(()).unwrap();
        }
    }
    in_time(|| {
        let engine = Engine::own(1).unwrap();
        let (told, cancelled) = mpsc::channel();
        let spawn = async move {
            let told = Told(told);
            tokio::spawn(async move {
                let _told = told;
                std::future::pending::<()>().await;
            });
        };
        engine.run(spawn).unwrap();
        assert!(cancelled.try_recv().is_err());
        drop(engine);
        cancelled.recv().unwrap();
    });
}

#[test]
fn panics_reach_the_caller() {
    in_time(|| {
        let panics = Intercepted::new(StateBackend::new(), |_| -> Result<()> {
            std::panic::resume_unwind(Box::new("on purpose"))
        });
        for engine in engines() {
            let files = SyncBackend::new(Arc::new(panics.clone())).on(&engine);
            let payload = std::panic::catch_unwind(|| files.read_to_string("a")).unwrap_err();
            assert_eq!(payload.downcast_ref(), Some(&"on purpose"));
            let inside = files.clone();
            let runtime = single();
            let payload =
                std::panic::catch_unwind(|| runtime.block_on(async { inside.read_to_string("a") }));
            assert_eq!(payload.unwrap_err().downcast_ref(), Some(&"on purpose"));
            // The engine still works.
            works(&slow().on(&engine));
            single().block_on(async { works(&slow().on(&engine)) });
        }
    });
}

#[test]
fn another_thread_cancels() {
    in_time(|| {
        for inside in [false, true] {
            let (backend, began) = Slow::stuck();
            let dropped = backend.dropped();
            let cancel = Cancel::new();
            let files = SyncBackend::new(Arc::new(backend)).cancelled_by(&cancel);
            let caller = std::thread::spawn(move || {
                if inside {
                    multi(1).block_on(async { files.read_to_string("a") })
                } else {
                    files.read_to_string("a")
                }
            });
            began.recv().unwrap();
            cancel.cancel();
            fails(ErrorKind::Cancelled, caller.join().unwrap());
            dropped.recv().unwrap();
        }
    });
}

#[test]
fn errors_of_the_engine_say_what_was_done() {
    let runtime = multi(1);
    let files = slow().on(&Engine::borrowed(runtime.handle()).unwrap());
    drop(runtime);
    let path = files.path("a").unwrap();
    let error: Error = files.stat(&path, Default::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().starts_with("stat: "), "{error}");
}

#[test]
fn handles_can_be_shared_and_shown() {
    fn shared<T: Send + Sync + Clone + std::fmt::Debug + std::panic::RefUnwindSafe>(_: &T) {}
    let files = slow();
    shared(&files);
    shared(&Cancel::new());
    assert!(format!("{files:?}").contains("Engine::Shared"), "{files:?}");
}
