//! Tests of `edit_file` and `write_file`.

use serde_json::{Value, json};

use super::{Bench, EditFileTool, ReadFileTool, WriteFileTool};
use crate::args::console as args;

const PROGRAM: &str = "fn main() {\n\tlet x = 1;\n\tlet y = 1;\n\tprintln!(\"{x}\");\n}\n";

async fn program() -> Bench {
    let bench = Bench::new();
    bench.put("/m.rs", PROGRAM).await;
    bench
}

#[tokio::test]
async fn an_edit_replaces_exact_text() {
    let bench = program().await;
    let args = json!({"path": "m.rs", "old_string": "x = 1", "new_string": "x = 2"});
    let reply = bench.call::<EditFileTool>(args).await;
    assert_eq!(reply.text, "Edited m.rs: replaced 1 occurrence");
    assert_eq!(
        reply.structured.unwrap(),
        json!({"path": "/m.rs", "replacements": [1], "first_line": 2, "dry_run": false})
    );
    assert!(
        bench
            .get("/m.rs")
            .await
            .contains("let x = 2;\n\tlet y = 1;")
    );
    let args =
        json!({"path": "m.rs", "old_string": "let", "new_string": "const", "replace_all": true});
    assert_eq!(
        bench.ok::<EditFileTool>(args).await,
        "Edited m.rs: replaced 2 occurrences"
    );
}

#[tokio::test]
async fn the_diff_is_known_if_the_file_was_read() {
    let bench = program().await;
    run!(bench.ok::<ReadFileTool>, {"path": "m.rs"});
    let args = json!({"path": "m.rs", "old_string": "x = 1", "new_string": "x = 2"});
    let data = bench.call::<EditFileTool>(args).await.structured.unwrap();
    assert_eq!(
        data["diff"],
        "@@ -1,4 +1,4 @@\n fn main() {\n-\tlet x = 1;\n+\tlet x = 2;\n \tlet y = 1;\n \tprintln!(\"{x}\");"
    );
    // A second edit starts from the result of the first.
    let args = json!({"path": "m.rs", "old_string": "x = 2", "new_string": "x = 3"});
    let data = bench.call::<EditFileTool>(args).await.structured.unwrap();
    assert!(
        data["diff"]
            .as_str()
            .unwrap()
            .contains("-\tlet x = 2;\n+\tlet x = 3;")
    );
}

#[tokio::test]
async fn several_edits_are_made_together_or_not_at_all() {
    let bench = program().await;
    let edits = json!([
        {"old_string": "let x = 1", "new_string": "let z = 1"},
        {"old_string": "{x}", "new_string": "{z}"},
    ]);
    assert_eq!(
        run!(bench.ok::<EditFileTool>, {"path": "m.rs", "edits": edits}),
        "Edited m.rs: replaced 2 occurrences"
    );
    let before = bench.get("/m.rs").await;
    let edits = json!([
        {"old_string": "let z = 1", "new_string": "let w = 1\n"},
        {"old_string": "let  y = 1", "new_string": ""},
    ]);
    let text = run!(bench.fails::<EditFileTool>, {"path": "m.rs", "edits": edits});
    assert_eq!(bench.get("/m.rs").await, before);
    // The numbers refer to the text that the second edit saw.
    assert_eq!(
        text,
        "edits[1].old_string was not found in 'm.rs'. Nearest lines:\n(differs in white \
         space)\n     4\t\tlet y = 1;\nCopy the text exactly, without the line numbers."
    );
}

#[tokio::test]
async fn a_dry_run_shows_the_diff_and_writes_nothing() {
    let bench = program().await;
    let mut args = json!({"path": "m.rs", "old_string": "y = 1", "new_string": "y = 2"});
    args["dry_run"] = json!(true);
    let reply = bench.call::<EditFileTool>(args.clone()).await;
    assert!(
        reply
            .text
            .starts_with("Dry run, nothing was written. m.rs would change like this:\n@@ "),
        "{}",
        reply.text
    );
    assert!(reply.text.contains("\n-\tlet y = 1;\n+\tlet y = 2;\n"));
    let data = reply.structured.unwrap();
    assert_eq!(data["dry_run"], json!(true));
    assert_eq!(data["replacements"], json!([1]));
    assert_eq!(bench.get("/m.rs").await, PROGRAM);
    args["old_string"] = json!("y =  1");
    let text = bench.fails::<EditFileTool>(args).await;
    assert!(text.contains("     3\t\tlet y = 1;"), "{text}");
}

#[tokio::test]
async fn a_failed_edit_shows_the_lines_that_were_meant() {
    for read in [false, true] {
        let bench = program().await;
        if read {
            run!(bench.ok::<ReadFileTool>, {"path": "m.rs"});
        }
        let old = "    let x = 1;\n    let y = 1;";
        let args = json!({"path": "m.rs", "old_string": old, "new_string": ""});
        assert_eq!(
            bench.fails::<EditFileTool>(args).await,
            "old_string was not found in 'm.rs'. Nearest lines:\n(differs in white space)\n     \
             2\t\tlet x = 1;\n     3\t\tlet y = 1;\nCopy the text exactly, without the line \
             numbers."
        );
        let args = json!({"path": "m.rs", "old_string": "= 1;", "new_string": ""});
        let text = bench.fails::<EditFileTool>(args).await;
        let (start, end) = text.split_once("\tfn main").unwrap();
        assert_eq!(start, "old_string occurs 2 times in 'm.rs':\n     1");
        let advice = "until it occurs once, or set replace_all.";
        assert!(end.ends_with(advice), "{text}");
        let args = json!({"path": "m.rs", "old_string": "quite different", "new_string": ""});
        let text = bench.fails::<EditFileTool>(args).await;
        let told = "nor anything like it; read the file again";
        assert!(text.contains(told), "{text}");
        assert_eq!(bench.get("/m.rs").await, PROGRAM);
    }
}

#[tokio::test]
async fn lines_around_several_places_are_shown_once() {
    let bench = program().await;
    let text: String = (1..=20)
        .map(|number| match number {
            2 | 4 | 20 => "same same\n".to_owned(),
            _ => format!("line {number}\n"),
        })
        .collect();
    bench.put("/s.txt", text).await;
    let args = json!({"path": "s.txt", "old_string": "same", "new_string": "x"});
    let told = bench.fails::<EditFileTool>(args).await;
    let numbers: Vec<&str> = told
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(number, _)| number.trim())
        .collect();
    assert_eq!(
        numbers,
        ["1", "2", "3", "4", "5", "6", "18", "19", "20"],
        "{told}"
    );
    assert!(!told.contains("\n\n"), "{told}");
}

#[tokio::test]
async fn bad_edits_are_refused_by_the_name_of_their_field() {
    let bench = program().await;
    let edits = json!([{"old_string": "x", "new_string": "x"}]);
    let cases = expected! {
        {"old_string": "", "new_string": "a"} =>
            "old_string is empty; copy the text to replace from 'm.rs'";
        {"old_string": "x", "new_string": "x"} =>
            "new_string is the same as old_string; change it or leave the edit out";
        { "edits": edits } =>
            "edits[0].new_string is the same as edits[0].old_string; change it or leave the edit \
             out";
        {"edits": []} => "edits is empty; give at least one replacement";
        {} => "old_string and new_string are missing; give both, or edits";
        {"new_string": "x"} =>
            "old_string is missing; give the text to replace, exactly as in the file";
        {"old_string": "x"} => "new_string is missing; give the text to put there, \"\" to delete";
        {"old_string": "x", "edits": edits} =>
            "edits cannot be combined with old_string, new_string or replace_all; give edits, \
             or old_string and new_string";
    };
    for (mut args, want) in cases {
        args["path"] = json!("m.rs");
        assert_eq!(bench.fails::<EditFileTool>(args).await, want);
    }
    // A model that fills in every field is taken at its word.
    let args = json!({"path": "m.rs", "old_string": "main", "new_string": "main", "edits": [],
        "replace_all": false});
    let text = bench.fails::<EditFileTool>(args).await;
    assert!(text.starts_with("new_string is the same"), "{text}");
    assert_eq!(
        run!(bench.fails::<EditFileTool>, {"path": "nope", "old_string": "a", "new_string": "b"}),
        "File 'nope' not found. Check the path with `ls` or `glob`, then try again."
    );
    let edits = vec![json!({"old_string": "x", "new_string": "xx"}); 1_001];
    let text = run!(bench.fails::<EditFileTool>, {"path": "m.rs", "edits": edits});
    assert!(text.contains("1001 edits are more than the 1000"), "{text}");
    assert_eq!(bench.get("/m.rs").await, PROGRAM);
}

#[tokio::test]
async fn an_edit_cannot_ask_for_all_memory() {
    let bench = Bench::new();
    bench.put("/f", "a\n").await;
    run!(bench.ok::<ReadFileTool>, {"path": "f"});
    let wide = "a".repeat(1_000);
    let edits = vec![json!({"old_string": "a", "new_string": wide, "replace_all": true}); 100];
    for dry_run in [false, true] {
        let args = json!({"path": "f", "edits": edits, "dry_run": dry_run});
        let text = bench.fails::<EditFileTool>(args).await;
        let told = "more than the 67108864 that edit writes";
        assert!(text.contains(told), "{text}");
    }
}

#[tokio::test]
async fn bytes_that_are_not_text_stay_as_they_are() {
    let bench = Bench::new();
    bench.put("/latin1", b"caf\xe9 au lait\n").await;
    run!(bench.ok::<ReadFileTool>, {"path": "latin1"});
    for dry_run in [false, true] {
        let args =
            json!({"path": "latin1", "old_string": "au", "new_string": "o", "dry_run": dry_run});
        let text = bench.fails::<EditFileTool>(args).await;
        assert!(text.starts_with("'latin1' is not valid UTF-8 text and cannot be edited"));
    }
}

#[tokio::test]
async fn line_ends_are_kept() {
    let bench = Bench::new();
    bench.put("/crlf", "a\r\nb\r\nc\r\n").await;
    run!(bench.ok::<ReadFileTool>, {"path": "crlf"});
    run!(bench.ok::<EditFileTool>, {"path": "crlf", "old_string": "a\nb", "new_string": "x\ny"});
    assert_eq!(bench.get("/crlf").await, "x\r\ny\r\nc\r\n");
}

#[tokio::test]
async fn a_write_counts_its_lines() {
    let bench = Bench::new();
    let reply = run!(bench.call::<WriteFileTool>, {"path": "d/f", "content": "a\r\nb"});
    assert_eq!(reply.text, "Wrote 2 lines to d/f");
    assert_eq!(
        reply.structured.unwrap(),
        json!({"path": "/d/f", "lines": 2, "bytes": 4, "created": true})
    );
    assert_eq!(bench.get("/d/f").await, "a\r\nb");
    let reply = run!(bench.call::<WriteFileTool>, {"path": "d/f", "content": ""});
    assert_eq!(reply.text, "Wrote 0 lines to d/f");
    assert_eq!(reply.structured.unwrap()["created"], json!(false));
    assert_eq!(
        run!(bench.fails::<WriteFileTool>, {"path": "d", "content": ""}),
        "'d' is a directory; name a file in it"
    );
    let text = run!(bench.fails::<WriteFileTool>, {"path": "d/f/g", "content": ""});
    assert!(text.starts_with("'d/f/g': "), "{text}");
}

#[tokio::test]
async fn content_has_a_bound() {
    let bench = Bench::with(|options| options.limits.argument_bytes = 10);
    let text = run!(bench.fails::<WriteFileTool>, {"path": "f", "content": "12345678901"});
    let told = "content has 11 bytes, more than the 10";
    assert!(text.starts_with(told), "{text}");
    run!(bench.fails::<ReadFileTool>, {"path": "f"});
}

#[test]
fn schemas_describe_every_field() {
    for schema in [
        Value::from(schemars::schema_for!(args::EditFileArgs)),
        Value::from(schemars::schema_for!(args::HashlineEditArgs)),
        Value::from(schemars::schema_for!(args::WriteFileArgs)),
        Value::from(schemars::schema_for!(args::DeleteFileArgs)),
        Value::from(schemars::schema_for!(args::MoveFileArgs)),
        Value::from(schemars::schema_for!(args::CopyFileArgs)),
    ] {
        assert_eq!(schema["additionalProperties"], json!(false));
        assert!(schema.get("description").is_none(), "{schema}");
        for (field, about) in schema["properties"].as_object().unwrap() {
            assert!(about["description"].is_string(), "{field}");
        }
    }
}
