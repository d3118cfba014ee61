//! [`Chats`]: a client that calls toolsets in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use backend_core::Backend;
use backend_core::sync::lock;
use console_tools::{Block, BuildError, Capability, Chat, Reply, Resolver, Toolset};
use permissions::approval::{Approver, ApproverError};
use permissions::{Answer, Question};
use serde_json::Value;

use crate::{BlockSummary, Call, Client, Outcome, Script, YesNo};

/// The conversations of a script, with toolsets in this process.
#[derive(Debug)]
pub struct Chats {
    chats: HashMap<String, Chat>,
    approver: Arc<ScriptedApprover>,
}

impl Chats {
    /// Starts the conversations on one backend.
    ///
    /// # Errors
    ///
    /// Returns a [`BuildError`] if the script describes an invalid toolset.
    pub fn new(script: &Script, backend: &Arc<dyn Backend>) -> Result<Self, BuildError> {
        Self::build(script, |capability, approver| {
            capability.toolset(Arc::clone(backend), Some(approver))
        })
    }

    /// Starts the conversations on the backends that a resolver picks.
    ///
    /// # Errors
    ///
    /// Returns a [`BuildError`] if the script describes an invalid toolset.
    pub fn resolving(script: &Script, resolver: &Arc<dyn Resolver>) -> Result<Self, BuildError> {
        Self::build(script, |capability, approver| {
            capability.toolset_resolving(Arc::clone(resolver), Some(approver))
        })
    }

    fn build(
        script: &Script,
        toolset: impl Fn(&Capability, Arc<dyn Approver>) -> Result<Toolset, BuildError>,
    ) -> Result<Self, BuildError> {
        let approver = Arc::<ScriptedApprover>::default();
        let mut chats = HashMap::new();
        for setup in &script.conversations {
            let toolset = toolset(&setup.capability, Arc::<ScriptedApprover>::clone(&approver))?;
            let chat = toolset.conversation(setup.name.as_str());
            chats.insert(setup.name.clone(), chat);
        }
        Ok(Self { chats, approver })
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
        self.approver.expect(call.answer);
        let reply = chat.call(call.tool, call.arguments).await;
        Outcome {
            questions: lock(&self.approver.0).questions,
            ..outcome(reply)
        }
    }
}

fn outcome(reply: Reply) -> Outcome {
    let summary = |block: &Block| match block {
        Block::Image {
            media_type, data, ..
        }
        | Block::Document {
            media_type, data, ..
        } => BlockSummary::new(media_type.as_ref(), data),
        _ => BlockSummary::new("unknown", &[]),
    };
    Outcome {
        is_error: !reply.is_success(),
        blocks: reply.blocks.iter().map(summary).collect(),
        text: reply.text,
        structured: reply.structured.filter(|value| *value != Value::Null),
        questions: 0,
    }
}

/// The approver of all conversations, which gives the answer of the step.
#[derive(Debug, Default)]
struct ScriptedApprover(Mutex<ApproverState>);

#[derive(Debug, Default)]
struct ApproverState {
    answer: Option<YesNo>,
    questions: usize,
}

impl ScriptedApprover {
    fn expect(&self, answer: Option<YesNo>) {
        *lock(&self.0) = ApproverState {
            answer,
            questions: 0,
        };
    }
}

#[async_trait]
impl Approver for ScriptedApprover {
    async fn ask(&self, _: &Question) -> Result<Answer, ApproverError> {
        let mut state = lock(&self.0);
        state.questions += 1;
        Ok(match state.answer {
            Some(YesNo::Yes) => Answer::yes(),
            Some(YesNo::No) | None => Answer::no(),
        })
    }
}
