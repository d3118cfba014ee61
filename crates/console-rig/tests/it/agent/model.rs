//! A scripted model on loopback, and an agent that uses it.

use std::sync::{Arc, Mutex};

use rig_agent::AgentBuilder;
use rig_core::providers::openai::OpenAIConfig;
use rig_core::tool::DynamicTool;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The model. It stops with the runtime.
#[derive(Debug)]
pub(crate) struct Model {
    base_url: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    /// Starts a model that gives these answers, one per request.
    pub(crate) async fn start(answers: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::default();
        tokio::spawn(answer_all(listener, answers, Arc::clone(&asked)));
        Self { base_url, asked }
    }

    /// Builds an agent with these tools and this preamble.
    pub(crate) fn agent(
        &self,
        preamble: &str,
        tools: Vec<DynamicTool>,
    ) -> AgentBuilder<rig_agent::agent::WithBuilderTools> {
        // Another member of the workspace may have built reqwest with TLS.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let openai = OpenAIConfig::new("no-secret")
            .with_base_url(&self.base_url)
            .connect(rig_reqwest::ReqwestClient::from(http));
        AgentBuilder::new(openai.chat("scripted"))
            .preamble(preamble)
            .dynamic_tools(tools)
    }

    /// Returns the bodies of the requests so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }
}

async fn answer_all(listener: TcpListener, answers: Vec<Value>, asked: Arc<Mutex<Vec<Value>>>) {
    for answer in answers {
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = request(&mut stream).await;
        asked.lock().unwrap().push(request);
        let body = answer.to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
    }
}

async fn request(stream: &mut TcpStream) -> Value {
    let mut bytes = Vec::new();
    loop {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.expect("a length").trim().parse().unwrap();
            if bytes.len() >= end + 4 + length {
                return serde_json::from_slice(&bytes[end + 4..]).unwrap();
            }
        }
        let read = stream.read_buf(&mut bytes).await.unwrap();
        assert_ne!(read, 0, "a whole request");
    }
}

/// Returns the final answer.
pub(crate) fn says(text: &str) -> Value {
    completion(json!({"role": "assistant", "content": text}), "stop")
}

/// Returns an answer with tool calls: an id, the name of a tool, and its arguments as
/// the model wrote them.
pub(crate) fn calls(calls: &[(&str, &str, &str)]) -> Value {
    let call = |(id, name, arguments): &(&str, &str, &str)| {
        let function = json!({"name": name, "arguments": arguments});
        json!({"id": id, "type": "function", "function": function})
    };
    let calls: Vec<_> = calls.iter().map(call).collect();
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    completion(message, "tool_calls")
}

fn completion(message: Value, finish_reason: &str) -> Value {
    json!({
        "id": "x", "object": "chat.completion", "created": 0, "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    })
}
