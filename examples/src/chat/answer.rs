//! Assembles one answer from the pieces of a stream.

use serde_json::{Value, json};

use super::Error;

/// Maximum length of a line, and of an answer, in bytes. The endpoint is not trusted.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Maximum number of calls in one answer.
const MAX_CALLS: usize = 128;

/// Parses server-sent events from pieces that are cut anywhere. Only whole lines are
/// decoded, so a cut within a character is harmless.
#[derive(Debug, Default)]
pub struct Sse {
    line: Vec<u8>,
    data: String,
}

impl Sse {
    /// Returns the data of the events that end in `piece`.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<String>, Error> {
        let mut events = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.len() + self.data.len() > MAX_BYTES {
                return Err("the endpoint sends an event without an end; ask for less".into());
            }
            if self.line.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.take(
                    str::from_utf8(&line)?.trim_end_matches(['\r', '\n']),
                    &mut events,
                );
            }
        }
        Ok(events)
    }

    fn take(&mut self, line: &str, events: &mut Vec<String>) {
        if let Some(data) = line.strip_prefix("data:") {
            if !self.data.is_empty() {
                self.data.push('\n');
            }
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
        } else if line.is_empty() && !self.data.is_empty() {
            events.push(std::mem::take(&mut self.data));
        }
        // Comments, event names and event ids are ignored.
    }
}

/// One call of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// The name of this call, for its result.
    pub id: String,
    /// The tool.
    pub name: String,
    /// As the model wrote them, so possibly invalid.
    pub arguments: String,
    /// The number by which the endpoint identifies this call; some endpoints send none.
    index: Option<u64>,
}

impl Call {
    /// Returns the arguments to send back to the endpoint. Some endpoints parse them
    /// and fail if they are not JSON. The result of the call says what was wrong.
    fn readable(&self) -> &str {
        match serde_json::from_str(&self.arguments) {
            Ok(Value::Object(_)) => &self.arguments,
            _ => "{}",
        }
    }
}

/// The model's answer.
#[derive(Debug, Default)]
pub struct Answer {
    /// All its text.
    pub text: String,
    /// All its calls, in order.
    pub calls: Vec<Call>,
    finish: Option<String>,
    done: bool,
    bytes: usize,
}

impl Answer {
    /// Processes one event. Returns the text it adds.
    pub fn take(&mut self, event: &str) -> Result<Option<String>, Error> {
        if event == "[DONE]" {
            self.done = true;
            return Ok(None);
        }
        self.bytes += event.len();
        if self.bytes > MAX_BYTES {
            return Err("the endpoint sends an answer without an end; ask for less".into());
        }
        let event: Value = serde_json::from_str(event).map_err(|error| {
            format!("the endpoint sends an event that is not valid JSON: {error}")
        })?;
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            return Err(format!("the endpoint fails: {error}").into());
        }
        // The last event may have no choice, only the usage.
        let choice = &event["choices"][0];
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish = Some(reason.to_owned());
        }
        let delta = &choice["delta"];
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call)?;
        }
        // A model that declines may use a separate field.
        let said = [&delta["content"], &delta["refusal"]];
        let text: String = said.into_iter().filter_map(Value::as_str).collect();
        self.text.push_str(&text);
        Ok((!text.is_empty()).then_some(text))
    }

    /// Adds a fragment to the call it belongs to.
    fn call(&mut self, piece: &Value) -> Result<(), Error> {
        let index = piece["index"].as_u64();
        let id = piece["id"].as_str().unwrap_or_default();
        let count = self.calls.len();
        let known = match index {
            Some(_) => self.calls.iter().position(|call| call.index == index),
            // Without an index, a new id begins a call.
            None => self
                .calls
                .last()
                .filter(|call| id.is_empty() || call.id == id)
                .map(|_| count - 1),
        };
        if known.is_none() {
            if count == MAX_CALLS {
                return Err("the model makes too many calls at once; ask for less".into());
            }
            let id = match id {
                "" => format!("call_{count}"),
                id => id.to_owned(),
            };
            self.calls.push(Call {
                id,
                index,
                ..Call::default()
            });
        }
        let call = &mut self.calls[known.unwrap_or(count)];
        let function = &piece["function"];
        if call.name.is_empty() {
            call.name
                .push_str(function["name"].as_str().unwrap_or_default());
        }
        match &function["arguments"] {
            Value::Null => {}
            Value::String(text) => call.arguments.push_str(text),
            // Some endpoints send the arguments parsed, and then complete.
            whole => call.arguments = whole.to_string(),
        }
        Ok(())
    }

    /// Returns `true` if the stream has ended.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Returns the complete answer.
    pub fn finish(self) -> Result<Self, Error> {
        match self.finish.as_deref() {
            None if !self.done => Err("the stream ends before the answer does; try again".into()),
            Some("length") => {
                Err("the answer is cut (length); ask for less, or allow more tokens".into())
            }
            Some("content_filter") => {
                Err("the endpoint withholds the answer (content_filter); ask otherwise".into())
            }
            Some("tool_calls") if self.calls.is_empty() => {
                Err("the model means to call a tool and names none; try again".into())
            }
            // Not every endpoint sends `tool_calls` when there are calls.
            _ => Ok(self),
        }
    }

    /// Returns the answer as a message of the conversation.
    pub fn message(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.text});
        if !self.calls.is_empty() {
            let call = |call: &Call| {
                json!({"id": call.id, "type": "function", "function": {
                    "name": call.name, "arguments": call.readable(),
                }})
            };
            message["tool_calls"] = self.calls.iter().map(call).collect();
        }
        message
    }
}
