//! An agent with any OpenAI-compatible model: it streams, runs tool calls concurrently,
//! returns their results, and stops when the model makes no more calls.
//!
//! `cargo run --example openai_loop -- [--images] BASE_URL MODEL PROMPT...` talks to a
//! model. The base URL ends before `/chat/completions`, and the key, if one is needed,
//! is read from `OPENAI_API_KEY`. `--images` is for models with vision. Without
//! arguments it talks to a script on loopback, which needs no network.
//!
//! In this protocol the result of a call is text. Anything else a tool returns, such as
//! an image, follows the results as a user message: every endpoint that accepts images
//! accepts them there.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    unreachable_pub,
    reason = "an example shows what it does, and reads its key from the environment"
)]

pub mod answer;
pub mod scripted;
#[cfg(test)]
mod tests;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use answer::{Answer, Call, Sse};
use backend_core::BackendExt as _;
use backend_state::StateBackend;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use console_tools::{Block, Chat, Options, Reply, Toolset};
use futures::future::join_all;
use serde_json::{Value, json};

pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// Number of turns after which the loop gives up: a model can go round in circles.
const MAX_TURNS: usize = 50;

/// Maximum number of bytes shown of an error's body.
const SHOWN_BYTES: usize = 2_000;

/// The address of a model.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub base_url: String,
    pub model: String,
    pub key: Option<String>,
}

/// Returns the first messages of a conversation.
pub async fn begin(chat: &Chat, prompt: &str) -> Result<Vec<Value>, Error> {
    Ok(vec![
        json!({"role": "system", "content": chat.prompt().await?}),
        json!({"role": "user", "content": prompt}),
    ])
}

/// Talks until the model makes no more calls. Afterwards `messages` is the whole
/// conversation, or after an error its complete part: to retry, call this again. The
/// model's text is passed to `show` as it arrives.
pub async fn converse(
    client: &reqwest::Client,
    endpoint: &Endpoint,
    chat: &Chat,
    messages: &mut Vec<Value>,
    show: &mut (dyn FnMut(&str) + Send),
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
        messages.push(answer.message());
        if answer.calls.is_empty() {
            return Ok(());
        }
        let calls = answer
            .calls
            .iter()
            .map(|call| chat.call(&call.name, &call.arguments));
        // Failures are results too: the model reads them and continues.
        let replies = join_all(calls).await;
        messages.extend(results(&answer.calls, &replies));
    }
    Err(format!("the model still calls tools after {MAX_TURNS} turns; ask for less at once").into())
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
    show: &mut (dyn FnMut(&str) + Send),
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
                show(&text);
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

#[tokio::main]
async fn main() -> Result<(), Error> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let mut options = Options::default();
    let arguments = match arguments.split_first() {
        Some((first, rest)) if first == "--images" => {
            options.image_support = true;
            rest
        }
        _ => &arguments,
    };
    let (endpoint, prompt, client, _server) = match arguments {
        [] => {
            let server = scripted::Server::start(scripted::demo()).await?;
            let prompt = "Write two files and mend one of them.".to_owned();
            let client = client().no_proxy();
            (server.endpoint(), prompt, client.build()?, Some(server))
        }
        [base_url, model, prompt @ ..] if !prompt.is_empty() => {
            let endpoint = Endpoint {
                base_url: base_url.clone(),
                model: model.clone(),
                key: std::env::var("OPENAI_API_KEY").ok(),
            };
            (endpoint, prompt.join(" "), client().build()?, None)
        }
        _ => return Err("usage: openai_loop [--images] BASE_URL MODEL PROMPT...".into()),
    };
    let files = StateBackend::new();
    let toolset = Toolset::builder(Arc::new(files.clone()))
        .options(options)
        .build()?;
    let chat = toolset.conversation("openai_loop");
    let mut messages = begin(&chat, &prompt).await?;
    let mut show = |text: &str| {
        print!("{text}");
        let _ = std::io::stdout().flush();
    };
    converse(&client, &endpoint, &chat, &mut messages, &mut show).await?;
    println!("\n\n# What its calls were answered");
    for message in messages.iter().filter(|message| message["role"] == "tool") {
        println!("{}", message["content"].as_str().unwrap_or_default());
    }
    println!("\n# What it left behind");
    for file in files.find_files("**").await?.files {
        println!("{} ({} bytes)", file.path, file.size.unwrap_or(0));
    }
    Ok(())
}
