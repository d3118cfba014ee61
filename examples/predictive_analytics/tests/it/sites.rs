//! The page, and requests that are refused. The rest of it is shared with `web_app`, whose
//! tests check it.

use examples::web::tester::json_body;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::APP;

#[tokio::test]
async fn the_page_is_whole_and_locked_down() {
    let (_data, server) = APP.server().await;
    let parts = server.page().await;
    assert!(parts.contains(&"/chart.css".to_owned()), "{parts:?}");
    for imported in ["/chart.js", "/chat.js", "/dom.js", "/service.js"] {
        let status = server.get(imported).await.status();
        assert_eq!(status, StatusCode::OK, "{imported}");
    }
    let page_of_web_app = server.get("/files.js").await;
    assert_eq!(page_of_web_app.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn sessions_are_for_those_who_have_them() {
    let (_data, server) = APP.server().await;
    let session = server.session().await;
    let chat = |session: &str, origin: &str| {
        let request = server.ask(Method::POST, &format!("{session}/chat"));
        json_body(request.header("origin", origin), &json!({"text": "x"})).send()
    };
    let own = format!("http://{}", server.address);
    let unknown = format!("/sessions/{}", "0".repeat(32));
    for (session, origin, expected) in [
        (&session, "http://evil.example", StatusCode::FORBIDDEN),
        (&unknown, own.as_str(), StatusCode::NOT_FOUND),
        (&session, own.as_str(), StatusCode::OK),
    ] {
        let status = chat(session, origin).await.unwrap().status();
        assert_eq!(status, expected, "{origin} {session}");
    }
}
