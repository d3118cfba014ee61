//! A loop with any OpenAI-compatible model: it streams, runs tool calls concurrently,
//! returns their results, and stops when the model makes no more calls.
//!
//! In this protocol the result of a call is text. Anything else a tool returns, such as
//! an image, follows the results as a user message: every endpoint that accepts images
//! accepts them there.

pub mod answer;
mod live;
mod print;
pub mod script;
pub mod scripted;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use console_tools::{Block, Chat, Reply};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use serde_json::{Value, json};

use answer::{Answer, Sse};
use live::Live;

pub use answer::Call;
pub use print::{brief, print, printable};
pub use script::{Script, Turn};
pub use scripted::Server;

/// An error of the loop, ready to be shown.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// Number of turns after which the loop gives up: a model can go round in circles.
const MAX_TURNS: usize = 50;

/// The tool whose replies have the output of its command. Other tools may use commands too.
const COMMAND: &str = "execute";

/// Maximum number of bytes shown of an error's body.
const SHOWN_BYTES: usize = 2_000;

/// Something that happens in a conversation.
#[derive(Debug, Clone, Copy)]
pub enum Event<'e> {
    /// The model says more.
    Text(&'e str),
    /// A call begins.
    Call(&'e Call),
    /// A command of a call that runs has printed more. Of much output at once, this has the
    /// beginning and the end. A command that ends soon has its output in the reply only.
    Output(&'e Call, &'e str),
    /// A call has been answered. Calls that run at the same time end in any order.
    Reply(&'e Call, &'e Reply),
}

/// The address of a model.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The address up to `/chat/completions`.
    pub base_url: String,
    /// The model's name.
    pub model: String,
    /// The key, where one is needed.
    pub key: Option<String>,
}

/// A model to talk to.
#[derive(Debug)]
pub struct Model {
    client: reqwest::Client,
    endpoint: Endpoint,
    server: Option<Server>,
}

impl Model {
    /// Creates the model behind an endpoint.
    pub fn at(endpoint: Endpoint) -> Result<Self, Error> {
        let client = client().build()?;
        Ok(Self {
            client,
            endpoint,
            server: None,
        })
    }

    /// Starts a server on loopback that follows the script.
    pub async fn scripted(script: Script) -> Result<Self, Error> {
        let server = Server::play(script).await?;
        Ok(Self {
            client: client().no_proxy().build()?,
            endpoint: server.endpoint(),
            server: Some(server),
        })
    }

    /// Whether this is a script, not a model.
    #[must_use]
    pub fn is_scripted(&self) -> bool {
        self.server.is_some()
    }

    /// Talks until the model makes no more calls: see [`converse`].
    pub async fn converse(
        &self,
        chat: &Chat,
        messages: &mut Vec<Value>,
        show: &mut (dyn FnMut(Event<'_>) + Send),
    ) -> Result<(), Error> {
        converse(&self.client, &self.endpoint, chat, messages, show).await
    }
}

/// Returns the first messages of a conversation.
pub async fn begin(chat: &Chat, prompt: &str) -> Result<Vec<Value>, Error> {
    Ok(vec![
        json!({"role": "system", "content": chat.prompt().await?}),
        json!({"role": "user", "content": prompt}),
    ])
}

/// Talks until the model makes no more calls. Afterwards `messages` is the whole
/// conversation, or after an error its complete part: to retry, call this again. Events
/// are passed to `show` as they happen.
pub async fn converse(
    client: &reqwest::Client,
    endpoint: &Endpoint,
    chat: &Chat,
    messages: &mut Vec<Value>,
    show: &mut (dyn FnMut(Event<'_>) + Send),
) -> Result<(), Error> {
    let tools = chat.definitions().await?.openai();
    for _ in 0..MAX_TURNS {
        let request = json!({
            "model": endpoint.model,
            "messages": messages,
            "tools": tools,
            "stream": true,
        });
        let answer = ask(client, endpoint, &request, show).await?;
        if answer.calls.is_empty() {
            messages.push(answer.message());
            return Ok(());
        }
        // Failures are results too: the model reads them and continues.
        let replies = call_all(chat, &answer.calls, show).await;
        // Together: a call without its result is no valid conversation.
        messages.push(answer.message());
        messages.extend(results(&answer.calls, &replies));
    }
    Err(format!("the model still calls tools after {MAX_TURNS} turns; ask for less at once").into())
}

/// Makes calls at the same time. Returns the replies in the order of the calls.
async fn call_all(
    chat: &Chat,
    calls: &[Call],
    show: &mut (dyn FnMut(Event<'_>) + Send),
) -> Vec<Reply> {
    let mut running = FuturesUnordered::new();
    let live = Live::of(calls.len());
    for (at, call) in calls.iter().enumerate() {
        show(Event::Call(call));
        let observer = live.observer(at);
        running.push(async move {
            let reply = chat.call_observed(&call.name, &call.arguments, observer);
            (at, reply.await)
        });
    }
    let mut replies = Vec::new();
    while replies.len() < calls.len() {
        tokio::select! {
            biased;
            Some((at, reply)) = running.next() => {
                let rest = live.rest(at, calls[at].name == COMMAND);
                if !rest.is_empty() {
                    show(Event::Output(&calls[at], &rest));
                }
                show(Event::Reply(&calls[at], &reply));
                replies.push((at, reply));
            }
            () = live.more() => {
                for (at, text) in live.take() {
                    show(Event::Output(&calls[at], &text));
                }
            }
        }
    }
    replies.sort_by_key(|(at, _)| *at);
    replies.into_iter().map(|(_, reply)| reply).collect()
}

/// Returns the results of the calls in order, then the blocks they returned.
fn results(calls: &[Call], replies: &[Reply]) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut shown = Vec::new();
    for (call, reply) in calls.iter().zip(replies) {
        messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": reply.text}));
        for block in &reply.blocks {
            let from = format!("{} ({}) shows:", call.name, call.id);
            shown.push(json!({"type": "text", "text": from}));
            shown.push(part(block));
        }
    }
    if !shown.is_empty() {
        messages.push(json!({"role": "user", "content": shown}));
    }
    messages
}

fn part(block: &Block) -> Value {
    let url = |media_type: &str, data: &[u8]| {
        format!("data:{media_type};base64,{}", STANDARD.encode(data))
    };
    match block {
        Block::Image { media_type, data } => {
            json!({"type": "image_url", "image_url": {"url": url(media_type, data)}})
        }
        // OpenAI accepts it, but few other endpoints do.
        Block::Document {
            media_type,
            data,
            name,
        } => json!({"type": "file", "file": {
            "filename": name, "file_data": url(media_type, data),
        }}),
        _ => json!({"type": "text", "text": "(something that cannot be shown here)"}),
    }
}

/// Sends one request and reads its streamed answer.
async fn ask(
    client: &reqwest::Client,
    endpoint: &Endpoint,
    request: &Value,
    show: &mut (dyn FnMut(Event<'_>) + Send),
) -> Result<Answer, Error> {
    let base = endpoint.base_url.trim_end_matches('/');
    let mut builder = client
        .post(format!("{base}/chat/completions"))
        .header("content-type", "application/json")
        .header("accept", "text/event-stream")
        .body(serde_json::to_vec(request)?);
    if let Some(key) = &endpoint.key {
        builder = builder.bearer_auth(key);
    }
    let mut response = builder.send().await.map_err(|error| said(&error))?;
    if !response.status().is_success() {
        return Err(refusal(response).await.into());
    }
    let (mut events, mut answer) = (Sse::default(), Answer::default());
    while !answer.is_done() {
        let piece = response.chunk().await.map_err(|error| {
            let error = said(&error);
            format!("the connection breaks before the answer ends; try again: {error}")
        })?;
        let Some(piece) = piece else { break };
        for event in events.push(&piece)? {
            if let Some(text) = answer.take(&event)? {
                show(Event::Text(&text));
            }
        }
    }
    answer.finish()
}

/// Describes an error response, and when to retry.
async fn refusal(mut response: reqwest::Response) -> String {
    let status = response.status();
    let wait = response.headers().get("retry-after");
    let wait = wait.and_then(|value| value.to_str().ok()).map(str::trim);
    let wait = match wait {
        // Either seconds or a date.
        Some(wait) if wait.parse::<u64>().is_ok() => format!("; try again in {wait} seconds"),
        Some(wait) if wait.len() < 40 => format!("; try again after {wait}"),
        _ => String::new(),
    };
    let mut body = Vec::new();
    // The part that arrived is shown, even if the rest does not arrive.
    while body.len() < SHOWN_BYTES
        && let Ok(Some(piece)) = response.chunk().await
    {
        body.extend_from_slice(&piece);
    }
    body.truncate(SHOWN_BYTES);
    let body = String::from_utf8_lossy(&body);
    format!("the endpoint answers {status}: {}{wait}", body.trim())
}

/// Formats an error with its causes.
fn said(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// Builds a client for any endpoint. It gives up on an endpoint that stops sending.
pub fn client() -> reqwest::ClientBuilder {
    // A provider may be installed already; any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(30))
        .read_timeout(Duration::from_secs(300))
}
