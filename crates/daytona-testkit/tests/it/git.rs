//! Git, with repositories of the sandbox itself.

use reqwest::Method;
use serde_json::json;

use crate::client::{Client, json, refused};

#[tokio::test]
async fn a_repository_is_cloned_changed_and_committed() {
    let client = Client::new().await;
    let origin = "git init -q -b master origin && cd origin && git -c user.name=a -c user.email=b commit -q --allow-empty -m first && git branch test";
    assert_eq!(client.run(origin).await, (0, String::new()));
    let clone = json!({"url": "origin", "path": "copy", "branch": "test"});
    assert_eq!(client.post("/git/clone", clone).await.status(), 200);
    let status = json(client.get("/git/status?path=copy").await).await;
    assert_eq!(
        (&status["currentBranch"], &status["fileStatus"]),
        (&json!("test"), &json!([]))
    );
    let branch = json!({"path": "copy", "name": "new"});
    assert_eq!(
        client.post("/git/branches", branch.clone()).await.status(),
        201
    );
    let checkout = json!({"path": "copy", "branch": "new"});
    assert_eq!(client.post("/git/checkout", checkout).await.status(), 200);
    client.upload("copy/f", b"content").await;
    let status = json(client.get("/git/status?path=copy").await).await;
    assert_eq!(status["fileStatus"][0]["worktree"], "Untracked");
    let add = json!({"path": "copy", "files": ["f"]});
    assert_eq!(client.post("/git/add", add).await.status(), 200);
    let status = json(client.get("/git/status?path=copy").await).await;
    assert_eq!(status["fileStatus"][0]["staging"], "Added");
    let commit = json!({"path": "copy", "message": "second", "author": "A", "email": "a@b"});
    let hash = json(client.post("/git/commit", commit).await).await["hash"].clone();
    let history = json(client.get("/git/history?path=copy").await).await;
    assert_eq!(
        (&history[0]["hash"], &history[0]["author"]),
        (&hash, &json!("A"))
    );
    let checkout = json!({"path": "copy", "branch": "test"});
    client.post("/git/checkout", checkout).await;
    let deleted = client
        .toolbox(Method::DELETE, "/git/branches")
        .json(&branch);
    assert_eq!(deleted.send().await.unwrap().status(), 204);
    let branches = json(client.get("/git/branches?path=copy").await).await;
    assert_eq!(branches, json!({"branches": ["test"]}));
    assert_eq!(
        refused(client.get("/git/status?path=none").await).await.0,
        400
    );
    client.standin.close().await;
}
