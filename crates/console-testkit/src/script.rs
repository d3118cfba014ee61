//! [`Script`]: the written conversation.

use std::collections::HashSet;

use backend_core::{Backend, BackendExt as _, Error, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use console_tools::Capability;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The conversation of this crate.
const BUNDLED: &str = include_str!("../data/conversation.json");

/// Initial files, conversations, and the calls made in them.
///
/// ```
/// use console_testkit::Script;
///
/// let script = Script::bundled()?;
/// assert!(script.steps.len() >= 45);
///
/// let error = Script::from_json(r#"{"files": [], "step": []}"#).unwrap_err();
/// assert!(error.to_string().contains("step"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Script {
    /// The initial files.
    pub files: Vec<Seed>,
    /// The conversations, each with its own tools, all on one backend.
    pub conversations: Vec<Setup>,
    /// The calls, in order.
    pub steps: Vec<Step>,
}

/// An initial file, with either `text` or `base64`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Seed {
    /// The path, relative to the working directory.
    pub path: String,
    /// The content, if it is text.
    pub text: Option<String>,
    /// The content, if it is not text.
    pub base64: Option<String>,
}

/// A conversation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Setup {
    /// The name that the steps use.
    pub name: String,
    /// Its tools and permissions.
    pub capability: Capability,
}

/// A requirement of a step for the backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Need {
    /// The backend runs commands.
    Commands,
}

/// The scripted answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "yes is yes")]
pub enum YesNo {
    Yes,
    No,
}

/// A single call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Step {
    /// The conversation.
    #[serde(rename = "in")]
    pub conversation: String,
    /// The purpose of the step.
    pub say: Option<String>,
    /// Requirements for the backend. If one is not met, the step is skipped.
    #[serde(default)]
    pub needs: Vec<Need>,
    /// The tool.
    pub tool: String,
    /// Its arguments. `<shell 1>` is the id of the first shell, `<port 1>` the first
    /// port that was reported.
    pub arguments: Map<String, Value>,
    /// The answer to the only question of the call. Without it nothing may be asked.
    pub answer: Option<YesNo>,
}

/// The reason a text is not a valid script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid script: {0}")]
pub struct ScriptError(String);

impl Script {
    /// Returns the conversation of this crate.
    ///
    /// # Errors
    ///
    /// Returns a [`ScriptError`] if the data file of this crate is invalid.
    pub fn bundled() -> std::result::Result<Self, ScriptError> {
        Self::from_json(BUNDLED)
    }

    /// Parses a script.
    ///
    /// # Errors
    ///
    /// Returns a [`ScriptError`] with the position for anything unknown, for a step in
    /// a conversation that does not exist, and for a file without exactly one content.
    pub fn from_json(text: &str) -> std::result::Result<Self, ScriptError> {
        let mut json = serde_json::Deserializer::from_str(text);
        let read: Self = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| ScriptError(error.to_string()))?;
        json.end().map_err(|error| ScriptError(error.to_string()))?;
        read.check()?;
        Ok(read)
    }

    fn check(&self) -> std::result::Result<(), ScriptError> {
        let mut names = HashSet::new();
        for Setup { name, .. } in &self.conversations {
            if !names.insert(name.as_str()) {
                return Err(ScriptError(format!("two conversations are called {name}")));
            }
        }
        for (index, step) in self.steps.iter().enumerate() {
            let name = step.conversation.as_str();
            if !names.contains(name) {
                let number = index + 1;
                return Err(ScriptError(format!(
                    "step {number} is in {name}, which is not a conversation"
                )));
            }
        }
        for file in &self.files {
            file.bytes()?;
        }
        Ok(())
    }

    /// Writes the initial files.
    ///
    /// # Errors
    ///
    /// Returns the error of the backend.
    pub async fn seed(&self, backend: &dyn Backend) -> Result<()> {
        for file in &self.files {
            let bytes = file.bytes();
            let bytes = bytes.map_err(|error| Error::invalid_input(error.0))?;
            backend.write_file(&file.path, bytes).await?;
        }
        Ok(())
    }
}

impl Seed {
    /// Returns the content of the file.
    ///
    /// # Errors
    ///
    /// Returns a [`ScriptError`] unless exactly one of `text` and `base64` is given.
    pub fn bytes(&self) -> std::result::Result<Vec<u8>, ScriptError> {
        match (&self.text, &self.base64) {
            (Some(text), None) => Ok(text.clone().into_bytes()),
            (None, Some(base64)) => STANDARD
                .decode(base64)
                .map_err(|error| ScriptError(format!("{}: {error}", self.path))),
            _ => Err(ScriptError(format!(
                "{}: give either text or base64",
                self.path
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn script() -> Value {
        json!({
            "files": [{"path": "a", "text": "1"}, {"path": "b", "base64": "AP8="}],
            "conversations": [{"name": "one", "capability": {}}],
            "steps": [{"in": "one", "tool": "ls", "arguments": {}}],
        })
    }

    fn error(script: &Value) -> String {
        Script::from_json(&script.to_string())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_script_is_read() {
        let read = Script::from_json(&script().to_string()).unwrap();
        assert_eq!(read.files[1].bytes().unwrap(), b"\0\xff");
        assert_eq!(read.steps[0].needs, []);
    }

    #[test]
    fn what_is_not_known_is_an_error_with_its_place() {
        for (place, name) in [
            ("", "step"),
            ("/files/0", "content"),
            ("/conversations/0", "answers"),
            ("/conversations/0/capability", "option"),
            ("/steps/0", "argument"),
        ] {
            let mut script = script();
            let object = script.pointer_mut(place).unwrap();
            object[name] = json!("x");
            let error = error(&script);
            assert!(
                error.contains(&format!("unknown field `{name}`")),
                "{error}"
            );
            let at = place.trim_start_matches('/').split('/').next().unwrap();
            assert!(error.contains(at), "{error}");
        }
        let mut script = script();
        script["steps"][0]["needs"] = json!(["magic"]);
        assert!(error(&script).contains("steps[0].needs[0]"));
    }

    #[test]
    fn what_cannot_be_played_is_an_error() {
        let mut stranger = script();
        stranger["steps"][0]["in"] = json!("two");
        assert!(error(&stranger).contains("step 1 is in two"));
        let mut twins = script();
        let twin = twins["conversations"][0].clone();
        twins["conversations"].as_array_mut().unwrap().push(twin);
        assert!(error(&twins).contains("two conversations"));
        for (field, value) in [("text", json!("x")), ("base64", json!("?"))] {
            let mut wrong = script();
            wrong["files"][1][field] = value;
            assert!(error(&wrong).contains("b: "), "{field}");
        }
        let mut list = script();
        list["steps"][0]["arguments"] = json!([]);
        assert!(error(&list).contains("steps[0].arguments"));
        assert!(error(&json!([])).contains("script"));
        let trailing = format!("{} x", script());
        assert!(Script::from_json(&trailing).is_err());
    }
}
