//! The example's loop against a scripted endpoint on loopback.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use backend_core::BackendExt as _;
use backend_state::StateBackend;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use console_tools::{
    Annotations, Chat, Context, Definition, Options, Reply, ToolHandler, ToolResult, Toolset,
};
use permissions::Op;
use serde_json::{Value, json};
use tokio::net::TcpSocket;
use tokio::sync::{Barrier, Notify};

use examples::chat::answer::{Answer, Sse};
use examples::chat::scripted::{BodyEnd, ScriptedResponse, Server, call, delta, demo};
use examples::chat::{Endpoint, Error, Event, begin, client, converse};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// An image of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn chat_on(files: &StateBackend) -> Chat {
    let mut options = Options::default();
    options.image_support = true;
    let toolset = Toolset::builder(Arc::new(files.clone())).options(options);
    toolset.build().unwrap().conversation("test")
}

/// Runs one conversation. Returns all its messages, the text shown, and the result.
async fn run(server: &Server, chat: &Chat) -> (Vec<Value>, String, Result<(), Error>) {
    run_at(&server.endpoint(), chat).await
}

async fn run_at(endpoint: &Endpoint, chat: &Chat) -> (Vec<Value>, String, Result<(), Error>) {
    let mut shown = String::new();
    let mut show = |event: Event<'_>| {
        if let Event::Text(text) = event {
            shown.push_str(text);
        }
    };
    let client = client().no_proxy().build().unwrap();
    let mut messages = begin(chat, "go").await.unwrap();
    let talk = converse(&client, endpoint, chat, &mut messages, &mut show);
    let result = tokio::time::timeout(LONG, talk).await.expect("it ends");
    (messages, shown, result)
}

/// Creates a response with these calls.
fn calls(calls: &[(&str, &str, &str)]) -> ScriptedResponse {
    let each = |(index, (id, name, arguments)): (usize, &(&str, &str, &str))| {
        call(index as u64, Some((id, name)), arguments)
    };
    let mut events: Vec<_> = calls.iter().enumerate().map(each).collect();
    events.push(delta(json!({}), Some("tool_calls")));
    ScriptedResponse::events(&events, 100)
}

fn says(text: &str) -> ScriptedResponse {
    let words = delta(json!({"content": text}), None);
    ScriptedResponse::events(&[words, delta(json!({}), Some("stop"))], 1000)
}

/// Returns the content that the model got for a call.
fn told<'m>(messages: &'m [Value], id: &str) -> &'m str {
    let of: Vec<_> = messages
        .iter()
        .filter(|message| message["tool_call_id"] == id)
        .collect();
    let [message] = of[..] else {
        panic!("{} answers to {id}", of.len());
    };
    assert_eq!(message["role"], "tool");
    message["content"].as_str().unwrap()
}

#[tokio::test]
async fn calls_are_made_and_answered() {
    let server = Server::start(demo()).await.unwrap();
    let files = StateBackend::new();
    let chat = chat_on(&files);
    let (messages, shown, result) = run(&server, &chat).await;
    result.unwrap();

    let text = |path| files.read_to_string(path);
    assert_eq!(text("notes/gr\u{fc}n.md").await.unwrap(), "\u{20ac} 5\n");
    assert_eq!(text("b.txt").await.unwrap(), "one tea\ntwo\n");
    assert_eq!(shown, "I write zw\u{f6}lf \u{1f600} files.\nDone.");

    let asked = server.requests();
    assert_eq!(asked.len(), 4);
    for (request, known) in asked.iter().zip([2, 6, 8, 10]) {
        assert_eq!(request["line"], "POST /v1/chat/completions HTTP/1.1");
        assert_eq!(request["key"], "Bearer no-secret");
        let body = &request["body"];
        assert_eq!(body["stream"], true);
        assert_eq!(body["model"], "scripted");
        assert_eq!(body["tools"], chat.definitions().await.unwrap().openai());
        assert_eq!(body["messages"], json!(messages[..known]));
    }
    let prompt = chat.prompt().await.unwrap();
    assert_eq!(messages[0], json!({"role": "system", "content": prompt}));

    let function = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    let tool_calls = json!([
        {"id": "call_a", "type": "function", "function": function(
            "write_file", "{\"path\": \"notes/gr\u{fc}n.md\", \"content\": \"\u{20ac} 5\\n\"}")},
        {"id": "call_b", "type": "function", "function": function(
            "write_file", "{\"path\": \"b.txt\", \"content\": \"one caf\\u00e9\\ntwo\\n\"}")},
        {"id": "call_c", "type": "function", "function": function(
            "read_file", "{\"path\": \"missing\"}")},
    ]);
    let words = "I write zw\u{f6}lf \u{1f600} files.\n";
    assert_eq!(
        messages[2],
        json!({"role": "assistant", "content": words, "tool_calls": tool_calls})
    );
    let answers = messages[3..6].iter();
    let ids: Vec<_> = answers.map(|message| &message["tool_call_id"]).collect();
    assert_eq!(ids, ["call_a", "call_b", "call_c"]);
    assert!(told(&messages, "call_a").contains("notes/gr\u{fc}n.md"));
    for (id, expected) in [("call_c", "not found"), ("call_d", "one caf\u{e9}")] {
        let text = told(&messages, id);
        assert!(
            text.starts_with("Error: ") && text.contains(expected),
            "{text}"
        );
    }
    assert!(!told(&messages, "call_e").starts_with("Error: "));
    assert_eq!(
        messages[10],
        json!({"role": "assistant", "content": "Done."})
    );
}

/// Blocks each call until the two others arrive.
#[derive(Debug)]
struct Meet(Barrier);

#[async_trait]
impl ToolHandler for Meet {
    fn definition(&self) -> Definition {
        let schema = json!({"type": "object", "properties": {}});
        let annotations = Annotations::of(&[Op::Read]);
        Definition::new("meet", "Meets the others.", schema, annotations)
    }

    fn operations(&self) -> &'static [Op] {
        &[Op::Read]
    }

    async fn call(&self, _: &Context, _: Value) -> ToolResult {
        self.0.wait().await;
        Ok(Reply::text("met"))
    }
}

#[tokio::test]
async fn calls_run_side_by_side() {
    let meet = [
        ("a", "meet", ""),
        ("b", "meet", "{}"),
        ("c", "meet", "null"),
    ];
    let server = Server::start(vec![calls(&meet), says("Done.")]);
    let server = server.await.unwrap();
    let toolset = Toolset::builder(Arc::new(StateBackend::new()))
        .handler(Arc::new(Meet(Barrier::new(3))))
        .build()
        .unwrap();
    let (messages, _, result) = run(&server, &toolset.conversation("test")).await;
    result.unwrap();
    assert!(meet.iter().all(|(id, ..)| told(&messages, id) == "met"));
}

#[tokio::test]
async fn text_is_shown_as_it_comes() {
    let words = delta(json!({"content": "early"}), None);
    let mut turn = ScriptedResponse::events(&[words, delta(json!({}), Some("stop"))], 10);
    let gate = Arc::new(Notify::new());
    turn.gate = Some(Arc::clone(&gate));
    let server = Server::start(vec![turn]).await.unwrap();
    let chat = chat_on(&StateBackend::new());
    let mut show = |event: Event<'_>| {
        assert!(matches!(event, Event::Text("early")), "{event:?}");
        gate.notify_one();
    };
    let client = client().no_proxy().build().unwrap();
    let mut messages = begin(&chat, "go").await.unwrap();
    let endpoint = server.endpoint();
    let talk = converse(&client, &endpoint, &chat, &mut messages, &mut show);
    let talk = tokio::time::timeout(LONG, talk).await;
    talk.expect("shown before the end").unwrap();
}

#[tokio::test]
async fn a_picture_follows_the_answers() {
    let files = StateBackend::new();
    let png = STANDARD.decode(PNG).unwrap();
    files.write_file("dot.png", png).await.unwrap();
    let look = calls(&[
        ("see", "read_file", r#"{"path": "dot.png"}"#),
        ("ls", "ls", r#"{"path": "."}"#),
    ]);
    let server = Server::start(vec![look, says("A dot.")]).await.unwrap();
    let (messages, _, result) = run(&server, &chat_on(&files)).await;
    result.unwrap();
    let roles: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
    let expected = [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
        "assistant",
    ];
    assert_eq!(roles, expected);
    let url = format!("data:image/png;base64,{PNG}");
    assert_eq!(
        messages[5]["content"],
        json!([
            {"type": "text", "text": "read_file (see) shows:"},
            {"type": "image_url", "image_url": {"url": url}},
        ])
    );
    let asked = server.requests();
    assert_eq!(asked[1]["body"]["messages"], json!(messages[..6]));
}

#[tokio::test]
async fn what_a_model_gets_wrong_it_is_told() {
    let wrong = calls(&[
        ("json", "read_file", "{\"path\": \"a"),
        ("list", "read_file", "[1]"),
        ("type", "read_file", "{\"path\": 5}"),
        ("name", "reed_file", "{\"path\": \"a\"}"),
        ("deep", "read_file", &"[".repeat(100_000)),
    ]);
    let server = Server::start(vec![wrong, says("Sorry.")]).await.unwrap();
    let (messages, shown, result) = run(&server, &chat_on(&StateBackend::new())).await;
    result.unwrap();
    assert_eq!(shown, "Sorry.");
    for (id, expected) in [
        ("json", "not valid JSON"),
        ("list", "must be a JSON object"),
        ("type", "path"),
        ("name", "did you mean read_file?"),
        ("deep", "not valid JSON"),
    ] {
        let text = told(&messages, id);
        assert!(
            text.starts_with("Error: ") && text.contains(expected),
            "{text}"
        );
    }
    // Endpoints that parse the arguments of old calls must not fail at them.
    let sent = server.requests()[1]["body"]["messages"][2]["tool_calls"].clone();
    let arguments = |at: usize| sent[at]["function"]["arguments"].clone();
    assert_eq!(
        [0, 1, 2, 3, 4].map(arguments),
        ["{}", "{}", "{\"path\": 5}", "{\"path\": \"a\"}", "{}"]
    );
}

/// Returns the error of a conversation whose first response is `turn`.
async fn failure(turn: ScriptedResponse) -> String {
    let server = Server::start(vec![turn]).await.unwrap();
    let files = StateBackend::new();
    let (messages, _, result) = run(&server, &chat_on(&files)).await;
    assert_eq!(messages.len(), 2, "nothing is kept of half an answer");
    assert_eq!(files.find_files("**").await.unwrap().files, []);
    result.unwrap_err().to_string()
}

fn write() -> Value {
    let arguments = "{\"path\": \"x\", \"content\": \"\"}";
    call(0, Some(("a", "write_file")), arguments)
}

#[tokio::test]
async fn an_endpoint_that_refuses_is_quoted() {
    let mut refused = ScriptedResponse::body("429 Too Many Requests", " slow down\n", 4);
    let expected = "the endpoint answers 429 Too Many Requests: slow down";
    assert_eq!(failure(refused.clone()).await, expected);
    for (headers, wait) in [
        ("retry-after: 7\r\n", "in 7 seconds"),
        (
            "retry-after: Wed, 21 Oct 2015 07:28:00 GMT\r\n",
            "after Wed, 21 Oct 2015 07:28:00 GMT",
        ),
    ] {
        refused.headers = headers;
        let error = failure(refused.clone()).await;
        assert_eq!(error, format!("{expected}; try again {wait}"));
    }
    let mut endless =
        ScriptedResponse::body("500 Internal Server Error", &"x".repeat(9_000), 1_000);
    endless.end = BodyEnd::Open;
    let error = failure(endless).await;
    assert!(error.len() < 2_100, "{} bytes", error.len());
    let mut broken = ScriptedResponse::body("503 Service Unavailable", "at lunch", 4);
    broken.end = BodyEnd::Broken;
    let expected = "the endpoint answers 503 Service Unavailable: at lunch";
    assert_eq!(failure(broken).await, expected);
}

#[tokio::test]
async fn half_an_answer_calls_nothing() {
    let mut early = ScriptedResponse::events(std::slice::from_ref(&write()), 50);
    early.pieces.pop();
    let error = failure(early.clone()).await;
    assert!(error.starts_with("the stream ends before"), "{error}");
    early.end = BodyEnd::Broken;
    let error = failure(early).await;
    assert!(error.starts_with("the connection breaks before"), "{error}");
    let broken =
        ScriptedResponse::events(&[write(), json!({"error": {"message": "overloaded"}})], 9);
    let expected = "the endpoint fails: {\"message\":\"overloaded\"}";
    assert_eq!(failure(broken).await, expected);
    for (reason, expected) in [("length", "is cut"), ("content_filter", "withholds")] {
        let turn = ScriptedResponse::events(&[write(), delta(json!({}), Some(reason))], 9);
        let error = failure(turn).await;
        assert!(
            error.contains(expected) && error.contains(reason),
            "{error}"
        );
    }
    let none = ScriptedResponse::events(&[delta(json!({}), Some("tool_calls"))], 9);
    assert!(failure(none).await.contains("names none"));
    let garbage = ScriptedResponse::body("200 OK", "data: {\"choices\"\n\n", 5);
    assert!(failure(garbage).await.contains("not valid JSON"));
    let page = ScriptedResponse::body("200 OK", "<html>Sign in</html>", 5);
    assert!(failure(page).await.starts_with("the stream ends before"));
}

#[tokio::test]
async fn nobody_there_is_said() {
    // Bound, but not listening: no other test gets the port meanwhile.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let endpoint = Endpoint {
        base_url: format!("http://{}/v1/", socket.local_addr().unwrap()),
        model: "scripted".to_owned(),
        key: None,
    };
    let (messages, _, result) = run_at(&endpoint, &chat_on(&StateBackend::new())).await;
    assert_eq!(messages.len(), 2);
    let error = result.unwrap_err().to_string();
    assert!(error.contains("/v1/chat/completions"), "{error}");
}

#[tokio::test]
async fn a_connection_that_stays_open_does_not_keep_the_loop() {
    let mut open = says("Done.");
    open.end = BodyEnd::Open;
    let server = Server::start(vec![open]).await.unwrap();
    let (_, shown, result) = run(&server, &chat_on(&StateBackend::new())).await;
    result.unwrap();
    assert_eq!(shown, "Done.");
}

#[tokio::test]
async fn after_an_error_it_can_go_on() {
    let mut broken = says("Do");
    broken.pieces.pop();
    broken.end = BodyEnd::Broken;
    let write = ScriptedResponse::events(&[write(), delta(json!({}), Some("tool_calls"))], 100);
    let server = Server::start(vec![write, broken, says("Done.")]);
    let server = server.await.unwrap();
    let files = StateBackend::new();
    let chat = chat_on(&files);
    let (mut messages, _, result) = run(&server, &chat).await;
    assert!(result.is_err());
    assert_eq!(messages.len(), 4);
    let client = client().no_proxy().build().unwrap();
    let endpoint = server.endpoint();
    let mut show = |_: Event<'_>| {};
    let talk = converse(&client, &endpoint, &chat, &mut messages, &mut show);
    talk.await.unwrap();
    assert_eq!(messages.len(), 5);
    let asked = server.requests();
    assert_eq!(asked[2]["body"]["messages"], json!(messages[..4]));
    assert!(files.exists("x").await.unwrap());
}

#[tokio::test]
async fn a_model_that_never_stops_is_stopped() {
    let circle = calls(&[("a", "no_such_tool", "")]);
    let server = Server::start(vec![circle; 51]).await.unwrap();
    let (messages, _, result) = run(&server, &chat_on(&StateBackend::new())).await;
    assert!(result.unwrap_err().to_string().contains("after 50 turns"));
    assert_eq!(messages.len(), 102);
    assert_eq!(server.requests().len(), 50);
}

fn assembled(events: &[Value], step: usize) -> Answer {
    let (mut sse, mut answer) = (Sse::default(), Answer::default());
    for piece in ScriptedResponse::events(events, step).pieces {
        for event in sse.push(&piece).unwrap() {
            answer.take(&event).unwrap();
        }
    }
    answer.finish().unwrap()
}

#[test]
fn no_cut_changes_the_answer() {
    let events = [
        delta(json!({"content": "\u{1f600}\u{e9}"}), None),
        call(0, Some(("a", "f")), "{\"x\":"),
        call(0, None, " \"\u{20ac}\"}"),
        delta(json!({}), Some("tool_calls")),
    ];
    let whole = assembled(&events, usize::MAX).message();
    for step in 1..200 {
        assert_eq!(
            assembled(&events, step).message(),
            whole,
            "pieces of {step}"
        );
    }
}

#[test]
fn endpoints_with_habits_of_their_own_are_understood() {
    let piece = |id: &str, name: &str, arguments: Value| {
        let function = json!({"name": name, "arguments": arguments});
        delta(
            json!({"tool_calls": [{"id": id, "function": function}]}),
            None,
        )
    };
    let events = [
        piece("a", "f", json!("{")),
        piece("", "", json!("}")),
        piece("b", "g", json!("")),
        piece("c", "h", json!({"x": 1})),
        delta(json!({"refusal": "No."}), Some("stop")),
    ];
    let answer = assembled(&events, 40);
    let calls = answer.calls.iter();
    let found: Vec<_> = calls
        .map(|call| (&*call.id, &*call.name, &*call.arguments))
        .collect();
    let expected = [("a", "f", "{}"), ("b", "g", ""), ("c", "h", "{\"x\":1}")];
    assert_eq!(found, expected);
    assert_eq!(answer.text, "No.");
}

#[test]
fn what_has_no_end_is_refused() {
    let mut sse = Sse::default();
    let piece = vec![b'x'; 1024 * 1024];
    assert!((0..20).any(|_| sse.push(&piece).is_err()));
    let mut answer = Answer::default();
    let event = delta(json!({"content": "x".repeat(1024 * 1024)}), None).to_string();
    assert!((0..20).any(|_| answer.take(&event).is_err()));
    let mut answer = Answer::default();
    let mut events = (0..200).map(|index| call(index, Some(("a", "f")), "").to_string());
    assert!(events.any(|event| answer.take(&event).is_err()));
}
