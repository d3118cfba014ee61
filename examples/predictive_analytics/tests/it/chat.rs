//! From a question to a chart.

use examples::web::tester::{json_of, types};
use serde_json::{Value, json};

use crate::APP;
use crate::turn::{data_of, replies, said};

#[tokio::test]
async fn a_question_becomes_numbers_and_a_chart() {
    let (_data, server) = APP.server().await;
    let session = server.session().await;
    let (events, output) = said(&server, &session, "What will the next 3 months bring?").await;
    let expected = [
        "text", "call", "reply", "text", "call", "reply", "text", "call", "reply", "text",
    ];
    assert_eq!(types(&events), expected, "{events:?}");
    let calls = [1, 4, 7].map(|at| events[at]["name"].as_str().unwrap());
    assert_eq!(calls, ["query_data", "predict", "generate_chart"]);
    // The analyst's work is shown while it works.
    for part in [
        "> write_file",
        "> execute",
        "> return_result",
        "is accepted",
    ] {
        assert!(output.contains(part), "{part}: {output}");
    }

    let [table, prediction, chart] = replies(&events)[..] else {
        panic!("{events:?}");
    };
    let table = data_of(table);
    assert_eq!(table["columns"], json!(["year", "revenue"]));
    assert_eq!(table["rows"].as_array().unwrap().len(), 3);
    let prediction = data_of(prediction);
    let points = prediction["points"].as_array().unwrap();
    let months: Vec<_> = points.iter().map(|point| &point["month"]).collect();
    assert_eq!(months, ["2026-01", "2026-02", "2026-03"]);
    for point in points {
        let [low, value, high] = ["low", "value", "high"].map(|name| point[name].as_f64().unwrap());
        assert!(low < value && value < high, "{point}");
    }
    // The data follow the model, so it is nearly right.
    assert!(prediction["mean_error"].as_f64().unwrap() < 0.05);

    let drawn = &chart["drawn"];
    assert_eq!(*drawn, data_of(chart));
    assert_eq!(drawn["title"], "What will the next 3 months bring?");
    let engine = drawn["engine"].as_str().unwrap();
    assert!(["scikit-learn", "standard-library"].contains(&engine));
    let series = drawn["series"].as_array().unwrap();
    let names: Vec<_> = series
        .iter()
        .map(|series| series["name"].as_str().unwrap())
        .collect();
    let shops = ["Harbour", "Market", "Station"];
    let expected = shops.map(|shop| [shop.to_owned(), format!("{shop}, predicted")]);
    assert_eq!(names, expected.as_flattened());
    assert_eq!(series[0]["points"].as_array().unwrap().len(), 36);
    assert_eq!(series[1]["dashed"], true);
    assert_eq!(series[1]["points"].as_array().unwrap().len(), 4);

    // A page that is loaded again draws the same.
    let stored = json_of(server.get(&session).await).await["events"].clone();
    let stored: Vec<Value> = serde_json::from_value(stored).unwrap();
    assert_eq!(replies(&stored)[2]["drawn"], *drawn);
    assert_eq!(replies(&stored)[1].get("drawn"), None);
}

#[tokio::test]
async fn names_in_the_data_stay_text() {
    let data = tempfile::tempdir().unwrap();
    let hostile = r#"<img src=x onerror=alert(1)> $(touch a) \"#;
    let file = data.path().join("own.csv");
    let csv = format!("month,shop,revenue\n2025-01,{hostile},5\n2025-02,{hostile},nan\n");
    std::fs::write(&file, csv).unwrap();
    let server = APP
        .start(data.path(), &["--csv", file.to_str().unwrap()])
        .await;
    let session = server.session().await;
    let title = "'; touch b # </script>";
    let (events, output) = said(&server, &session, &format!("bars {title}")).await;
    let drawn = &replies(&events)[0]["drawn"];
    assert_eq!(drawn["title"], title);
    assert_eq!(drawn["series"][0]["name"], hostile);
    assert_eq!(drawn["series"][0]["points"], json!([["2025", 5.0]]));
    assert!(!output.contains("Error"), "{output}");
    // Nothing was taken for a command.
    let made = walk(&data.path().join("files"));
    assert!(made.contains(&"sales.csv".to_owned()), "{made:?}");
    assert!(
        !made.iter().any(|name| name == "a" || name == "b"),
        "{made:?}"
    );
}

/// Returns the names of all files in a directory.
fn walk(directory: &std::path::Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            names.extend(walk(&entry.path()));
        } else {
            names.push(entry.file_name().into_string().unwrap());
        }
    }
    names
}

#[tokio::test]
async fn what_fails_is_told_with_its_reason() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("own.csv");
    std::fs::write(&file, "month,shop,revenue\n2025-01,Harbour,5\n").unwrap();
    let server = APP
        .start(data.path(), &["--csv", file.to_str().unwrap()])
        .await;
    let session = server.session().await;
    let (events, _) = said(&server, &session, "predict").await;
    let [table, prediction] = replies(&events)[..] else {
        panic!("{events:?}");
    };
    assert_eq!(data_of(table)["rows"], json!([["2025", 5.0]]));
    assert_eq!(prediction["failed"], true);
    let why = "a prediction needs 24 months, and there are 1";
    for text in [&prediction["text"], &events.last().unwrap()["text"]] {
        assert!(text.as_str().unwrap().contains(why), "{text}");
    }
}
