//! The files of sessions, and commands on them.

use examples::web::tester::json_of;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::APP;

/// A file name with everything that a page or a header could take for its own.
const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'; filename=x\u{202e}\u{fc}\r\nX-Evil: 1";

fn encoded(name: &str) -> String {
    name.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[tokio::test]
async fn sessions_do_not_see_each_other() {
    let (data, server) = APP.server().await;
    let (one, other) = (server.session().await, server.session().await);
    let put = server
        .put(&format!("{one}/files/notes/a.txt"), "mine\n")
        .await;
    assert_eq!(put, StatusCode::NO_CONTENT);
    assert_eq!(server.names(&one).await, ["notes"]);
    assert_eq!(server.names(&other).await, Vec::<String>::new());
    let read = server.get(&format!("{other}/files/notes/a.txt")).await;
    assert_eq!(read.status(), StatusCode::NOT_FOUND);

    let done = server.execute(&one, "cat notes/a.txt; pwd").await;
    let out = done["stdout"].as_str().unwrap();
    let (content, directory) = out.split_once('\n').unwrap();
    assert_eq!((content, &done["success"]), ("mine", &json!(true)));
    // Commands neither reach the files of others nor learn the id of their own session.
    assert!(!directory.contains(one.trim_start_matches("/sessions/")));
    let steal = format!(
        "cat {}/notes/a.txt; ls {}",
        directory.trim(),
        data.path().display()
    );
    let done = server.execute(&other, &steal).await;
    assert_eq!(done["stdout"], "", "{done}");
    assert_eq!(done["success"], false);
}

#[tokio::test]
async fn a_file_comes_back_as_it_was_put() {
    let (_data, server) = APP.server().await;
    let session = server.session().await;
    let content: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let path = format!("{session}/files/{}", encoded(HOSTILE));
    assert_eq!(
        server.put(&path, content.clone()).await,
        StatusCode::NO_CONTENT
    );
    assert_eq!(server.names(&session).await, [HOSTILE]);

    let file = server.get(&path).await;
    assert_eq!(file.status(), StatusCode::OK);
    let header = |name: &str| file.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "application/octet-stream");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert!(!file.headers().contains_key("x-evil"));
    let disposition = header("content-disposition");
    let begin = "attachment; filename=\"download\"; filename*=UTF-8''%3Cimg%20src%3Dx";
    assert!(disposition.starts_with(begin), "{disposition}");
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"%._-".contains(&byte);
    let name = disposition.rsplit("''").next().unwrap();
    assert!(name.bytes().all(plain), "{disposition}");
    assert_eq!(file.bytes().await.unwrap(), content);
}

#[tokio::test]
async fn nothing_is_replaced_unseen() {
    let (_data, server) = APP.server().await;
    let session = server.session().await;
    let path = format!("{session}/files/a.txt");
    assert_eq!(server.put(&path, "one").await, StatusCode::NO_CONTENT);
    let tag = server.get(&path).await.headers()["etag"].clone();
    let put = async |name: &str, value: &str, content: &'static str| {
        let request = server.ask(Method::PUT, &path).header(name, value);
        request.body(content).send().await.unwrap()
    };
    let new = put("if-none-match", "*", "two").await;
    assert_eq!(new.status(), StatusCode::PRECONDITION_FAILED);
    let saved = put("if-match", tag.to_str().unwrap(), "three").await;
    assert_eq!(saved.status(), StatusCode::NO_CONTENT);
    let stale = put("if-match", tag.to_str().unwrap(), "four").await;
    assert_eq!(stale.status(), StatusCode::PRECONDITION_FAILED);
    let next = saved.headers()["etag"].to_str().unwrap();
    assert_eq!(
        put("if-match", next, "five").await.status(),
        StatusCode::NO_CONTENT
    );
    assert_eq!(server.get(&path).await.text().await.unwrap(), "five");
}

#[tokio::test]
async fn requests_have_limits() {
    let (_data, server) = APP.server().await;
    let session = server.session().await;
    let large = vec![0; 17 * 1024 * 1024];
    let put = server.put(&format!("{session}/files/large"), large).await;
    assert_eq!(put, StatusCode::PAYLOAD_TOO_LARGE);
    for path in ["..%2f..%2fetc%2fpasswd", "a%2f..%2f..%2fb"] {
        let status = server
            .get(&format!("{session}/files/{path}"))
            .await
            .status();
        assert!(status.is_client_error(), "{path}: {status}");
    }
    let long = json!({"command": "x".repeat(300 * 1024)});
    let execute = server.post(&format!("{session}/execute"), &long).await;
    assert_eq!(execute.status(), StatusCode::PAYLOAD_TOO_LARGE);

    // A flood of output is shortened, and markup in it is text.
    let flood = "echo '<script>alert(1)</script>'; seq 1 1000000";
    let done = server.execute(&session, flood).await;
    let out = done["stdout"].as_str().unwrap();
    assert!(
        out.starts_with("<script>") && out.len() < 100_000,
        "{}",
        out.len()
    );
    let fails = server.execute(&session, "echo no >&2; exit 3").await;
    assert_eq!(
        (&fails["success"], &fails["stderr"]),
        (&Value::Bool(false), &json!("no\n"))
    );
}

#[tokio::test]
async fn the_number_of_sessions_is_limited() {
    let data = tempfile::tempdir().unwrap();
    let server = APP.start(data.path(), &["--sessions", "2"]).await;
    let first = server.session().await;
    server.session().await;
    let full = server.post("/sessions", &json!({})).await;
    assert_eq!(full.status(), StatusCode::SERVICE_UNAVAILABLE);
    let said = json_of(full).await;
    assert!(
        said["error"].as_str().unwrap().contains("--sessions"),
        "{said}"
    );

    assert_eq!(
        server.put(&format!("{first}/files/a"), "a").await,
        StatusCode::NO_CONTENT
    );
    let delete = server.ask(Method::DELETE, &first).send().await.unwrap();
    assert_eq!(delete.status(), StatusCode::NO_CONTENT);
    assert_eq!(server.get(&first).await.status(), StatusCode::NOT_FOUND);
    server.session().await;
}
