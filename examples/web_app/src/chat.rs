//! A turn of the conversation as a stream of events, one JSON value in each line.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use examples::chat::Event;
use futures::stream;
use permissions::{Answer, Remember};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{OwnedMutexGuard, mpsc};
use tokio::task::AbortHandle;

use crate::App;
use crate::browser_sessions::BrowserSession;
use crate::failure::Failure;

/// Bytes of a conversation after which no turn begins.
const CONVERSATION_BYTES: usize = 4 * 1024 * 1024;

/// The body of a message.
#[derive(Debug, Deserialize)]
pub(crate) struct Said {
    text: String,
}

/// `POST /sessions/{id}/chat`: the user's message. The response streams the model's part, and
/// a client that disconnects stops it.
pub(crate) async fn turn(
    State(app): State<Arc<App>>,
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
    // Not bounded, because what it holds is as long as the conversation, which is kept.
    let (events, shown) = mpsc::unbounded_channel();
    browser.questions.show_in(events.clone());
    let conversation = Conversation {
        app,
        browser,
        messages,
    };
    let task = tokio::spawn(conversation.answer(said.text, events));
    let stop = StopOnDrop(task.abort_handle());
    let lines = stream::unfold((shown, stop), |(mut shown, stop)| async move {
        let event: Value = shown.recv().await?;
        let line = format!("{event}\n");
        Some((Ok::<_, std::convert::Infallible>(line), (shown, stop)))
    });
    let kind = [(CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, Body::from_stream(lines)).into_response())
}

/// The failure of a request that cannot be served during a turn.
pub(crate) fn busy() -> Failure {
    Failure::new(
        StatusCode::CONFLICT,
        "the last message is still being answered; wait, or stop it",
    )
}

/// A conversation during a turn. It is saved when that ends, in whatever way.
struct Conversation {
    app: Arc<App>,
    browser: Arc<BrowserSession>,
    messages: OwnedMutexGuard<Vec<Value>>,
}

impl Conversation {
    async fn answer(mut self, said: String, events: mpsc::UnboundedSender<Value>) {
        // A reader that is gone has stopped this, or is about to.
        let tell = |event: Value| drop(events.send(event));
        let mut show = |event: Event<'_>| tell(described(event));
        let answered = async {
            if self.messages.is_empty() {
                let prompt = self.browser.tools.prompt().await?;
                let first = json!({"role": "system", "content": prompt});
                self.messages.push(first);
            }
            self.messages.push(json!({"role": "user", "content": said}));
            self.save();
            let model = &self.app.model;
            model
                .converse(&self.browser.tools, &mut self.messages, &mut show)
                .await
        };
        if let Err(error) = answered.await {
            tell(json!({"type": "error", "text": error.to_string()}));
        }
        // Before the stream ends, so that the next message finds the conversation free.
        drop(self);
        drop(events);
    }

    fn save(&self) {
        let saved = self.app.browsers.save(&self.browser.name, &self.messages);
        if let Err(error) = saved {
            println!("session {}: not saved: {error}", self.browser.name);
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.browser.questions.show_nowhere();
        self.save();
    }
}

/// Ends a task with the stream that reads its events.
struct StopOnDrop(AbortHandle);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn described(event: Event<'_>) -> Value {
    match event {
        Event::Text(text) => json!({"type": "text", "text": text}),
        Event::Call(made) => call(&made.id, &made.name, &made.arguments),
        Event::Reply(made, reply) => self::reply(&made.id, &reply.text, !reply.is_success()),
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

fn reply(id: &str, text: &str, failed: bool) -> Value {
    json!({"type": "reply", "id": id, "text": text, "failed": failed})
}

/// Returns a conversation as the events that the page has shown, for a page that is loaded
/// again.
pub(crate) fn history(messages: &[Value]) -> Vec<Value> {
    let mut events = Vec::new();
    for message in messages {
        let text = message["content"].as_str().unwrap_or_default();
        match message["role"].as_str() {
            Some("user") if !text.is_empty() => events.push(json!({"type": "user", "text": text})),
            Some("assistant") => {
                if !text.is_empty() {
                    events.push(json!({"type": "text", "text": text}));
                }
                for made in message["tool_calls"].as_array().into_iter().flatten() {
                    let field = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
                    let function = &made["function"];
                    let (name, arguments) = (&function["name"], &function["arguments"]);
                    events.push(call(&field(&made["id"]), &field(name), &field(arguments)));
                }
            }
            Some("tool") => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                events.push(reply(id, text, text.starts_with("Error: ")));
            }
            _ => {}
        }
    }
    events
}

/// The answer to a question.
#[derive(Debug, Deserialize)]
pub(crate) struct Answered {
    number: u64,
    approve: bool,
    /// Whether it also holds for all operations of this kind, until the session is idle.
    #[serde(default)]
    remember: bool,
}

/// `POST /sessions/{id}/answer`
pub(crate) async fn answer(
    State(app): State<Arc<App>>,
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
