//! [`play`]: plays a script and records the results.

use backend_core::Backend;
use serde_json::Value;

use crate::{Call, Client, Entry, Mask, Need, Outcome, Script, Step, Transcript};

/// Properties of the environment in which a script is played.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Environment {
    /// Whether it runs commands.
    pub commands: bool,
    /// The spellings of its working directory.
    pub directories: Vec<String>,
}

impl Environment {
    /// Reads the properties of a backend.
    pub fn of(backend: &dyn Backend) -> Self {
        Self {
            commands: backend.info().capabilities.commands,
            directories: vec![backend.working_dir().as_str().to_owned()],
        }
    }

    /// Adds a spelling of the working directory, if commands see another one than the
    /// tools.
    #[must_use]
    pub fn directory(mut self, path: impl Into<String>) -> Self {
        self.directories.push(path.into());
        self
    }

    /// Returns `true` if a step can be played here.
    pub fn can_play(&self, step: &Step) -> bool {
        step.needs.iter().all(|need| match need {
            Need::Commands => self.commands,
        })
    }
}

/// Plays every step that the environment allows, one after the other. A step that refers
/// to an unknown shell or port is not called, and its entry says so.
pub async fn play(client: &dyn Client, script: &Script, environment: &Environment) -> Transcript {
    let mut mask = Mask::new(environment.directories.iter().cloned());
    let mut entries = Vec::new();
    for (index, step) in script.steps.iter().enumerate() {
        if !environment.can_play(step) {
            continue;
        }
        mask.enter(&step.conversation);
        let mut outcome = match mask.unmask(&Value::Object(step.arguments.clone())) {
            Ok(arguments) => {
                let call = Call {
                    conversation: &step.conversation,
                    tool: &step.tool,
                    arguments,
                    answer: step.answer,
                };
                client.call(call).await
            }
            Err(name) => Outcome {
                text: format!("not called: {name} is unknown"),
                is_error: true,
                ..Outcome::default()
            },
        };
        if let Some(data) = &outcome.structured {
            mask.learn(data);
        }
        outcome.text = mask.text(&outcome.text);
        outcome.structured = outcome.structured.map(|data| mask.value(&data));
        entries.push(Entry::new(index + 1, step, &outcome));
    }
    Transcript { entries }
}
