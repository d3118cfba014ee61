//! Sandboxes of processes that are gone.

use backend_daytona::{leftovers, reap};
use sandbox_wire::owner::{self, Owner};
use serde_json::json;

use crate::support::Place;

/// Creates a sandbox as another process would have done.
async fn create(place: &Place, name: &str, owner: &Owner, disposal: &str) {
    let body = json!({
        "name": name,
        "labels": {
            "agentbox.dev/managed-by": "agentbox",
            "agentbox.dev/sandbox": name,
            "agentbox.dev/owner": owner.label(),
            "agentbox.dev/host": owner::host(),
            "agentbox.dev/disposal": disposal,
        },
    });
    let created = crate::support::http()
        .post(format!("{}/sandbox", place.account.url()))
        .bearer_auth(place.standin.api_key())
        .header("content-type", "application/json")
        .body(body.to_string())
        .send()
        .await
        .unwrap();
    assert!(created.status().is_success());
    backend_daytona::instances::start(&place.account, name)
        .await
        .unwrap();
}

#[tokio::test]
async fn only_what_a_dead_process_left_is_ended() {
    let place = Place::new().await;
    let here = Owner::current().unwrap();
    let mut gone = here.clone();
    gone.pid = u32::MAX - 9;
    create(&place, "left", &gone, "remove").await;
    create(&place, "kept", &gone, "stop").await;
    create(&place, "named", &gone, "keep").await;
    create(&place, "alive", &here, "remove").await;
    let names = |all: Vec<backend_daytona::Leftover>| {
        let mut names: Vec<_> = all.into_iter().map(|one| one.name).collect();
        names.sort();
        names
    };
    let found = leftovers(&place.account).await.unwrap();
    assert_eq!(names(found), ["kept", "left"]);
    let reaped = reap(&place.account).await.unwrap();
    assert_eq!(names(reaped), ["kept", "left"]);
    assert!(leftovers(&place.account).await.unwrap().is_empty());
    let mut states = Vec::new();
    for one in place.standin.sandboxes() {
        let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
        let state = text("state").replace("destroyed", "destroying");
        states.push((text("name"), state));
    }
    states.sort();
    let state = |name: &str, state: &str| (name.to_owned(), state.to_owned());
    let expected = [
        state("alive", "started"),
        state("kept", "stopped"),
        state("left", "destroying"),
        state("named", "started"),
    ];
    assert_eq!(states, expected);
    place.standin.close().await;
}
