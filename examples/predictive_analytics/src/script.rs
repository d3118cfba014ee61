//! The scripts that answer where there is no model: one plays the agent that talks, the
//! other one the analyst.

use examples::chat::script::asked;
use examples::chat::{Script, Turn};
use serde_json::{Value, json};

/// The agent that talks: it looks at the data, predicts, and has a chart made whose title is
/// the user's message. `bars TITLE` only asks for bars.
pub(crate) fn agent() -> Script {
    Script::new().otherwise(|messages| {
        let (said, steps, last) = asked(messages);
        let said = said.trim();
        if let Some(reason) = last.strip_prefix("Error: ") {
            return Turn::says(format!("That did not work: {reason}"));
        }
        match said.strip_prefix("bars ") {
            Some(title) => bars(title, steps),
            None => forecast(said, steps, last),
        }
    })
}

fn forecast(said: &str, steps: usize, last: &str) -> Turn {
    let months = months(said);
    match steps {
        0 => Turn::says("I have the analyst look at the data first.")
            .calls("query_data", json!({"question": "the revenue by year"})),
        1 => Turn::says("Now the months to come.").calls("predict", json!({"months": months})),
        2 => {
            let prediction: Value = serde_json::from_str(last).unwrap_or_default();
            Turn::says(told(&prediction)).calls(
                "generate_chart",
                json!({"title": title(said), "shape": "line", "months": months}),
            )
        }
        _ => Turn::says("The chart shows each shop, with the predicted months dashed."),
    }
}

fn bars(said: &str, steps: usize) -> Turn {
    match steps {
        0 => Turn::says("I have it drawn.").calls(
            "generate_chart",
            json!({"title": title(said), "shape": "bar", "months": 0}),
        ),
        _ => Turn::says("Those are the years."),
    }
}

fn title(said: &str) -> String {
    said.chars().take(80).collect()
}

/// Returns the first number of a message, as months; 6 if there is none.
fn months(said: &str) -> u64 {
    let mut words = said.split(|c: char| !c.is_ascii_digit());
    let number = words.find_map(|word| word.parse().ok());
    number.unwrap_or(6).clamp(1, 24)
}

/// Tells what a prediction says.
fn told(prediction: &Value) -> String {
    let last = prediction["points"]
        .as_array()
        .and_then(|points| points.last());
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    let Some(last) = last else {
        return "There is no prediction.".to_owned();
    };
    let engine = match prediction["engine"].as_str() {
        Some("scikit-learn") => "pandas and scikit-learn",
        _ => "the Python standard library",
    };
    format!(
        "In {} all shops together will make about {:.0}, from {:.0} to {:.0}; on known months the \
         model was wrong by {:.1} %. Computed with {engine}.",
        last["month"].as_str().unwrap_or_default(),
        number(&last["value"]),
        number(&last["low"]),
        number(&last["high"]),
        number(&prediction["mean_error"]) * 100.0,
    )
}

/// The analyst: it writes the request down, runs the program and returns its result.
pub(crate) fn analyst() -> Script {
    Script::new().otherwise(|messages| {
        let (task, steps, last) = asked(messages);
        let request = task.split_once("request: ").map_or("{}", |(_, json)| json);
        let request: Value = serde_json::from_str(request).unwrap_or_default();
        let kind = request["kind"].clone();
        match steps {
            0 => Turn::says("I write the request down.").calls(
                "write_file",
                json!({"path": "request.json", "content": understood(request).to_string()}),
            ),
            1 => Turn::default().calls(
                "execute",
                json!({"command": "python3 analysis.py request.json result.json", "timeout": 300}),
            ),
            2 if last.contains("wrote result.json") => Turn::default().calls(
                "return_result",
                json!({"kind": kind, "path": "result.json"}),
            ),
            3 if !last.starts_with("Error: ") => Turn::says("Done."),
            _ => Turn::says(last.trim_start_matches("Error: ")),
        }
    })
}

/// Returns a request as the program understands it: a question by its words.
fn understood(mut request: Value) -> Value {
    if let Some(question) = request["question"].as_str() {
        let by = ["shop", "year"]
            .into_iter()
            .find(|by| question.contains(by));
        request["by"] = json!(by.unwrap_or("month"));
    }
    request
}
