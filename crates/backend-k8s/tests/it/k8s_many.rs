//! Many pods, and much work in each, at once.

use backend_core::BackendExt as _;
use backend_k8s::K8sSandbox;

use crate::support::place::Place;
use crate::support::sandbox::{purge, run};
use crate::support::wait::within;

/// Number of pods.
const PODS: usize = 30;

/// Writes, edits, reads, lists, searches and runs, all concurrently.
async fn mixed(sandbox: &K8sSandbox, count: usize) {
    let work = (0..count).map(|number| async move {
        let name = format!("d{}/f{number}.txt", number % 7);
        let text = format!("number {number}\n");
        sandbox.write_file(&name, text.clone()).await.unwrap();
        match number % 4 {
            0 => assert_eq!(sandbox.read_to_string(&name).await.unwrap(), text),
            1 => drop(sandbox.replace_text(&name, "number", "n").await.unwrap()),
            2 => assert_eq!(run(sandbox, &format!("cat {name}")).await, text.trim_end()),
            _ => assert!(
                !sandbox
                    .search_text("number")
                    .await
                    .unwrap()
                    .files
                    .is_empty()
            ),
        }
    });
    futures::future::join_all(work).await;
    assert_eq!(
        sandbox.find_files("*.txt").await.unwrap().files.len(),
        count
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn mixed_work_in_thirty_pods() {
    let place = Place::new().await;
    let builder = || place.builder().memory(96 << 20).request_memory(8 << 20);
    let all: Vec<_> = (0..PODS).map(|_| builder().build().unwrap()).collect();
    let work = all.iter().map(|sandbox| mixed(sandbox, 10));
    within("the work in all pods", futures::future::join_all(work)).await;
    futures::future::join_all(all.iter().map(purge)).await;
    place.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn two_hundred_operations_at_once_in_one() {
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    within("the work in one pod", mixed(&sandbox, 200)).await;
    purge(&sandbox).await;
    place.end().await;
}
