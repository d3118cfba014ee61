//! [`Mask`]: replaces values that differ between runs with names.
//!
//! These are all the rules. Nothing else is changed.
//!
//! 1. The id of a background shell is `<shell N>`, numbered in the order in which
//!    shells were started. An id is learnt from the field `shell_id` of a reply's data,
//!    and replaced where it is a whole word. Each conversation has its own ids, because
//!    two conversations may run on two servers that assign the same ids.
//! 2. A process id is `<pid>`: the digits in `(pid 123)`, and a number in the field
//!    `pid` of a reply's data.
//! 3. A port of the loopback interface is `<port N>`, numbered in the order in which
//!    ports were reported: the digits after `127.0.0.1:`.
//! 4. The working directory is `/`: as the backend names it, and as commands see it,
//!    where it is the beginning of a path.
//!
//! The names of shells and ports mean the same in the arguments of later calls, so a
//! wrong id shows.

use serde_json::Value;

/// The text before the digits of a port.
const LOOPBACK: &str = "127.0.0.1:";

/// The text before the digits of a process id.
const PID: &str = "(pid ";

/// The names assigned so far.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    /// The spellings of the working directory, longest first.
    directories: Vec<String>,
    /// The conversation of the current call.
    conversation: String,
    /// The conversation and the id of each shell.
    shells: Vec<(String, String)>,
    ports: Vec<String>,
}

impl Mask {
    /// Creates a mask without names from the spellings of the working directory.
    pub fn new(directories: impl IntoIterator<Item = String>) -> Self {
        let all = directories.into_iter();
        let trimmed = all.map(|path| path.trim_end_matches('/').to_owned());
        // The root needs no masking.
        let mut directories: Vec<String> = trimmed.filter(|path| !path.is_empty()).collect();
        directories.sort_by_key(|path| std::cmp::Reverse(path.len()));
        Self {
            directories,
            ..Self::default()
        }
    }

    /// Enters a conversation, to which the next values belong.
    pub fn enter(&mut self, conversation: &str) {
        conversation.clone_into(&mut self.conversation);
    }

    /// Learns from a reply's data which shell was started.
    pub fn learn(&mut self, structured: &Value) {
        if let Some(Value::String(id)) = structured.get("shell_id")
            && !self.shells().any(|(_, known)| known == id)
        {
            self.shells.push((self.conversation.clone(), id.clone()));
        }
    }

    /// Returns the name and the id of each shell of this conversation.
    fn shells(&self) -> impl Iterator<Item = (String, &str)> {
        let all = self.shells.iter().enumerate();
        all.filter(|(_, (whose, _))| *whose == self.conversation)
            .map(|(index, (_, id))| (format!("<shell {}>", index + 1), id.as_str()))
    }

    /// Masks a text.
    pub fn text(&mut self, text: &str) -> String {
        let text = replace_number(text, PID, ")", |_| "<pid>".to_owned());
        let mut text = self.ports(&text);
        for directory in &self.directories {
            text = replace(&text, directory, is_path, |rest| {
                // The slash that follows already stands for the root.
                if rest.starts_with('/') { "" } else { "/" }.to_owned()
            });
        }
        for (name, id) in self.shells() {
            text = replace(&text, id, is_word, |_| name.clone());
        }
        text
    }

    /// Masks structured data.
    pub fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(values) => values.iter().map(|value| self.value(value)).collect(),
            Value::Object(fields) => {
                let masked = fields.iter().map(|(key, value)| match (&**key, value) {
                    ("pid", Value::Number(_)) => (key.clone(), Value::from("<pid>")),
                    _ => (key.clone(), self.value(value)),
                });
                Value::Object(masked.collect())
            }
            other => other.clone(),
        }
    }

    /// Replaces the names in data with the values they stand for.
    ///
    /// # Errors
    ///
    /// Returns a name that has no value yet. A shell would interpret its brackets as
    /// redirections, so it must not be passed on.
    pub fn unmask(&self, value: &Value) -> Result<Value, String> {
        match value {
            Value::String(text) => self.unmask_text(text).map(Value::String),
            Value::Array(values) => {
                let real = values.iter().map(|value| self.unmask(value));
                real.collect::<Result<_, _>>().map(Value::Array)
            }
            Value::Object(fields) => {
                let fields = fields.iter();
                let real = fields.map(|(key, value)| Ok((key.clone(), self.unmask(value)?)));
                real.collect::<Result<_, _>>().map(Value::Object)
            }
            other => Ok(other.clone()),
        }
    }

    fn unmask_text(&self, text: &str) -> Result<String, String> {
        let mut text = text.to_owned();
        for (name, id) in self.shells() {
            text = text.replace(&name, id);
        }
        for (index, port) in self.ports.iter().enumerate() {
            text = text.replace(&format!("<port {}>", index + 1), port);
        }
        for kind in ["shell", "port"] {
            let begin = format!("<{kind} ");
            for left in text.split(&begin).skip(1) {
                let (number, rest) = digits(left);
                if !number.is_empty() && rest.starts_with('>') {
                    return Err(format!("{begin}{number}>"));
                }
            }
        }
        Ok(text)
    }

    fn ports(&mut self, text: &str) -> String {
        replace_number(text, LOOPBACK, "", |port| {
            let known = self.ports.iter().position(|known| known == port);
            let index = known.unwrap_or_else(|| {
                self.ports.push(port.to_owned());
                self.ports.len() - 1
            });
            format!("<port {}>", index + 1)
        })
    }
}

/// Replaces the digits between `before` and `after` with the name for them.
fn replace_number(
    text: &str,
    before: &str,
    after: &str,
    mut name: impl FnMut(&str) -> String,
) -> String {
    let mut pieces = text.split(before);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        out.push_str(before);
        match digits(piece) {
            (number, rest) if !number.is_empty() && rest.starts_with(after) => {
                out.push_str(&name(number));
                out.push_str(rest);
            }
            _ => out.push_str(piece),
        }
    }
    out
}

/// Splits a text after its leading digits.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns `true` if a path may continue with this character.
fn is_path(c: char) -> bool {
    is_word(c) || matches!(c, '/' | '.' | '-')
}

/// Replaces `what` where it is not part of a longer word or path. `name` returns the
/// replacement for the given text that follows.
fn replace(
    text: &str,
    what: &str,
    belongs: fn(char) -> bool,
    name: impl Fn(&str) -> String,
) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(what) {
        out.push_str(before);
        let inside = out.chars().next_back().is_some_and(belongs);
        let goes_on = after.starts_with(|c: char| belongs(c) && c != '/');
        if inside || goes_on {
            out.push_str(what);
        } else {
            out.push_str(&name(after));
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mask() -> Mask {
        let mut mask = Mask::new(["/", "/workspace", "/tmp/x/"].map(str::to_owned));
        mask.learn(&json!({"shell_id": "bg_7"}));
        mask.learn(&json!({"shell_id": "bg_1"}));
        mask.learn(&json!({"shell_id": "bg_7"}));
        mask
    }

    #[test]
    fn shells_are_numbered_as_they_appear() {
        assert_eq!(
            mask().text("read_output('bg_1'), bg_7 bg_71 xbg_1 bg_1_ [bg_7]"),
            "read_output('<shell 2>'), <shell 1> bg_71 xbg_1 bg_1_ [<shell 1>]"
        );
        assert_eq!(Mask::default().text("bg_1"), "bg_1", "nobody started it");
    }

    #[test]
    fn only_the_process_id_of_a_shell_is_masked() {
        let mut mask = mask();
        assert_eq!(
            mask.text("(pid 12). (pid x) (pid 12 (pid 3)"),
            "(pid <pid>). (pid x) (pid 12 (pid <pid>)"
        );
        assert_eq!(
            mask.value(&json!({"pid": 5, "bytes": 5, "list": [{"pid": null}]})),
            json!({"pid": "<pid>", "bytes": 5, "list": [{"pid": null}]})
        );
    }

    #[test]
    fn ports_are_numbered_as_they_appear() {
        let mut mask = mask();
        assert_eq!(
            mask.text("127.0.0.1:80 127.0.0.1:8080/ 127.0.0.1: 127.0.0.1:80"),
            "127.0.0.1:<port 1> 127.0.0.1:<port 2>/ 127.0.0.1: 127.0.0.1:<port 1>"
        );
        let names = json!({"a": ["http://127.0.0.1:<port 2>/", "<shell 2>", "<shell x>", 1]});
        let real = json!({"a": ["http://127.0.0.1:8080/", "bg_1", "<shell x>", 1]});
        assert_eq!(mask.unmask(&names), Ok(real));
        for unknown in ["<port 3>", "<shell 3>"] {
            let names = json!({"a": [format!("x {unknown} y")]});
            assert_eq!(mask.unmask(&names), Err(unknown.to_owned()));
        }
    }

    #[test]
    fn the_working_directory_is_the_root() {
        let mut mask = mask();
        for (text, masked) in [
            ("/workspace/a", "/a"),
            ("'/workspace'", "'/'"),
            ("/workspace", "/"),
            ("/workspaces/a", "/workspaces/a"),
            ("/a/workspace/b", "/a/workspace/b"),
            ("./workspace", "./workspace"),
            ("\"/tmp/x/y\"", "\"/y\""),
            ("/tmp/x.y", "/tmp/x.y"),
        ] {
            assert_eq!(mask.text(text), masked);
        }
        let root = Mask::new(["/".to_owned()]).text("/a//b");
        assert_eq!(root, "/a//b");
    }
}
