//! Files of the toolbox.

use daytona_testkit::Options;
use reqwest::multipart::{Form, Part};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::client::{Client, json, refused};

#[tokio::test]
async fn what_is_uploaded_is_downloaded_whole_or_in_part() {
    let client = Client::new().await;
    let bytes: Vec<u8> = (0..=255).collect();
    let uploaded = json(client.upload(" up/é x.bin ", &bytes).await).await;
    assert_eq!(
        uploaded,
        json!({"files": [{"path": "up/é x.bin", "bytes": 256}]})
    );
    let path = "/files/download?path=up%2F%C3%A9%20x.bin";
    assert_eq!(client.get(path).await.bytes().await.unwrap(), bytes);
    let part = client
        .toolbox(Method::GET, path)
        .header("range", "bytes=250-");
    let part = part.send().await.unwrap();
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.headers()["content-range"], "bytes 250-255/256");
    assert_eq!(part.bytes().await.unwrap(), bytes[250..]);
    assert_eq!(client.run("wc -c < 'up/é x.bin'").await.1, "256\n");
    client.upload("empty", b"").await;
    assert_eq!(
        json(client.get("/files/info?path=empty").await).await["size"],
        0
    );
    client.standin.close().await;
}

#[tokio::test]
async fn an_upload_overwrites_in_place_and_tells_which_files_failed() {
    let client = Client::new().await;
    client
        .run("mkdir d; echo a long line > f; chmod 640 f")
        .await;
    client.upload("f", b"new").await;
    assert_eq!(client.run("cat f; stat -c %a f").await.1, "new640\n");
    let file = || Part::bytes(b"x".to_vec()).file_name("file");
    let form = Form::new()
        .text("files[0].path", "ok")
        .part("files[0].file", file())
        .text("files[1].path", "d")
        .part("files[1].file", file())
        .part("files[2].file", file());
    let request = client.toolbox(Method::POST, "/files/bulk-upload");
    let (status, body) = refused(request.multipart(form).send().await.unwrap()).await;
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(status, 400);
    assert_eq!(body["files"], json!([{"path": "ok", "bytes": 1}]));
    let errors = body["errors"].to_string();
    assert!(
        errors.contains("d: ") && errors.contains("missing .path metadata"),
        "{errors}"
    );
    client.standin.close().await;
}

#[tokio::test]
async fn several_files_are_downloaded_with_errors_in_place() {
    let client = Client::new().await;
    client.upload("é", b"one").await;
    let answer = client
        .post("/files/bulk-download", json!({"paths": ["é", "nope"]}))
        .await;
    let kind = answer.headers()["content-type"].to_str().unwrap();
    assert_eq!(kind, "multipart/form-data; boundary=DAYTONA-FILE-BOUNDARY");
    let body = answer.bytes().await.unwrap();
    let text = String::from_utf8_lossy(&body);
    let file = "name=\"file\"; filename=\"\u{fffd}\"; filename*=utf-8''%C3%A9\r\nContent-Length: 3\r\nContent-Type: application/octet-stream\r\n\r\none\r\n";
    assert!(text.contains(file), "{text}");
    assert!(text.contains("name=\"error\"; filename=\"nope\""), "{text}");
    assert!(text.contains("\"code\":\"FILE_NOT_FOUND\""), "{text}");
    assert!(text.ends_with("--DAYTONA-FILE-BOUNDARY--\r\n"), "{text}");
    client.standin.close().await;
}

#[tokio::test]
async fn files_are_described_as_by_the_daemon() {
    let client = Client::new().await;
    client
        .run("mkdir d; echo hi > d/f; chmod 754 d/f; ln -s f d/link; ln -s none d/dangling")
        .await;
    let listed = json(client.get("/files?path=d").await).await;
    let names: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["f", "link"]);
    let info = json(client.get("/files/info?path=d/link").await).await;
    assert_eq!((&info["name"], &info["size"]), (&json!("link"), &json!(3)));
    assert_eq!(
        (&info["mode"], &info["permissions"]),
        (&json!("-rwxr-xr--"), &json!("0754"))
    );
    assert!(info["modTime"].as_str().unwrap().ends_with(" +0000 UTC"));
    assert!(info["modifiedAt"].as_str().unwrap().ends_with('Z'));
    assert_eq!(
        json(client.get("/files/info?path=d").await).await["mode"],
        "drwxr-xr-x"
    );
    assert_eq!(refused(client.get("/files?path=d/f").await).await.0, 400);
    client.standin.close().await;
}

#[tokio::test]
async fn errors_have_no_body_unless_they_are_typed() {
    let client = Client::new().await;
    assert_eq!(
        refused(client.get("/files/info?path=none").await).await,
        (404, String::new())
    );
    assert_eq!(
        refused(client.get("/files/download?path=/").await).await,
        (400, String::new())
    );
    client.standin.close().await;
    let mut options = Options::default();
    options.typed_errors = true;
    let client = Client::with(options).await;
    let (status, body) = refused(client.get("/files/info?path=none").await).await;
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["code"]), (404, &json!("FILE_NOT_FOUND")));
    assert_eq!(
        (&body["path"], &body["source"]),
        (&json!("/files/info"), &json!("DAYTONA_DAEMON"))
    );
    client.standin.close().await;
}

#[tokio::test]
async fn moving_never_overwrites_and_deleting_follows_links() {
    let client = Client::new().await;
    client
        .run("echo a > a; echo b > b; mkdir -p d/e; ln -s d link; ln -s none dangling")
        .await;
    let mv = async |from: &str, to: &str| {
        let path = format!("/files/move?source={from}&destination={to}");
        let moved = client.toolbox(Method::POST, &path).send().await.unwrap();
        moved.status().as_u16()
    };
    assert_eq!(mv("a", "b").await, 409);
    assert_eq!(mv("a", "d").await, 409);
    assert_eq!(mv("none", "c").await, 404);
    assert_eq!(mv("a", "none/c").await, 404);
    assert_eq!(mv("a", "c").await, 200);
    let delete = async |path: &str| {
        let deleted = client.delete(&format!("/files?path={path}")).await;
        deleted.status().as_u16()
    };
    assert_eq!(delete("d").await, 400);
    assert_eq!(delete("dangling").await, 404);
    assert_eq!(delete("link").await, 400);
    assert_eq!(delete("link&recursive=true").await, 204);
    assert_eq!(client.run("ls").await.1, "b\nc\nd\ndangling\n");
    assert_eq!(delete("d&recursive=true").await, 204);
    assert_eq!(delete("c").await, 204);
    assert_eq!(client.run("ls").await.1, "b\ndangling\n");
    client.standin.close().await;
}

#[tokio::test]
async fn text_is_found_and_replaced_literally() {
    let client = Client::new().await;
    client.upload("d/a.txt", b"one\na.b\n").await;
    client.upload("d/e/b.txt", b"axb a.b").await;
    client.upload("d/binary", b"\0a.b").await;
    let found = json(client.get("/files/find?path=d&pattern=a.b").await).await;
    let expected = json!([
        {"file": "d/a.txt", "line": 2, "content": "a.b"},
        {"file": "d/e/b.txt", "line": 1, "content": "axb a.b"},
    ]);
    assert_eq!(found, expected);
    assert_eq!(
        json(client.get("/files/find?path=none&pattern=a").await).await,
        json!([])
    );
    let found = json(client.get("/files/search?path=d&pattern=*.txt").await).await;
    assert_eq!(found, json!({"files": ["d/a.txt", "d/e/b.txt"]}));
    let request = json!({"files": ["d/a.txt", "none"], "pattern": ".", "newValue": "+"});
    let replaced = json(client.post("/files/replace", request).await).await;
    assert_eq!(replaced[0], json!({"file": "d/a.txt", "success": true}));
    assert_eq!(replaced[1]["success"], false);
    assert_eq!(client.run("cat d/a.txt").await.1, "one\na+b\n");
    let request = json!({"files": [], "pattern": "."});
    assert_eq!(
        refused(client.post("/files/replace", request).await)
            .await
            .0,
        400
    );
    client.standin.close().await;
}

#[tokio::test]
async fn folders_and_modes_are_set() {
    let client = Client::new().await;
    for _ in 0..2 {
        let path = "/files/folder?path=a/b&mode=0750";
        let made = client.toolbox(Method::POST, path).send().await.unwrap();
        assert_eq!(made.status(), StatusCode::CREATED);
    }
    let path = "/files/permissions?path=a&mode=700";
    let set = client.toolbox(Method::POST, path).send().await.unwrap();
    assert_eq!(set.status(), StatusCode::OK);
    assert_eq!(client.run("stat -c %a a a/b").await.1, "700\n750\n");
    client.standin.close().await;
}
