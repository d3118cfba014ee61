//! Requests that are refused, and the headers that keep a page safe.

use examples::web::tester::{json_body, json_of};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::APP;

#[tokio::test]
async fn other_sites_are_refused() {
    let (_data, server) = APP.server().await;
    let session = server.session().await;
    let own = format!("http://{}", server.address);
    for (name, value, expected) in [
        ("origin", own.as_str(), StatusCode::OK),
        ("origin", "http://evil.example", StatusCode::FORBIDDEN),
        ("origin", "null", StatusCode::FORBIDDEN),
        ("host", "evil.example", StatusCode::FORBIDDEN),
        ("sec-fetch-site", "cross-site", StatusCode::FORBIDDEN),
    ] {
        for path in ["/sessions".to_owned(), format!("{session}/execute")] {
            let expected = match (path.as_str(), expected) {
                ("/sessions", StatusCode::OK) => StatusCode::CREATED,
                _ => expected,
            };
            let request = server.ask(Method::POST, &path).header(name, value);
            let body = json!({"command": "true"});
            let response = json_body(request, &body).send().await.unwrap();
            assert_eq!(response.status(), expected, "{name}: {value} {path}");
        }
    }
}

#[tokio::test]
async fn unknown_ids_are_refused() {
    let (data, server) = APP.server().await;
    let session = server.session().await;
    let guessed = format!("/sessions/{}", "0".repeat(32));
    // The name of the sandbox is not the id, so one that leaks opens nothing.
    let stored = std::fs::read_dir(data.path().join("conversations")).unwrap();
    let stored = stored.map(|entry| entry.unwrap().path());
    let names: Vec<_> = stored
        .map(|path| path.file_stem().unwrap().to_owned())
        .collect();
    let [name] = &names[..] else {
        panic!("{names:?}");
    };
    let name = name.to_str().unwrap();
    assert!(!session.ends_with(name));
    for base in [
        guessed,
        format!("/sessions/{name}"),
        "/sessions/..%2f..".to_owned(),
    ] {
        for path in ["", "/files", "/files/a.txt"] {
            let response = server.get(&format!("{base}{path}")).await;
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{base}{path}");
        }
        for (path, body) in [
            ("chat", json!({"text": "hi"})),
            ("execute", json!({"command": "id"})),
            ("answer", json!({"number": 0, "approve": true})),
        ] {
            let response = server.post(&format!("{base}/{path}"), &body).await;
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{base}/{path}");
        }
        let put = server.put(&format!("{base}/files/a.txt"), "x").await;
        assert_eq!(put, StatusCode::NOT_FOUND, "{base}");
    }
    assert_eq!(server.get(&session).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn the_page_is_whole_and_locked_down() {
    let (_data, server) = APP.server().await;
    let parts = server.page().await;
    assert!(parts.contains(&"/app.js".to_owned()), "{parts:?}");
    for missing in ["/xterm/xterm.js", "/nothing.js", "/..%2fCargo.toml"] {
        let status = server.get(missing).await.status();
        assert_eq!(status, StatusCode::NOT_FOUND, "{missing}");
    }
}

#[tokio::test]
async fn a_browser_finds_its_session_by_its_cookie() {
    let (_data, server) = APP.server().await;
    let first = server.post("/sessions", &json!({})).await;
    let cookie = first.headers()["set-cookie"].to_str().unwrap().to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let id = json_of(first).await["id"].clone();
    let again = || {
        let request = server.ask(Method::POST, "/sessions");
        let request = request.header("cookie", format!("other=1; {cookie}"));
        request.send()
    };
    let found = again().await.unwrap();
    assert_eq!(found.status(), StatusCode::OK);
    assert_eq!(json_of(found).await["id"], id);
    let path = format!("/sessions/{}", id.as_str().unwrap());
    let delete = server.ask(Method::DELETE, &path).send().await.unwrap();
    assert_eq!(delete.status(), StatusCode::NO_CONTENT);
    let other = again().await.unwrap();
    assert_eq!(other.status(), StatusCode::CREATED);
    assert_ne!(json_of(other).await["id"], id);
}

#[tokio::test]
async fn xterm_is_served_with_its_licence() {
    let data = tempfile::tempdir().unwrap();
    let packages = data.path().join("xterm");
    for (file, content) in [
        ("xterm/lib/xterm.js", "1"),
        ("xterm/css/xterm.css", "2"),
        ("addon-fit/lib/addon-fit.js", "3"),
        ("xterm/LICENSE", "MIT"),
    ] {
        let path = packages.join("node_modules/@xterm").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let options = ["--xterm", packages.to_str().unwrap()];
    let server = APP.start(data.path(), &options).await;
    let script = server.get("/xterm/xterm.js").await;
    let kind = script.headers()["content-type"].to_str().unwrap();
    assert_eq!(kind, "text/javascript; charset=utf-8");
    let policy = script.headers()["content-security-policy"]
        .to_str()
        .unwrap();
    assert!(policy.starts_with("default-src 'self';"), "{policy}");
    assert!(!policy.contains("script-src"), "{policy}");
    let licence = server.get("/xterm/LICENSE").await;
    assert_eq!(licence.text().await.unwrap(), "MIT");
}
