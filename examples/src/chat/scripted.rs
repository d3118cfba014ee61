//! A scripted endpoint on loopback, for examples without a network and for their tests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

use super::{Endpoint, Error, Script};

/// One response: its status, additional headers, and the pieces of its body. Each piece
/// is sent as a separate chunk, and so arrives separately.
#[derive(Debug, Clone)]
pub struct ScriptedResponse {
    /// The status line after the version.
    pub status: &'static str,
    /// Additional headers, each with its line end.
    pub headers: &'static str,
    /// The pieces of the body.
    pub pieces: Vec<Vec<u8>>,
    /// The last piece waits for this.
    pub gate: Option<Arc<Notify>>,
    /// The way it ends.
    pub end: BodyEnd,
}

/// The way a response ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyEnd {
    /// Properly.
    Whole,
    /// The connection breaks after the last piece.
    Broken,
    /// The connection stays open, and nothing more is sent.
    Open,
}

impl ScriptedResponse {
    /// Creates a response with this body, cut into pieces of `step` bytes at arbitrary
    /// positions.
    pub fn body(status: &'static str, body: &str, step: usize) -> Self {
        let pieces = body.as_bytes().chunks(step).map(<[u8]>::to_vec);
        Self {
            status,
            headers: "",
            pieces: pieces.collect(),
            gate: None,
            end: BodyEnd::Whole,
        }
    }

    /// Creates a response with these events, cut the same way.
    pub fn events(events: &[Value], step: usize) -> Self {
        let mut body = String::from(": a comment\n\n");
        for event in events {
            body.push_str(&format!("data: {event}\r\n\r\n"));
        }
        body.push_str("data: [DONE]\n\n");
        Self::body("200 OK", &body, step)
    }
}

/// Returns an event with a part of the model's message.
pub fn delta(delta: Value, finish_reason: Option<&str>) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})
}

/// Returns an event that begins a call, or adds to its arguments.
pub fn call(index: u64, begin: Option<(&str, &str)>, arguments: &str) -> Value {
    let mut call = json!({"index": index, "function": {"arguments": arguments}});
    if let Some((id, name)) = begin {
        call["id"] = json!(id);
        call["type"] = json!("function");
        call["function"]["name"] = json!(name);
    }
    delta(json!({"tool_calls": [call]}), None)
}

/// Writes two files and reads a missing one at the same time. Then edits a file, which
/// succeeds at the second attempt.
pub fn demo() -> Vec<ScriptedResponse> {
    let calls = [
        delta(json!({"role": "assistant", "content": "I write "}), None),
        delta(json!({"content": "zw\u{f6}lf \u{1f600} files.\n"}), None),
        call(0, Some(("call_a", "write_file")), ""),
        call(0, None, "{\"path\": \"notes/gr\u{fc}n.md\", \"con"),
        call(1, Some(("call_b", "write_file")), "{\"path\": \"b.txt\","),
        call(0, None, "tent\": \"\u{20ac} 5\\n\"}"),
        call(1, None, " \"content\": \"one caf\\u00e9\\ntwo\\n\"}"),
        call(2, Some(("call_c", "read_file")), "{\"path\": \"missing\"}"),
        delta(json!({}), Some("tool_calls")),
        json!({"choices": [], "usage": {"total_tokens": 7}}),
    ];
    let edit = |id: &str, old: &str| {
        let arguments = json!({"path": "b.txt", "old_string": old, "new_string": "one tea"});
        let calls = [
            call(0, Some((id, "edit_file")), &arguments.to_string()),
            delta(json!({}), Some("tool_calls")),
        ];
        ScriptedResponse::events(&calls, 64)
    };
    let done = [
        delta(json!({"content": "Done."}), None),
        delta(json!({}), Some("stop")),
    ];
    vec![
        ScriptedResponse::events(&calls, 7),
        edit("call_d", "one cafe"),
        edit("call_e", "one caf\u{e9}"),
        ScriptedResponse::events(&done, 1000),
    ]
}

/// The endpoint. It stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: std::net::SocketAddr,
    requests: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Starts an endpoint that gives these responses, one to each request.
    pub async fn start(turns: Vec<ScriptedResponse>) -> Result<Self, Error> {
        let turns = Mutex::new(VecDeque::from(turns));
        let next = move |_: &Value| {
            let mut turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
            let over = || ScriptedResponse::body("410 Gone", "no turn is left", usize::MAX);
            turns.pop_front().unwrap_or_else(over)
        };
        Self::answering(next).await
    }

    /// Starts an endpoint that follows a script in any number of conversations.
    pub async fn play(script: Script) -> Result<Self, Error> {
        Self::answering(script.into_responses()).await
    }

    /// Starts an endpoint that responds to the body of each request.
    async fn answering(
        respond: impl Fn(&Value) -> ScriptedResponse + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let respond = Arc::new(respond);
        let task = tokio::spawn(async move {
            // Conversations do not wait for each other; all end with the server.
            let mut connections = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                let (seen, respond) = (Arc::clone(&seen), Arc::clone(&respond));
                connections.spawn(async move {
                    let Ok(request) = read_request(&mut stream).await else {
                        return;
                    };
                    let turn = respond(&request["body"]);
                    seen.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(request);
                    // A client that has read enough may disconnect.
                    let _ = answer(&mut stream, &turn).await;
                });
            }
        });
        Ok(Self {
            address,
            requests,
            task,
        })
    }

    /// Returns the address to talk to.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            base_url: format!("http://{}/v1/", self.address),
            model: "scripted".to_owned(),
            key: Some("no-secret".to_owned()),
        }
    }

    /// Returns the requests so far: the request line, the key and the body of each.
    pub fn requests(&self) -> Vec<Value> {
        let requests = self.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(stream: &mut TcpStream, turn: &ScriptedResponse) -> Result<(), Error> {
    let head = format!(
        "HTTP/1.1 {}\r\n{}content-type: text/event-stream\r\n\
         transfer-encoding: chunked\r\nconnection: close\r\n\r\n",
        turn.status, turn.headers
    );
    stream.write_all(head.as_bytes()).await?;
    for (at, piece) in turn.pieces.iter().enumerate() {
        if let (Some(gate), true) = (&turn.gate, at + 1 == turn.pieces.len()) {
            gate.notified().await;
        }
        let size = format!("{:x}\r\n", piece.len());
        stream.write_all(size.as_bytes()).await?;
        stream.write_all(piece).await?;
        stream.write_all(b"\r\n").await?;
    }
    match turn.end {
        BodyEnd::Whole => stream.write_all(b"0\r\n\r\n").await?,
        BodyEnd::Broken => {}
        BodyEnd::Open => {
            // Until the client disconnects.
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await?;
        }
    }
    stream.shutdown().await?;
    Ok(())
}

async fn read_request(stream: &mut TcpStream) -> Result<Value, Error> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break String::from_utf8_lossy(&bytes[..at]).into_owned();
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err("no request".into());
        }
    };
    let header = |name: &str| {
        head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
        })
    };
    let length: usize = header("content-length").unwrap_or_default().parse()?;
    let mut body = bytes.split_off(head.len() + 4);
    while body.len() < length && stream.read_buf(&mut body).await? > 0 {}
    Ok(json!({
        "line": head.lines().next(),
        "key": header("authorization"),
        "body": serde_json::from_slice::<Value>(&body)?,
    }))
}
