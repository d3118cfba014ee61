//! Faults that are injected, and requests that are counted.

use std::time::{Duration, Instant};

use daytona_testkit::Fault;
use reqwest::Method;
use serde_json::json;

use crate::client::{Client, json, refused};

const EXECUTE: &str = "POST /toolbox/{id}/process/execute";

async fn touch(client: &Client) -> reqwest::Result<reqwest::Response> {
    let request = client.toolbox(Method::POST, "/process/execute");
    request
        .json(&json!({"command": "echo x >> file; cat file"}))
        .send()
        .await
}

/// Returns how often [`touch`] was performed.
async fn n_touched(client: &Client) -> usize {
    client.run("cat file 2>/dev/null").await.1.lines().count()
}

#[tokio::test]
async fn answers_are_replaced_before_or_after_the_request_is_performed() {
    let client = Client::new().await;
    let standin = &client.standin;
    let container = "failed to resolve container IP after 3 attempts";
    let quota = Fault::Answer {
        status: 400,
        body: "Total CPU limit exceeded".to_owned(),
    };
    for (fault, status, text, n_performed) in [
        (Fault::BadGateway, 502, "", 0),
        (Fault::ContainerIp, 400, container, 0),
        (Fault::InvalidToken, 401, "Bearer token is invalid", 0),
        (Fault::Busy, 409, "Sandbox state change in progress", 0),
        (
            Fault::RateLimited(Duration::from_secs(7)),
            429,
            "Too Many Requests",
            0,
        ),
        (quota, 400, "Total CPU limit exceeded", 0),
        (Fault::AnswerLost, 502, "", 1),
    ] {
        client.run("rm -f file").await;
        standin.inject(fault.clone().at(EXECUTE));
        let answer = refused(touch(&client).await.unwrap()).await;
        assert_eq!(answer.0, status, "{fault:?}");
        assert!(answer.1.contains(text), "{fault:?}: {}", answer.1);
        assert_eq!(n_touched(&client).await, n_performed, "{fault:?}");
    }
    client.standin.close().await;
}

#[tokio::test]
async fn a_rate_limit_says_when_to_come_back() {
    let client = Client::new().await;
    let limit = Fault::RateLimited(Duration::from_secs(7)).at("POST /api/sandbox");
    client.standin.inject(limit);
    let create = client.api(Method::POST, "/sandbox").json(&json!({}));
    let answer = create.send().await.unwrap();
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.headers()["retry-after-sandbox-create"], "7");
    client.standin.close().await;
}

#[tokio::test]
async fn connections_end_without_an_answer_or_in_the_middle_of_one() {
    let client = Client::new().await;
    client.standin.inject(Fault::Dropped.at(EXECUTE));
    assert!(touch(&client).await.is_err());
    assert_eq!(n_touched(&client).await, 0);
    client.upload("large", &vec![1; 1024 * 1024]).await;
    client
        .standin
        .inject(Fault::Truncated.at("GET /toolbox/{id}/files/download"));
    let answer = client.get("/files/download?path=large").await;
    assert_eq!(answer.content_length(), Some(1024 * 1024));
    assert!(answer.bytes().await.is_err());
    client.standin.close().await;
}

#[tokio::test]
async fn a_list_can_be_stale() {
    let client = Client::new().await;
    let list = async || {
        let listed = client.api(Method::GET, "/sandbox").send().await.unwrap();
        json(listed).await["items"].as_array().unwrap().len()
    };
    assert_eq!(list().await, 1);
    let other = client.create(json!({})).await;
    client
        .standin
        .inject(Fault::StaleList.at("GET /api/sandbox"));
    assert_eq!(list().await, 1);
    assert_eq!(list().await, 2);
    let path = format!("/sandbox/{other}");
    client.api(Method::DELETE, &path).send().await.unwrap();
    client
        .standin
        .inject(Fault::StaleList.at("GET /api/sandbox"));
    assert_eq!(list().await, 2);
    assert_eq!(list().await, 1);
    client.standin.close().await;
}

#[tokio::test]
async fn requests_are_late() {
    let client = Client::new().await;
    let delayed = Fault::Delayed(Duration::from_millis(300)).at("GET /toolbox/{id}/work-dir");
    client.standin.inject(delayed);
    client.standin.set_latency(Duration::from_millis(200));
    let start = Instant::now();
    client.get("/work-dir").await;
    assert!(start.elapsed() >= Duration::from_millis(500));
    client.standin.close().await;
}

#[tokio::test]
async fn requests_are_counted_and_recorded() {
    let client = Client::new().await;
    let before = client.standin.requests();
    assert_eq!(before.of("POST /api/sandbox"), 1);
    client.run("true").await;
    client.get("/no/such/path").await;
    let used = client.standin.requests().since(&before);
    assert_eq!(
        (used.total(), used.of(EXECUTE), used.of("GET *")),
        (2, 1, 1)
    );
    let recorded = client.standin.recorded(EXECUTE);
    assert_eq!(recorded[0].body, Some(json!({"command": "true"})));
    assert_eq!(recorded[0].headers["x-daytona-sdk-version"], "0.226.1");
    assert_eq!(
        recorded[0].target,
        format!("/toolbox/{}/process/execute", client.id)
    );
    client.standin.close().await;
}
