//! Watches that end, expire and fail.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::pods::tests::{Answer, cluster_of, object};

fn listed(version: u64, names: &[&str]) -> Answer {
    let items: Vec<_> = names.iter().map(|name| object(name, 1)).collect();
    Answer::Json(json!({
        "apiVersion": "v1", "kind": "PodList",
        "metadata": {"resourceVersion": version.to_string()}, "items": items,
    }))
}

fn event(kind: &str, name: &str, version: u64) -> Value {
    json!({"type": kind, "object": object(name, version)})
}

fn bookmark(version: u64) -> Value {
    let metadata = json!({"resourceVersion": version.to_string()});
    json!({"type": "BOOKMARK", "object": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}})
}

/// Shows a change as one word for each pod.
fn shown(change: Option<Result<PodChange>>) -> String {
    match change {
        Some(Ok(PodChange::Listed(pods))) => {
            let names: Vec<_> = pods.iter().map(|pod| &*pod.name).collect();
            format!("listed {}", names.join(" "))
        }
        Some(Ok(PodChange::Changed(pod))) => format!("changed {}", pod.name),
        Some(Ok(PodChange::Deleted(pod))) => format!("deleted {}", pod.name),
        Some(Err(error)) => format!("{:?}", error.kind()),
        None => "end".to_owned(),
    }
}

/// Returns the first items of a watch. The answers are told the number of the request.
async fn items(
    count: usize,
    answer: impl Fn(usize, &str) -> Answer + Send + Sync + 'static,
) -> Vec<String> {
    let number = AtomicUsize::new(0);
    let (cluster, _) = cluster_of(move |asked| {
        let number = number.fetch_add(1, Ordering::Relaxed);
        answer(number, &asked.target)
    });
    let changes = watch(&cluster, "a=b").unwrap().take(count);
    changes.map(|change| shown(Some(change))).collect().await
}

#[tokio::test]
async fn a_watch_that_ends_is_resumed_where_it_ended() {
    let seen = items(5, |number, target| match number {
        0 => listed(10, &["a"]),
        1 => {
            assert!(target.contains("resourceVersion=10"), "{target}");
            assert!(target.contains("labelSelector=a%3Db"), "{target}");
            Answer::Events(vec![
                event("ADDED", "b", 11),
                event("MODIFIED", "a", 12),
                event("DELETED", "b", 13),
                bookmark(20),
            ])
        }
        2 => {
            assert!(target.contains("resourceVersion=20"), "{target}");
            Answer::Events(vec![event("ADDED", "c", 21)])
        }
        _ => Answer::Never,
    })
    .await;
    let expected = [
        "listed a",
        "changed b",
        "changed a",
        "deleted b",
        "changed c",
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_version_that_is_forgotten_is_listed_again() {
    let expired =
        json!({"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "code": 410}});
    let seen = items(3, move |number, _| match number {
        0 => listed(10, &["a"]),
        1 => Answer::Events(vec![expired.clone()]),
        2 => listed(30, &["b"]),
        3 => Answer::Refused(410),
        4 => listed(40, &["c"]),
        _ => Answer::Never,
    })
    .await;
    assert_eq!(seen, ["listed a", "listed b", "listed c"]);
}

#[tokio::test]
async fn failures_are_told_and_survived() {
    let seen = items(4, |number, _| match number {
        0 => Answer::Refused(403),
        1 => listed(10, &["a"]),
        2 => Answer::Refused(500),
        // After several failures in a row, changes may have been missed.
        3 => listed(20, &["b"]),
        _ => Answer::Never,
    })
    .await;
    let expected = ["PermissionDenied", "listed a", "Unavailable", "listed b"];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn listeners_share_one_watch() {
    let (cluster, requests) = cluster_of(|asked| match asked.target.contains("watch=true") {
        true => Answer::Never,
        false => listed(10, &["a"]),
    });
    let mut first = watch(&cluster, "a=b").unwrap();
    assert_eq!(shown(first.next().await), "listed a");
    // The list is told to later ones without a request.
    let mut second = watch(&cluster.clone(), "a=b").unwrap();
    assert_eq!(shown(second.next().await), "listed a");
    let lists = |target: &str| {
        let requests = lock(&requests);
        let of = requests
            .iter()
            .filter(|asked| asked.target.contains(target));
        of.filter(|asked| !asked.target.contains("watch=true"))
            .count()
    };
    assert_eq!(lists("a%3Db"), 1);
    let mut other = watch(&cluster, "c").unwrap();
    assert_eq!(shown(other.next().await), "listed a");
    assert_eq!(lists("labelSelector=c"), 1);
    // The last listener ends the watch, and the next one begins another.
    let key = (cluster.id(), "work".to_owned(), "a=b".to_owned());
    drop((first, second));
    while lock(&HUBS).contains_key(&key) {
        tokio::task::yield_now().await;
    }
    let mut third = watch(&cluster, "a=b").unwrap();
    assert_eq!(shown(third.next().await), "listed a");
    assert_eq!(lists("a%3Db"), 2);
}

#[tokio::test]
async fn a_listener_that_missed_changes_gets_the_whole_list() {
    let (cluster, _) = cluster_of(|asked| match asked.target.contains("watch=true") {
        true => Answer::Never,
        false => listed(10, &["a"]),
    });
    let mut changes = watch(&cluster, "slow").unwrap();
    assert_eq!(shown(changes.next().await), "listed a");
    let key = (cluster.id(), "work".to_owned(), "slow".to_owned());
    let hub = lock(&HUBS).get(&key).map(Arc::clone).unwrap();
    for number in 0..=2 * WAITING {
        let object = object(&format!("pod-{}", number % 2), 11);
        let object = serde_json::from_value(object).unwrap();
        hub.apply(object, &mut String::new(), PodChange::Changed);
    }
    assert_eq!(shown(changes.next().await), "listed a pod-0 pod-1");
}

#[test]
fn pauses_grow_and_stay_short() {
    for failures in 1..100 {
        assert!(pause(failures) >= FIRST_PAUSE / 2);
        assert!(pause(failures) < 2 * LAST_PAUSE);
    }
    assert!(pause(20) >= LAST_PAUSE / 2);
}
