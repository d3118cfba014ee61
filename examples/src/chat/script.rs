//! A model's part of a conversation, written down in advance.

use serde_json::{Value, json};

use super::scripted::{ScriptedResponse, call, delta};

/// Number of characters that arrive at once.
const PIECE: usize = 16;

type Line = Box<dyn Fn(&[Value]) -> Turn + Send + Sync>;

/// One answer of the model: some text, and then calls, which are made at the same time.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    text: String,
    calls: Vec<(String, Value)>,
}

impl Turn {
    /// Creates an answer that says this. Without calls it ends the model's part.
    #[must_use]
    pub fn says(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            calls: Vec::new(),
        }
    }

    /// Adds a call.
    #[must_use]
    pub fn calls(mut self, name: impl Into<String>, arguments: Value) -> Self {
        self.calls.push((name.into(), arguments));
        self
    }

    /// Returns the whole answer at once, for clients that do not stream. `number` makes the
    /// names of its calls unique.
    fn whole(&self, number: usize) -> ScriptedResponse {
        let mut message = json!({"role": "assistant", "content": self.text});
        if !self.calls.is_empty() {
            let call = |(at, (name, arguments)): (usize, &(String, Value))| {
                let function = json!({"name": name, "arguments": arguments.to_string()});
                json!({"id": format!("call_{number}_{at}"), "type": "function", "function": function})
            };
            message["tool_calls"] = self.calls.iter().enumerate().map(call).collect();
        }
        let body = json!({
            "id": "scripted", "object": "chat.completion", "created": 0, "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": self.reason()}],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        });
        ScriptedResponse::body("200 OK", &body.to_string(), usize::MAX)
    }

    /// Streams the answer in small pieces.
    fn streamed(&self, number: usize) -> ScriptedResponse {
        let mut events: Vec<_> = pieces(&self.text)
            .map(|text| delta(json!({"content": text}), None))
            .collect();
        for (at, (name, arguments)) in self.calls.iter().enumerate() {
            let (id, index) = (format!("call_{number}_{at}"), at as u64);
            events.push(call(index, Some((&id, name)), ""));
            let arguments = arguments.to_string();
            events.extend(pieces(&arguments).map(|text| call(index, None, &text)));
        }
        events.push(delta(json!({}), Some(self.reason())));
        ScriptedResponse::events(&events, usize::MAX)
    }

    fn reason(&self) -> &'static str {
        match self.calls[..] {
            [] => "stop",
            _ => "tool_calls",
        }
    }
}

fn pieces(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text.chars();
    std::iter::from_fn(move || {
        let piece: String = rest.by_ref().take(PIECE).collect();
        (!piece.is_empty()).then_some(piece)
    })
}

/// A model's part, turn by turn.
///
/// Each request tells the whole conversation, so its turn is found by counting the
/// answers in it: one script serves any number of conversations at once.
///
/// ```
/// use examples::chat::{Script, Turn, script::replies};
/// use serde_json::json;
///
/// Script::new()
///     .says("I look at it.") // one turn: this text, and this call
///     .calls("read_file", json!({"path": "a.txt"}))
///     .calls("ls", json!({"path": "."})) // the next turn
///     .then(|messages| match replies(messages)[..] {
///         [listing] if listing.contains("b.txt") => Turn::says("There is another file."),
///         _ => Turn::says("Done."),
///     });
/// ```
#[derive(Default)]
pub struct Script {
    turns: Vec<Line>,
    /// Text that waits for the call after it.
    text: Option<String>,
    otherwise: Option<Line>,
}

impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Script")
            .field("turns", &self.turns.len())
            .finish_non_exhaustive()
    }
}

impl Script {
    /// Creates a script without turns.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text. A call right after it belongs to the same turn; otherwise the text is
    /// a turn without calls, which ends the model's part.
    #[must_use]
    pub fn says(self, text: impl Into<String>) -> Self {
        let mut script = self.finished();
        script.text = Some(text.into());
        script
    }

    /// Adds a turn that makes one call.
    #[must_use]
    pub fn calls(mut self, name: impl Into<String>, arguments: Value) -> Self {
        let text = self.text.take().unwrap_or_default();
        let turn = Turn::says(text).calls(name, arguments);
        self.then(move |_| turn.clone())
    }

    /// Adds a turn.
    #[must_use]
    pub fn turn(self, turn: Turn) -> Self {
        self.then(move |_| turn.clone())
    }

    /// Adds a turn that depends on the conversation so far.
    #[must_use]
    pub fn then(self, turn: impl Fn(&[Value]) -> Turn + Send + Sync + 'static) -> Self {
        let mut script = self.finished();
        script.turns.push(Box::new(turn));
        script
    }

    /// Sets all turns after the last one. Without it, the model says that the script ends.
    #[must_use]
    pub fn otherwise(self, turn: impl Fn(&[Value]) -> Turn + Send + Sync + 'static) -> Self {
        let mut script = self.finished();
        script.otherwise = Some(Box::new(turn));
        script
    }

    /// Returns the script with the waiting text as a turn.
    fn finished(mut self) -> Self {
        if let Some(text) = self.text.take() {
            let turn = Turn::says(text);
            self.turns.push(Box::new(move |_| turn.clone()));
        }
        self
    }

    /// Returns the response to a request.
    pub(super) fn into_responses(self) -> impl Fn(&Value) -> ScriptedResponse + Send + Sync {
        let script = self.finished();
        move |request| {
            let messages = request["messages"].as_array();
            let messages = messages.map_or(&[][..], Vec::as_slice);
            let answers = messages
                .iter()
                .filter(|message| message["role"] == "assistant");
            let number = answers.count();
            let line = script.turns.get(number).or(script.otherwise.as_ref());
            let turn = match line {
                Some(line) => line(messages),
                None => Turn::says("The script ends here."),
            };
            match request["stream"].as_bool() {
                Some(true) => turn.streamed(number),
                _ => turn.whole(number),
            }
        }
    }
}

/// Returns the results of the last turn's calls, in order.
#[must_use]
pub fn replies(messages: &[Value]) -> Vec<&str> {
    let is_answer = |message: &Value| message["role"] == "assistant";
    let last = messages.iter().rposition(is_answer);
    messages[last.map_or(0, |at| at + 1)..]
        .iter()
        .filter(|message| message["role"] == "tool")
        .filter_map(|message| message["content"].as_str())
        .collect()
}

/// Returns the user's last words, the number of answers to them so far, and the text of the
/// last message after them, which is the result of a call.
#[must_use]
pub fn asked(messages: &[Value]) -> (&str, usize, &str) {
    // Pictures of tools are of the user too, but no text.
    let is_asked = |message: &Value| message["role"] == "user" && message["content"].is_string();
    let begin = messages.iter().rposition(is_asked);
    let since = begin.map_or(&[][..], |begin| &messages[begin..]);
    let is_answer = |message: &&Value| message["role"] == "assistant";
    let answers = since.iter().filter(is_answer).count();
    match since {
        [] => ("", 0, ""),
        [only] => (text_of(only), 0, ""),
        [first, .., last] => (text_of(first), answers, text_of(last)),
    }
}

fn text_of(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use backend_state::StateBackend;
    use console_tools::Toolset;

    use super::super::{Event, Model, begin};
    use super::*;

    /// Returns the events of a conversation as lines; texts are joined.
    async fn played(model: &Model, prompt: &str) -> Vec<String> {
        let toolset = Toolset::builder(Arc::new(StateBackend::new()));
        let chat = toolset.build().unwrap().conversation("test");
        let mut messages = begin(&chat, prompt).await.unwrap();
        let mut lines: Vec<String> = Vec::new();
        let mut show = |event: Event<'_>| match event {
            Event::Text(text) => match lines.last_mut() {
                Some(line) if line.starts_with("text: ") => line.push_str(text),
                _ => lines.push(format!("text: {text}")),
            },
            Event::Call(call) => lines.push(format!("{} {}", call.name, call.arguments)),
            Event::Output(..) => {}
            Event::Reply(call, reply) => lines.push(format!("{}: {}", call.id, reply.text)),
        };
        let talk = model.converse(&chat, &mut messages, &mut show);
        talk.await.unwrap();
        lines
    }

    #[tokio::test]
    async fn a_script_is_played_to_every_conversation() {
        let script = Script::new()
            .says("I write it, in more than one piece.")
            .calls("write_file", json!({"path": "a", "content": "1\n"}))
            .calls("read_file", json!({"path": "a"}))
            .turn(
                Turn::default()
                    .calls("ls", json!({}))
                    .calls("ls", json!({})),
            )
            .then(|messages| Turn::says(format!("{} of {}", replies(messages).len(), 2)));
        let model = Model::scripted(script).await.unwrap();
        let (one, two) = futures::join!(played(&model, "go"), played(&model, "go"));
        assert_eq!(one, two);
        assert_eq!(one[0], "text: I write it, in more than one piece.");
        assert!(one[1].starts_with("write_file {"), "{}", one[1]);
        assert_eq!(one[2], "call_0_0: Wrote 1 line to a");
        assert_eq!(one[3], r#"read_file {"path":"a"}"#);
        assert_eq!(one[5..7], ["ls {}", "ls {}"]);
        assert_eq!(one[9..], ["text: 2 of 2"]);
    }

    #[tokio::test]
    async fn the_end_of_a_script_depends_on_what_is_asked() {
        let model = Model::scripted(Script::new()).await.unwrap();
        assert_eq!(played(&model, "go").await, ["text: The script ends here."]);
        let script = Script::new().otherwise(|messages| Turn::says(asked(messages).0));
        let model = Model::scripted(script).await.unwrap();
        assert_eq!(played(&model, "echo").await, ["text: echo"]);
    }
}
