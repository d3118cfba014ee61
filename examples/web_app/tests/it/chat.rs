//! The conversation: a stream of cards, and questions in between.

use examples::chat::{Script, Server as ScriptedServer};
use examples::web::tester::{LONG, Server, Turn, json_body, json_of, types};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::APP;

/// Answers the question that is last of these events.
pub(crate) async fn answer(
    server: &Server,
    session: &str,
    events: &[Value],
    mut body: Value,
) -> StatusCode {
    let question = events.last().unwrap();
    assert_eq!(question["type"], "question", "{events:?}");
    body["number"] = question["number"].clone();
    server
        .post(&format!("{session}/answer"), &body)
        .await
        .status()
}

#[tokio::test]
async fn a_turn_shows_cards_and_waits_for_an_answer() {
    let (_data, server) = APP.server().await;
    let (session, other) = (server.session().await, server.session().await);
    let mut turn = Turn::begin(&server, &session, "three <b>little</b> words").await;
    let events = turn.events().await;
    let expected = [
        "text", "call", "call", "reply", "reply", "text", "call", "reply", "text", "call",
        "question",
    ];
    assert_eq!(types(&events), expected);
    assert_eq!(events[1]["name"], "write_file");
    assert_eq!(
        events[1]["arguments"]["content"],
        "three <b>little</b> words\n"
    );
    assert_eq!(events[6]["arguments"]["edits"][1]["new_string"], "wc -w");
    assert!(events[3..8].iter().all(|event| event["failed"] != true));
    assert_eq!(events[9]["arguments"], json!({"command": "sh count.sh"}));
    assert_eq!(events[10]["effect"], "$ sh count.sh");

    // Only its own session answers, once; meanwhile no other turn begins.
    let yes = json!({"approve": true});
    let foreign = answer(&server, &other, &events, yes.clone()).await;
    assert_eq!(foreign, StatusCode::CONFLICT);
    let second = server
        .post(&format!("{session}/chat"), &json!({"text": "hi"}))
        .await;
    assert_eq!(second.status(), StatusCode::CONFLICT);
    let delete = server.ask(Method::DELETE, &session).send().await.unwrap();
    assert_eq!(delete.status(), StatusCode::CONFLICT);
    let own = answer(&server, &session, &events, yes.clone()).await;
    assert_eq!(own, StatusCode::NO_CONTENT);
    let again = answer(&server, &session, &events, yes).await;
    assert_eq!(again, StatusCode::CONFLICT);

    let rest = turn.events().await;
    assert_eq!(types(&rest), ["reply", "text"]);
    assert_eq!(rest[0]["text"].as_str().unwrap().trim(), "3");
    assert_eq!(server.names(&session).await, ["count.sh", "message.txt"]);
    assert_eq!(server.names(&other).await, Vec::<String>::new());

    // A page that is loaded again shows the same.
    let events = json_of(server.get(&session).await).await["events"].clone();
    let events = events.as_array().unwrap();
    assert_eq!(
        events[0],
        json!({"type": "user", "text": "three <b>little</b> words"})
    );
    assert_eq!(events.last(), rest.last());
}

#[tokio::test]
async fn a_no_is_a_no_and_a_lasting_yes_lasts() {
    let (_data, server) = APP.server().await;
    let session = server.session().await;
    let mut turn = Turn::begin(&server, &session, "run touch a.txt").await;
    let asked = turn.events().await;
    let no = answer(&server, &session, &asked, json!({"approve": false})).await;
    assert_eq!(no, StatusCode::NO_CONTENT);
    let rest = turn.events().await;
    assert_eq!(
        (types(&rest), &rest[0]["failed"]),
        (vec!["reply", "text"], &json!(true))
    );
    assert_eq!(server.names(&session).await, Vec::<String>::new());

    let mut turn = Turn::begin(&server, &session, "run touch b.txt").await;
    let asked = turn.events().await;
    let always = json!({"approve": true, "remember": true});
    answer(&server, &session, &asked, always).await;
    turn.events().await;
    let mut turn = Turn::begin(&server, &session, "run touch c.txt").await;
    assert_eq!(
        types(&turn.events().await),
        ["text", "call", "reply", "text"]
    );
    assert_eq!(server.names(&session).await, ["b.txt", "c.txt"]);
}

/// A command that goes on when there is a file.
fn waiting(before: &str, after: &str) -> String {
    format!("run {before}; until [ -e go ]; do sleep 0.05; done; {after}")
}

/// Begins a turn with this command and approves it.
async fn run(server: &Server, session: &str, said: &str) -> Turn {
    let mut turn = Turn::begin(server, session, said).await;
    let asked = turn.events().await;
    let yes = answer(server, session, &asked, json!({"approve": true})).await;
    assert_eq!(yes, StatusCode::NO_CONTENT);
    turn
}

#[tokio::test]
async fn output_is_shown_while_its_command_runs() {
    let (_data, server) = APP.server().await;
    let session = server.session().await;
    let said = waiting("printf '<b>first</b>\\033[31m\\n'", "echo second");
    let mut turn = run(&server, &session, &said).await;
    // The command cannot have ended, and a terminal would show it so.
    let live = turn.next().await.unwrap();
    let expected = json!({"type": "output", "id": live["id"], "text": "<b>first</b>\n"});
    assert_eq!(live, expected);
    let put = server.put(&format!("{session}/files/go"), "").await;
    assert_eq!(put, StatusCode::NO_CONTENT);
    let rest = turn.events().await;
    assert_eq!(types(&rest), ["reply", "text"]);
    assert_eq!(rest[0]["id"], live["id"]);
    assert_eq!(rest[0]["text"], "<b>first</b>\nsecond\n");
    // It is not kept.
    let events = json_of(server.get(&session).await).await["events"].clone();
    let events = events.as_array().unwrap();
    assert!(!types(events).contains(&"output"), "{events:?}");
}

#[tokio::test]
async fn of_much_output_the_beginning_and_the_end_are_shown() {
    let (_data, server) = APP.server().await;
    let session = server.session().await;
    let said = waiting("echo first; yes | head -c 4000000; echo last", "true");
    let mut turn = run(&server, &session, &said).await;
    let mut shown = String::new();
    while !shown.ends_with("last\n") {
        let live = turn.next().await.unwrap();
        assert_eq!(live["type"], "output");
        let text = live["text"].as_str().unwrap();
        assert!(text.len() < 20_000, "{}", text.len());
        shown.push_str(text);
    }
    assert!(shown.starts_with("first\ny\n"), "{shown}");
    assert!(shown.contains(" bytes are not shown ...]\n"));
    server.put(&format!("{session}/files/go"), "").await;
    turn.events().await;
}

#[tokio::test]
async fn a_page_that_goes_away_stops_its_turn() {
    let (_data, server) = APP.server().await;
    let session = server.session().await;
    let mut turn = Turn::begin(&server, &session, "run touch a.txt").await;
    let asked = turn.events().await;
    assert_eq!(types(&asked).last(), Some(&"question"));
    drop(turn);
    // The server notices in its own time.
    let begun = async {
        loop {
            let request = server.ask(Method::POST, &format!("{session}/chat"));
            let request = json_body(request, &json!({"text": "run true"}));
            let response = request.send().await.unwrap();
            if response.status() == StatusCode::OK {
                return;
            }
            assert_eq!(response.status(), StatusCode::CONFLICT);
        }
    };
    tokio::time::timeout(LONG, begun)
        .await
        .expect("the conversation is free");
    let late = answer(&server, &session, &asked, json!({"approve": true})).await;
    assert_eq!(late, StatusCode::CONFLICT);
    assert_eq!(server.names(&session).await, Vec::<String>::new());
}

#[tokio::test]
async fn any_endpoint_can_answer() {
    let script = Script::new().says("Good day.");
    let endpoint = ScriptedServer::play(script).await.unwrap();
    let base_url = endpoint.endpoint().base_url;
    let data = tempfile::tempdir().unwrap();
    let options = ["--base-url", base_url.as_str(), "--model", "m-1"];
    let server = APP.start(data.path(), &options).await;
    let session = server.session().await;
    let told = json_of(server.get(&session).await).await;
    assert_eq!(
        (&told["model"], &told["scripted"]),
        (&json!("m-1"), &json!(false))
    );
    let events = Turn::begin(&server, &session, "hello").await.events().await;
    assert_eq!(events, [json!({"type": "text", "text": "Good day."})]);
    assert_eq!(endpoint.requests()[0]["body"]["model"], "m-1");

    // Without it the page is told why, and the conversation can go on later.
    drop(endpoint);
    let events = Turn::begin(&server, &session, "again").await.events().await;
    assert_eq!(types(&events), ["error"]);
    let said = events[0]["text"].as_str().unwrap();
    assert!(said.contains("/chat/completions"), "{said}");
}
