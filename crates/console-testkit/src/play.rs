//! [`play`]: plays a script and records the results.

use serde_json::Value;

use crate::{Call, Client, Entry, Environment, Mask, Outcome, Script, Transcript};

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
