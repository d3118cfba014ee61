//! A turn of the conversation as a stream of events, one JSON value in each line.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use permissions::{Answer, Remember};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{OwnedMutexGuard, mpsc};
use tokio::task::AbortHandle;

use super::failure::Failure;
use super::{App, Browser, Program};
use crate::chat::Event;

/// Bytes of a conversation after which no turn begins.
const CONVERSATION_BYTES: usize = 4 * 1024 * 1024;

/// Events with output that may wait for a page. More are left out: the reply has it all.
const UNREAD_OUTPUT: usize = 64;

/// The body of a message.
#[derive(Debug, Deserialize)]
pub(super) struct Said {
    text: String,
}

/// `POST /sessions/{id}/chat`: the user's message. The response streams the model's part, and
/// a client that disconnects stops it.
pub(super) async fn turn<P: Program>(
    State(app): State<Arc<App<P>>>,
    Path(id): Path<String>,
    Json(said): Json<Said>,
) -> Result<Response, Failure> {
    let browser = app.browsers.find(&id)?;
    let messages = Arc::clone(&browser.messages).try_lock_owned();
    let messages = messages.map_err(|_| busy())?;
    let size: usize = messages
        .iter()
        .map(|message| message.to_string().len())
        .sum();
    if size > CONVERSATION_BYTES {
        return Err(Failure::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the conversation has become too long; begin a new session",
        ));
    }
    let (events, shown) = Events::new();
    browser.questions.show_in(events.sender.clone());
    let unread = Arc::clone(&events.unread);
    let conversation = Conversation {
        app,
        browser,
        messages,
    };
    let task = tokio::spawn(conversation.answer(said.text, events));
    let stop = StopOnDrop(task.abort_handle());
    let lines = stream::unfold(
        (shown, unread, stop),
        |(mut shown, unread, stop)| async move {
            let event: Value = shown.recv().await?;
            if is_output(&event) {
                unread.fetch_sub(1, Ordering::Relaxed);
            }
            let line = format!("{event}\n");
            Some((
                Ok::<_, std::convert::Infallible>(line),
                (shown, unread, stop),
            ))
        },
    );
    let kind = [(CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, Body::from_stream(lines)).into_response())
}

/// The failure of a request that cannot be served during a turn.
pub(super) fn busy() -> Failure {
    Failure::new(
        StatusCode::CONFLICT,
        "the last message is still being answered; wait, or stop it",
    )
}

/// The events of a turn, on their way to the page.
struct Events {
    /// Not bounded, because what it holds is as long as the conversation, which is kept. The
    /// output of commands is not kept, so it is counted.
    sender: mpsc::UnboundedSender<Value>,
    /// The events with output that were not read yet.
    unread: Arc<AtomicUsize>,
}

impl Events {
    fn new() -> (Self, mpsc::UnboundedReceiver<Value>) {
        let (sender, shown) = mpsc::unbounded_channel();
        let unread = Arc::default();
        (Self { sender, unread }, shown)
    }

    /// Sends an event, unless it is output and the page reads too slowly.
    fn tell(&self, event: Value) {
        if is_output(&event) {
            if self.unread.load(Ordering::Relaxed) >= UNREAD_OUTPUT {
                return;
            }
            self.unread.fetch_add(1, Ordering::Relaxed);
        }
        // A reader that is gone has stopped the turn, or is about to.
        let _ = self.sender.send(event);
    }
}

fn is_output(event: &Value) -> bool {
    event["type"] == "output"
}

/// A conversation during a turn. It is saved when that ends, in whatever way.
struct Conversation<P: Program> {
    app: Arc<App<P>>,
    browser: Browser<P>,
    messages: OwnedMutexGuard<Vec<Value>>,
}

impl<P: Program> Conversation<P> {
    async fn answer(mut self, said: String, events: Events) {
        let program = &self.app.program;
        let mut show = |event: Event<'_>| events.tell(described(program, event));
        let answered = async {
            if self.messages.is_empty() {
                let prompt = self.browser.tools.prompt().await?;
                let prompt = format!("{}{prompt}", P::INSTRUCTIONS);
                let first = json!({"role": "system", "content": prompt});
                self.messages.push(first);
            }
            self.messages.push(json!({"role": "user", "content": said}));
            save(&self.app, &self.browser, &self.messages);
            let model = &self.app.model;
            model
                .converse(&self.browser.tools, &mut self.messages, &mut show)
                .await
        };
        if let Err(error) = answered.await {
            events.tell(json!({"type": "error", "text": error.to_string()}));
        }
        // Before the stream ends, so that the next message finds the conversation free.
        drop(self);
        drop(events);
    }
}

impl<P: Program> Drop for Conversation<P> {
    fn drop(&mut self) {
        self.browser.questions.show_nowhere();
        save(&self.app, &self.browser, &self.messages);
    }
}

fn save<P: Program>(app: &App<P>, browser: &Browser<P>, messages: &[Value]) {
    if let Err(error) = app.browsers.save(&browser.name, messages) {
        println!("session {}: not saved: {error}", browser.name);
    }
}

/// Ends a task with the stream that reads its events.
struct StopOnDrop(AbortHandle);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn described<P: Program>(program: &P, event: Event<'_>) -> Value {
    match event {
        Event::Text(text) => json!({"type": "text", "text": text}),
        Event::Call(made) => call(&made.id, &made.name, &made.arguments),
        Event::Output(made, text) => json!({"type": "output", "id": made.id, "text": text}),
        Event::Reply(made, reply) => {
            let failed = !reply.is_success();
            self::reply(program, &made.id, &made.name, &reply.text, failed)
        }
    }
}

/// Describes a call. Arguments that are no object are shown as none.
fn call(id: &str, name: &str, arguments: &str) -> Value {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let arguments = if arguments.is_object() {
        arguments
    } else {
        json!({})
    };
    json!({"type": "call", "id": id, "name": name, "arguments": arguments})
}

fn reply<P: Program>(program: &P, id: &str, name: &str, text: &str, failed: bool) -> Value {
    let mut reply = json!({"type": "reply", "id": id, "text": text, "failed": failed});
    if !failed && let Some(drawn) = program.drawn(name, text) {
        reply["drawn"] = drawn;
    }
    reply
}

/// Returns a conversation as the events that the page has shown, for a page that is loaded
/// again.
pub(super) fn history<P: Program>(program: &P, messages: &[Value]) -> Vec<Value> {
    let mut events = Vec::new();
    // The tools of the last calls, by the calls' ids.
    let mut names = HashMap::new();
    for message in messages {
        let text = message["content"].as_str().unwrap_or_default();
        match message["role"].as_str() {
            Some("user") if !text.is_empty() => events.push(json!({"type": "user", "text": text})),
            Some("assistant") => {
                if !text.is_empty() {
                    events.push(json!({"type": "text", "text": text}));
                }
                names.clear();
                for made in message["tool_calls"].as_array().into_iter().flatten() {
                    let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    let function = &made["function"];
                    let (id, name) = (field(&made["id"]), field(&function["name"]));
                    events.push(call(&id, &name, &field(&function["arguments"])));
                    names.insert(id, name);
                }
            }
            Some("tool") => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let name = names.get(id).map_or("", String::as_str);
                let failed = text.starts_with("Error: ");
                events.push(reply(program, id, name, text, failed));
            }
            _ => {}
        }
    }
    events
}

/// The answer to a question.
#[derive(Debug, Deserialize)]
pub(super) struct Answered {
    number: u64,
    approve: bool,
    /// Whether it also holds for all operations of this kind, until the session is idle.
    #[serde(default)]
    remember: bool,
}

/// `POST /sessions/{id}/answer`
pub(super) async fn answer<P: Program>(
    State(app): State<Arc<App<P>>>,
    Path(id): Path<String>,
    Json(given): Json<Answered>,
) -> Result<StatusCode, Failure> {
    let browser = app.browsers.find(&id)?;
    let mut answer = if given.approve {
        Answer::yes()
    } else {
        Answer::no()
    };
    if given.remember {
        answer = answer.remember(Remember::Session);
    }
    if browser.questions.answer(given.number, answer) {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Failure::new(
        StatusCode::CONFLICT,
        "the question is not waiting any more; send the message again",
    ))
}
