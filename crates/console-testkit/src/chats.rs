//! [`Chats`]: a client that calls toolsets in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use backend_core::Backend;
use console_tools::{Block, BuildError, Capability, Chat, Reply, Resolver, Toolset};
use permissions::approval::{Approver, ApproverError};
use permissions::{Answer, Question};
use serde_json::Value;

use crate::{Call, Client, Outcome, Script, Seen, YesNo};

/// The conversations of a script, with toolsets in this process.
#[derive(Debug)]
pub struct Chats {
    chats: HashMap<String, Chat>,
    person: Arc<Person>,
}

impl Chats {
    /// Starts the conversations on one backend.
    ///
    /// # Errors
    ///
    /// Returns a [`BuildError`] if the script describes an invalid toolset.
    pub fn new(script: &Script, backend: &Arc<dyn Backend>) -> Result<Self, BuildError> {
        Self::build(script, |capability, person| {
            capability.toolset(Arc::clone(backend), Some(person))
        })
    }

    /// Starts the conversations on the backends that a resolver picks.
    ///
    /// # Errors
    ///
    /// Returns a [`BuildError`] if the script describes an invalid toolset.
    pub fn resolving(script: &Script, resolver: &Arc<dyn Resolver>) -> Result<Self, BuildError> {
        Self::build(script, |capability, person| {
            capability.toolset_resolving(Arc::clone(resolver), Some(person))
        })
    }

    fn build(
        script: &Script,
        toolset: impl Fn(&Capability, Arc<dyn Approver>) -> Result<Toolset, BuildError>,
    ) -> Result<Self, BuildError> {
        let person = Arc::<Person>::default();
        let mut chats = HashMap::new();
        for setup in &script.conversations {
            let toolset = toolset(&setup.capability, Arc::<Person>::clone(&person))?;
            let chat = toolset.conversation(setup.name.as_str());
            chats.insert(setup.name.clone(), chat);
        }
        Ok(Self { chats, person })
    }
}

#[async_trait]
impl Client for Chats {
    async fn call(&self, call: Call<'_>) -> Outcome {
        let Some(chat) = self.chats.get(call.conversation) else {
            return Outcome {
                text: format!("there is no conversation {}", call.conversation),
                is_error: true,
                ..Outcome::default()
            };
        };
        self.person.expect(call.answer);
        let reply = chat.call(call.tool, call.arguments).await;
        Outcome {
            questions: self.person.questions(),
            ..outcome(reply)
        }
    }
}

fn outcome(reply: Reply) -> Outcome {
    let seen = |block: &Block| match block {
        Block::Image { media_type, data } => Seen::new(media_type.as_ref(), data),
        Block::Document {
            media_type, data, ..
        } => Seen::new(media_type.as_ref(), data),
        _ => Seen::new("unknown", &[]),
    };
    Outcome {
        is_error: !reply.is_success(),
        blocks: reply.blocks.iter().map(seen).collect(),
        text: reply.text,
        structured: reply.structured.filter(|value| *value != Value::Null),
        questions: 0,
    }
}

/// The approver of all conversations, which gives the answer of the step.
#[derive(Debug, Default)]
struct Person(Mutex<Mood>);

#[derive(Debug, Default)]
struct Mood {
    answer: Option<YesNo>,
    questions: usize,
}

impl Person {
    fn expect(&self, answer: Option<YesNo>) {
        let mut mood = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *mood = Mood {
            answer,
            questions: 0,
        };
    }

    fn questions(&self) -> usize {
        let mood = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        mood.questions
    }
}

#[async_trait]
impl Approver for Person {
    async fn ask(&self, _: &Question) -> Result<Answer, ApproverError> {
        let mut mood = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        mood.questions += 1;
        Ok(match mood.answer {
            Some(YesNo::Yes) => Answer::yes(),
            Some(YesNo::No) | None => Answer::no(),
        })
    }
}
