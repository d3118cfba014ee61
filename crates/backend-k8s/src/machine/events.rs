//! The cluster's notes about a pod, which outlive it for a while. They are for messages
//! only: a user who may not read them gets shorter ones.

use std::time::Duration;

use backend_core::Quoted;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use tokio::time::timeout;

use crate::cluster::Cluster;

/// The notes that are read.
const MAX_EVENTS: u32 = 100;
/// The time for reading them.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// The reasons of notes about a pod that had to go.
const EVICTIONS: [&str; 4] = [
    "Evicted",
    "NodeNotReady",
    "Preempted",
    "TaintManagerEviction",
];

/// Returns why a pod that no longer exists was evicted, if it was.
pub(super) async fn eviction(cluster: &Cluster, uid: &str) -> Option<String> {
    let events = read(cluster, uid).await;
    let event = latest(&events, |event| {
        let reason = event.reason.as_deref().unwrap_or_default();
        EVICTIONS.contains(&reason)
    })?;
    let message = event.message.as_deref().unwrap_or_default();
    Some(format!("was evicted ({})", Quoted::new(message)))
}

/// Returns the latest problem with a pod.
pub(super) async fn problem(cluster: &Cluster, uid: &str) -> Option<String> {
    let events = read(cluster, uid).await;
    let event = latest(&events, |event| event.type_.as_deref() == Some("Warning"))?;
    let message = event.message.as_deref().unwrap_or_default();
    Some(format!("cannot be started: {}", Quoted::new(message)))
}

async fn read(cluster: &Cluster, uid: &str) -> Vec<Event> {
    let Ok(api): backend_core::Result<Api<Event>> = cluster.api() else {
        return Vec::new();
    };
    let about = format!("involvedObject.uid={uid}");
    let about = ListParams::default().fields(&about).limit(MAX_EVENTS);
    match timeout(READ_TIMEOUT, api.list(&about)).await {
        Ok(Ok(events)) => events.items,
        _ => Vec::new(),
    }
}

fn latest(events: &[Event], is_wanted: impl Fn(&Event) -> bool) -> Option<&Event> {
    let wanted = events.iter().filter(|event| is_wanted(event));
    wanted.max_by_key(|event| {
        let last = event.last_timestamp.as_ref().map(|time| time.0);
        last.or(event.event_time.as_ref().map(|time| time.0))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_latest_that_is_wanted() {
        let event = |reason: &str, time: &str| -> Event {
            serde_json::from_value(json!({
                "metadata": {},
                "involvedObject": {},
                "reason": reason,
                "lastTimestamp": time,
            }))
            .unwrap()
        };
        let events = [
            event("Failed", "2026-01-01T00:00:02Z"),
            event("Failed", "2026-01-01T00:00:03Z"),
            event("Pulled", "2026-01-01T00:00:04Z"),
        ];
        let failed = |event: &Event| event.reason.as_deref() == Some("Failed");
        assert_eq!(latest(&events, failed), Some(&events[1]));
        assert_eq!(latest(&events, |_| false), None);
    }
}
