//! Commands that are answered when they have ended.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, HOLD, json, refused};

#[tokio::test]
async fn a_command_has_one_output_and_an_exit_code() {
    let client = Client::new().await;
    let command = json!({
        "command": "echo $Z; echo err >&2; pwd; printf '\\377\\0'; exit 4", "cwd": "/tmp",
        "envs": {"Z": "9"}, "timeout": 60,
    });
    let answer = json(client.post("/process/execute", command).await).await;
    let expected = json!({"exitCode": 4, "result": "9\nerr\n/tmp\n\u{fffd}\u{0}"});
    assert_eq!(answer, expected);
    assert_eq!(client.run("kill -9 $$").await.0, -1);
    client.standin.close().await;
}

#[tokio::test]
async fn the_script_is_the_input_of_the_shell() {
    let client = Client::new().await;
    let (_, output) = client.run("read x; echo got=$x\necho second").await;
    assert_eq!(output, "got=echo second\n");
    let long = format!(": {}\necho done", "x".repeat(3_000_000));
    assert_eq!(client.run(&long).await.1, "done\n");
    client.standin.close().await;
}

#[tokio::test]
async fn a_timeout_kills_the_group_and_loses_the_output() {
    let client = Client::new().await;
    let command = json!({"command": format!("echo lost; {HOLD} & wait"), "timeout": 1});
    let (status, body) = refused(client.post("/process/execute", command).await).await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 408);
    assert_eq!(
        body["message"],
        "request timeout: command execution timeout"
    );
    assert_eq!(
        (&body["code"], &body["path"]),
        (&json!("REQUEST_TIMEOUT"), &json!("/process/execute"))
    );
    client.until_held(false).await;
    client.standin.close().await;
}

#[tokio::test]
async fn a_program_that_left_the_group_delays_the_end() {
    let client = Client::new().await;
    let start = Instant::now();
    let command = json!({"command": "setsid sleep 2 & sleep 600", "timeout": 1});
    assert_eq!(
        refused(client.post("/process/execute", command).await)
            .await
            .0,
        408
    );
    assert!(start.elapsed() >= Duration::from_secs(2));
    client.standin.close().await;
}

#[tokio::test]
async fn a_client_that_leaves_does_not_end_its_command() {
    let client = Client::new().await;
    let command = json!({"command": "sleep 1; echo here > note"});
    let request = client
        .toolbox(reqwest::Method::POST, "/process/execute")
        .json(&command);
    let sent = request.timeout(Duration::from_millis(200)).send().await;
    assert!(sent.unwrap_err().is_timeout());
    while client.get("/files/info?path=note").await.status() != 200 {}
    client.standin.close().await;
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused() {
    let client = Client::new().await;
    for request in [
        json!({"command": ""}),
        json!({"command": "true", "timeout": 1.5}),
        json!({"command": "true", "timeout": -1}),
        json!({"command": "true", "envs": {"A-B": "1"}}),
        json!({}),
    ] {
        assert_eq!(
            refused(client.post("/process/execute", request).await)
                .await
                .0,
            400
        );
    }
    let elsewhere = json!({"command": "true", "cwd": "/none"});
    let answer = json(client.post("/process/execute", elsewhere).await).await;
    assert_eq!(answer["exitCode"], -1);
    assert!(
        answer["result"]
            .as_str()
            .unwrap()
            .starts_with("fork/exec /")
    );
    client.standin.close().await;
}

#[tokio::test]
async fn code_is_run_by_its_interpreter() {
    let client = Client::new().await;
    let request =
        json!({"code": "import sys\nprint(sys.argv[1:])", "language": "python", "argv": ["x"]});
    let answer = json(client.post("/process/code-run", request).await).await;
    assert_eq!(answer, json!({"exitCode": 0, "result": "['x']\n"}));
    client.standin.close().await;
}
