//! Sandboxes from their creation to their end.

use std::time::Duration;

use daytona_testkit::{Fault, Options};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::client::{Client, HOLD, json, refused};

#[tokio::test]
async fn a_sandbox_keeps_its_files_over_a_stop() {
    let client = Client::new().await;
    client
        .run(&format!("echo kept > note; {HOLD} > /dev/null 2>&1 &"))
        .await;
    client.until_held(true).await;
    let stopped = json(change(&client, "stop?force=false").await).await;
    assert_eq!(stopped["state"], "stopped");
    let (status, body) = refused(client.get("/work-dir").await).await;
    assert_eq!(status, 400);
    assert!(body.contains("failed to resolve container IP"), "{body}");
    assert_eq!(
        json(change(&client, "start").await).await["state"],
        "started"
    );
    assert_eq!(client.run("cat note").await.1, "kept\n");
    client.until_held(false).await;
    assert_eq!(
        json(change(&client, "start").await).await["state"],
        "started"
    );
    client.standin.close().await;
}

async fn change(client: &Client, change: &str) -> reqwest::Response {
    let path = format!("/sandbox/{}/{change}", client.id);
    client.api(Method::POST, &path).send().await.unwrap()
}

#[tokio::test]
async fn a_name_is_unique_until_its_sandbox_is_gone() {
    let client = Client::new().await;
    let request = json!({"name": "n1", "env": {"A": "1"}, "labels": {"x": "y"}});
    client.create(request.clone()).await;
    let again = client.api(Method::POST, "/sandbox").json(&request);
    let (status, body) = refused(again.send().await.unwrap()).await;
    assert_eq!(status, 409);
    assert!(
        body.contains("Sandbox with name n1 already exists"),
        "{body}"
    );
    let found = client.api(Method::GET, "/sandbox/n1").send().await.unwrap();
    assert_eq!(json(found).await["labels"], json!({"x": "y"}));
    let deleted = client
        .api(Method::DELETE, "/sandbox/n1")
        .send()
        .await
        .unwrap();
    assert_eq!(json(deleted).await["state"], "destroying");
    let gone = client.api(Method::GET, "/sandbox/n1").send().await.unwrap();
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    client.create(request).await;
    client.standin.close().await;
}

#[tokio::test]
async fn only_the_key_or_a_token_with_its_organization_is_accepted() {
    let client = Client::new().await;
    let url = format!("{}/sandbox", client.standin.api_url());
    let ask = async |key: &str, organization: Option<&str>| {
        let mut request = client.http.get(&url).bearer_auth(key);
        if let Some(organization) = organization {
            request = request.header("x-daytona-organization-id", organization);
        }
        request.send().await.unwrap().status().as_u16()
    };
    let standin = &client.standin;
    assert_eq!(ask("wrong", None).await, 401);
    assert_eq!(ask(standin.api_key(), None).await, 200);
    assert_eq!(ask(standin.jwt(), None).await, 403);
    assert_eq!(ask(standin.jwt(), Some(standin.organization())).await, 200);
    let open = client.http.get(format!("{}/config", standin.api_url()));
    let config = json(open.send().await.unwrap()).await;
    assert!(
        config["proxyToolboxUrl"]
            .as_str()
            .unwrap()
            .ends_with("/toolbox")
    );
    client.standin.close().await;
}

#[tokio::test]
async fn a_list_has_pages_and_filters() {
    let client = Client::new().await;
    for team in ["a", "b", "a"] {
        client.create(json!({"labels": {"team": team}})).await;
    }
    let list = async |query: &str| -> Value {
        let listed = client.api(Method::GET, &format!("/sandbox?{query}"));
        json(listed.send().await.unwrap()).await
    };
    let (mut cursor, mut n_items, mut n_pages) = (String::new(), 0, 0);
    loop {
        let page = list(&format!("limit=3&{cursor}")).await;
        n_items += page["items"].as_array().unwrap().len();
        n_pages += 1;
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("cursor={next}"),
            None => break,
        }
    }
    assert_eq!((n_items, n_pages), (4, 2));
    let team = list("labels=%7B%22team%22%3A%22a%22%7D&states=started").await;
    assert_eq!(team["items"].as_array().unwrap().len(), 2);
    assert!(team["items"][0].get("env").is_none());
    assert_eq!(list("states=stopped").await["items"], json!([]));
    client.standin.close().await;
}

#[tokio::test]
async fn labels_are_replaced_whole_and_timers_are_kept() {
    let client = Client::new().await;
    for labels in [json!({"a": "1", "b": "2"}), json!({"c": "3"})] {
        let path = format!("/sandbox/{}/labels", client.id);
        let set = client
            .api(Method::PUT, &path)
            .json(&json!({"labels": labels}));
        assert_eq!(json(set.send().await.unwrap()).await["labels"], labels);
    }
    assert_eq!(
        json(change(&client, "autostop/30").await).await["autoStopInterval"],
        30
    );
    assert_eq!(
        json(change(&client, "autodelete/-1").await).await["autoDeleteInterval"],
        -1
    );
    assert_eq!(
        change(&client, "last-activity").await.status(),
        StatusCode::CREATED
    );
    assert_eq!(
        json(client.sandbox().await).await["labels"],
        json!({"c": "3"})
    );
    client.standin.close().await;
}

#[tokio::test]
async fn a_sandbox_is_busy_while_its_state_changes() {
    let mut options = Options::default();
    options.transition = Duration::from_millis(300);
    let client = Client::with(options).await;
    assert_eq!(json(client.sandbox().await).await["state"], "creating");
    let path = format!("/sandbox/{}", client.id);
    let delete = client.api(Method::DELETE, &path).send().await.unwrap();
    assert_eq!(refused(delete).await.0, 409);
    while json(client.sandbox().await).await["state"] != "started" {}
    assert_eq!(
        json(change(&client, "stop").await).await["state"],
        "stopping"
    );
    assert_eq!(refused(change(&client, "start").await).await.0, 409);
    while json(client.sandbox().await).await["state"] != "stopped" {}
    assert_eq!(
        json(change(&client, "archive").await).await["state"],
        "archiving"
    );
    assert_eq!(
        json(change(&client, "start").await).await["state"],
        "restoring"
    );
    client.standin.close().await;
}

#[tokio::test]
async fn a_stuck_sandbox_and_a_failed_one_are_brought_back() {
    let client = Client::new().await;
    client
        .standin
        .inject(Fault::StuckStarting.at("POST /api/sandbox"));
    let stuck = client.create(json!({"name": "stuck"})).await;
    let state = async || {
        let path = format!("/sandbox/{stuck}");
        let shown = client.api(Method::GET, &path).send().await.unwrap();
        json(shown).await["state"].clone()
    };
    assert_eq!(state().await, "starting");
    assert!(client.standin.set_state("stuck", "error"));
    let path = format!("/sandbox/{stuck}/start");
    let start = client.api(Method::POST, &path).send().await.unwrap();
    assert!(refused(start).await.1.contains("errored state"));
    let path = format!("/sandbox/{stuck}/recover");
    let recovered = client.api(Method::POST, &path).send().await.unwrap();
    assert_eq!(json(recovered).await["state"], "started");
    assert!(!client.standin.set_state("none", "stopped"));
    client.standin.close().await;
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused() {
    let client = Client::new().await;
    let create = async |request: Value| {
        let sent = client.api(Method::POST, "/sandbox").json(&request).send();
        sent.await.unwrap().status().as_u16()
    };
    let image = json!({"dockerfileContent": "FROM x\n"});
    assert_eq!(
        create(json!({"snapshot": "s", "buildInfo": image})).await,
        400
    );
    assert_eq!(create(json!({"snapshot": "s", "cpu": 2})).await, 400);
    assert_eq!(create(json!({"buildInfo": image, "cpu": 2})).await, 200);
    assert_eq!(refused(change(&client, "archive").await).await.0, 400);
    assert_eq!(refused(change(&client, "pause").await).await.0, 422);
    assert_eq!(refused(change(&client, "recover").await).await.0, 400);
    client.standin.close().await;
}

#[tokio::test]
async fn an_ephemeral_sandbox_is_destroyed_by_a_stop() {
    let mut client = Client::new().await;
    client.id = client.create(json!({"autoDeleteInterval": 0})).await;
    change(&client, "stop").await;
    assert_eq!(client.sandbox().await.status(), StatusCode::NOT_FOUND);
    client.standin.close().await;
}
