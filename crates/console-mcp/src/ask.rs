//! [`ClientApprover`]: asks the client's user for approvals.

use std::time::Duration;

use async_trait::async_trait;
use permissions::approval::ApproverError;
use permissions::{Answer, Approver, Op, Question, Remember, Target};
use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, EnumSchema, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle};
use tokio::time::timeout;

use crate::call_slot::CallSlot;

/// The only field of the form.
const DECISION: &str = "decision";

const ONCE: &str = "allow once";
const SAME: &str = "allow this for the session";
const ALL: &str = "allow everything of this kind for the session";
const DENY: &str = "deny";

#[derive(Debug)]
pub(crate) struct ClientApprover {
    pub(crate) peer: Peer<RoleServer>,
    pub(crate) timeout: Duration,
}

/// Returns `true` if the client can show a form.
fn shows_forms(peer: &Peer<RoleServer>) -> bool {
    let info = peer.peer_info();
    let able = info
        .as_ref()
        .and_then(|info| info.capabilities.elicitation.as_ref());
    // A client that names neither mode supports forms only.
    able.is_some_and(|able| able.form.is_some() || able.url.is_none())
}

#[async_trait]
impl Approver for ClientApprover {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        if !shows_forms(&self.peer) {
            return Err(ApproverError::new(
                "this client cannot ask its user; allow it in the server's permissions, \
                 or use a client that supports elicitation",
            ));
        }
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(form(question)?));
        let sent = self
            .peer
            .send_request_with_option(request, PeerRequestOptions::no_options())
            .await;
        let handle =
            sent.map_err(|_| ApproverError::new("the client could not be asked; ask again"))?;
        let mut pending = PendingQuestion(Some(handle));
        let Some(handle) = &mut pending.0 else {
            return Err(ApproverError::new("the question was not sent; ask again"));
        };
        let after = self.timeout;
        let answered = CallSlot::release_during(timeout(after, &mut handle.rx)).await;
        let answered = answered
            .map_err(|_| ApproverError::new(format!("no answer within {after:?}; ask again")))?;
        pending.0 = None;
        Err(ApproverError::new(match answered {
            Ok(Ok(ClientResult::ElicitResult(result))) => return Ok(answer(&result)),
            Ok(Ok(_)) => "the client's answer has the wrong type; ask again".to_owned(),
            Ok(Err(error)) => format!("the client did not ask its user ({error}); ask again"),
            Err(_) => "the client is gone; connect again".to_owned(),
        }))
    }
}

/// A pending question, withdrawn when the call no longer waits for the answer.
struct PendingQuestion(Option<RequestHandle<RoleServer>>);

impl Drop for PendingQuestion {
    fn drop(&mut self) {
        let Some(handle) = self.0.take() else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let reason = "the call no longer waits for the answer".to_owned();
                let _ = handle.cancel(Some(reason)).await;
            });
        }
    }
}

/// Builds the form that the user sees.
fn form(question: &Question) -> Result<ElicitRequestParams, ApproverError> {
    let choices = [ONCE, SAME, ALL, DENY].map(str::to_owned).to_vec();
    let choice = EnumSchema::builder(choices).build();
    let schema = ElicitationSchema::builder()
        .required_enum_schema(DECISION, choice)
        .build()
        .map_err(|_| ApproverError::new("the question could not be written; report it"))?;
    let kinds: Vec<String> = question.ops().into_iter().map(kind).collect();
    let is_command = |target: &Target| matches!(target, Target::Command(_));
    let this = if question.asked.iter().all(|asked| is_command(&asked.target)) {
        "the same command"
    } else {
        "the same operation on the same path"
    };
    let scopes = if kinds.is_empty() {
        String::new()
    } else {
        let kinds = kinds.join(", ");
        format!("\n(this: {this}; everything of this kind: {kinds})")
    };
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("{question}{scopes}"),
        requested_schema: schema,
    })
}

/// Formats one kind of operation. An answer to a default leaves the questions of rules.
fn kind((op, by_rule): (Op, bool)) -> String {
    let unless = if by_rule { "" } else { " unless a rule asks" };
    format!("{op}{unless}")
}

/// Reads the user's decision. Anything unexpected counts as a denial.
fn answer(result: &ElicitResult) -> Answer {
    if !matches!(result.action, ElicitationAction::Accept) {
        return Answer::no();
    }
    let content = result.content.as_ref();
    match content.and_then(|content| content.get(DECISION)?.as_str()) {
        Some(ONCE) => Answer::yes(),
        Some(SAME) => Answer::yes().remember(Remember::Path),
        Some(ALL) => Answer::yes().remember(Remember::Session),
        Some(DENY) => Answer::no(),
        _ => Answer::no().note(format!(
            "the client's answer has no `{DECISION}` that is '{ONCE}', '{SAME}', '{ALL}' or '{DENY}'"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        let accept = |content| ElicitResult::new(ElicitationAction::Accept).with_content(content);
        let said = |word: &str| answer(&accept(json!({"decision": word})));
        assert_eq!(said(ONCE), Answer::yes());
        assert_eq!(said(SAME).remember, Remember::Path);
        assert_eq!(said(ALL).remember, Remember::Session);
        for result in [
            accept(json!({"decision": DENY})),
            accept(json!({"decision": "Allow once"})),
            accept(json!({"decision": true})),
            accept(json!({})),
            accept(json!("allow once")),
            ElicitResult::new(ElicitationAction::Accept),
            ElicitResult::new(ElicitationAction::Decline).with_content(json!({"decision": ONCE})),
            ElicitResult::new(ElicitationAction::Cancel),
        ] {
            assert!(!answer(&result).approved, "{result:?}");
        }
    }
}
