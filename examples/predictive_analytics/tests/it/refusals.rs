//! Results that are refused: the page does not get them, and the analyst reads why.

use examples::chat::script::replies as results;
use examples::chat::{Script, Server as ScriptedServer, Turn};
use serde_json::{Value, json};

use crate::APP;
use crate::turn::{replies, said};

/// Plays both agents: the analyst returns these files one after the other.
fn agents(results_of_analyst: Vec<String>) -> Script {
    Script::new().otherwise(move |messages| {
        let is_analyst = messages[0]["content"]
            .as_str()
            .is_some_and(|prompt| prompt.starts_with("You are a data analyst"));
        let answers = messages
            .iter()
            .filter(|message| message["role"] == "assistant");
        let step = answers.count();
        if !is_analyst {
            let arguments = json!({"title": "Sales", "shape": "line", "months": 0});
            return match step {
                0 => Turn::default().calls("generate_chart", arguments),
                _ => Turn::says(results(messages)[0]),
            };
        }
        match results_of_analyst.get(step / 2) {
            None => Turn::says("I give up."),
            Some(_) if results(messages) == ["The result is accepted."] => Turn::says("Done."),
            Some(content) if step % 2 == 0 => {
                Turn::default().calls("write_file", json!({"path": "r.json", "content": content}))
            }
            Some(_) => {
                Turn::default().calls("return_result", json!({"kind": "chart", "path": "r.json"}))
            }
        }
    })
}

fn chart(title: &str, value: &str) -> String {
    format!(
        r#"{{"engine": "standard-library", "shape": "line", "title": "{title}", "x_label": "x",
            "y_label": "y", "series": [{{"name": "s", "points": [[1, 2], [2, {value}]]}}]}}"#
    )
}

/// Returns what the analyst was told of each result, and the events of the page.
async fn play(files: Vec<String>) -> (Vec<String>, Vec<Value>) {
    let endpoint = ScriptedServer::play(agents(files)).await.unwrap();
    let base_url = endpoint.endpoint().base_url;
    let data = tempfile::tempdir().unwrap();
    let options = ["--base-url", base_url.as_str(), "--model", "m-1"];
    let server = APP.start(data.path(), &options).await;
    let session = server.session().await;
    let (events, _) = said(&server, &session, "draw it").await;
    let mut told = Vec::new();
    for request in endpoint.requests() {
        let messages = request["body"]["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        let text = last["content"].as_str().unwrap_or_default();
        if last["role"] == "tool" && !text.starts_with("Wrote ") {
            told.push(text.to_owned());
        }
    }
    (told, events)
}

#[tokio::test]
async fn a_refused_result_can_be_corrected() {
    let wrong = [
        chart("Sales", "NaN"),
        chart("Sales", "1e300"),
        chart(&"x".repeat(81), "3"),
        chart("Sales", "3").replace("\"s\"", "7"),
    ];
    let mut files = wrong.to_vec();
    files.push(chart("<b>Sales</b>", "3"));
    let (told, events) = play(files).await;
    let expected = [
        "NaN and Infinity, which JSON does not have",
        "series[0].points[1]: ",
        "title has 81 characters, and at most 80 are allowed; shorten it",
        "series[0].name: invalid type: integer",
        "The result is accepted.",
    ];
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    let reply = replies(&events)[0];
    assert_eq!(reply["drawn"]["title"], "<b>Sales</b>");
    assert_eq!(
        reply["drawn"]["series"][0]["points"],
        json!([[1.0, 2.0], [2.0, 3.0]])
    );
}

#[tokio::test]
async fn without_a_result_nothing_is_drawn() {
    let points: Vec<String> = (0..1_001).map(|at| format!("[{at}, 1]")).collect();
    let many = chart("Sales", "3").replace("[1, 2]", &points.join(", "));
    let (told, events) = play(vec![many]).await;
    assert!(told[0].contains("there are 1002 points"), "{told:?}");
    let reply = replies(&events)[0];
    assert_eq!(reply["failed"], true);
    assert_eq!(reply.get("drawn"), None);
    let text = reply["text"].as_str().unwrap();
    assert!(
        text.contains("returned no such result. It says: I give up."),
        "{text}"
    );
}
