//! Turns, and what they come to.

use examples::web::tester::{Server, Turn};
use serde_json::Value;

/// Says something. Returns the events without output, and the output of all calls.
pub(crate) async fn said(server: &Server, session: &str, text: &str) -> (Vec<Value>, String) {
    let mut turn = Turn::begin(server, session, text).await;
    (turn.events().await, turn.output)
}

/// Returns the replies of a turn.
pub(crate) fn replies(events: &[Value]) -> Vec<&Value> {
    let replies = events.iter().filter(|event| event["type"] == "reply");
    replies.collect()
}

/// Returns the data in a reply.
pub(crate) fn data_of(reply: &Value) -> Value {
    assert_eq!(reply["failed"], false, "{reply}");
    serde_json::from_str(reply["text"].as_str().unwrap()).unwrap()
}
