//! Waiting for what others bring about, never for longer than a bound.

use std::time::Duration;

/// The longest wait for anything. Only what never comes about takes this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Between two looks at a state that nothing announces.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// Polls until a condition holds that the cluster or another process brings about
/// without notification.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let holding = async {
        while !holds().await {
            tokio::time::sleep(LOOK).await;
        }
    };
    within(what, holding).await;
}

/// Awaits work that must not hang.
pub(crate) async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, work).await;
    done.unwrap_or_else(|_| panic!("{what} did not come about"))
}

/// Does work in the end of a test, which may be its failure: on a thread of its own,
/// because the test's own runtime cannot be waited for then.
pub(crate) fn at_last(work: impl Future<Output = ()> + Send + 'static) {
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _ = runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await });
    });
    let _ = thread.join();
}
