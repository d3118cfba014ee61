//! Tests of `hashline_edit`.

use serde_json::json;

use super::{Bench, HashlineEditTool, ReadFileTool};

async fn abc() -> Bench {
    let bench = Bench::hashline();
    bench.put("/f", "a\nb\nc\n").await;
    bench
}

#[tokio::test]
async fn lines_are_replaced_inserted_and_deleted() {
    let bench = abc().await;
    // a is 0c, b is 92, c is 4a.
    let args = json!({"path": "f", "start_line": 2, "start_hash": "92", "new_content": "B\n"});
    let reply = bench.call::<HashlineEditTool>(args).await;
    assert_eq!(reply.text, "Edited f: Replaced 1 line at line 2");
    let data = reply.structured.unwrap();
    assert_eq!(data["diff"], "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c");
    assert_eq!(
        (&data["first_line"], &data["replacements"]),
        (&json!(2), &json!([1]))
    );
    assert_eq!(bench.get("/f").await, "a\nB\nc\n");
    let args = json!({"path": "f", "start_line": 3, "start_hash": "4a", "new_content": "\n",
        "insert_after": true});
    assert_eq!(
        bench.ok::<HashlineEditTool>(args).await,
        "Edited f: Inserted 1 line after line 3"
    );
    assert_eq!(bench.get("/f").await, "a\nB\nc\n\n");
    let args = json!({"path": "f", "start_line": 1, "start_hash": "0c", "new_content": "",
        "end_line": 4, "end_hash": "d4"});
    assert_eq!(
        bench.ok::<HashlineEditTool>(args).await,
        "Edited f: Deleted 4 lines at line 1"
    );
    assert_eq!(bench.get("/f").await, "");
    let args = json!({"path": "f", "start_line": 0, "start_hash": "", "new_content": "new",
        "insert_after": true});
    bench.ok::<HashlineEditTool>(args).await;
    assert!(bench.get("/f").await.starts_with("new"));
}

#[tokio::test]
async fn a_list_uses_the_numbers_that_were_shown() {
    let bench = abc().await;
    let edits = json!([
        {"start_line": 1, "start_hash": "0c", "new_content": "x\ny\nz"},
        {"start_line": 3, "start_hash": "4a", "new_content": "C"},
    ]);
    let mut args = json!({"path": "f", "edits": edits, "dry_run": true});
    let text = bench.ok::<HashlineEditTool>(args.clone()).await;
    assert!(
        text.starts_with("Dry run, nothing was written. f would change"),
        "{text}"
    );
    assert_eq!(bench.get("/f").await, "a\nb\nc\n");
    args["dry_run"] = json!(false);
    bench.ok::<HashlineEditTool>(args.clone()).await;
    assert_eq!(bench.get("/f").await, "x\ny\nz\nb\nC\n");
    // The second time the lines have changed, and nothing is edited.
    let text = bench.fails::<HashlineEditTool>(args).await;
    assert!(
        text.contains("nothing was edited") && text.contains("3:fb|z"),
        "{text}"
    );
    assert_eq!(bench.get("/f").await, "x\ny\nz\nb\nC\n");
}

#[tokio::test]
async fn line_ends_and_the_missing_last_one_are_kept() {
    let bench = Bench::hashline();
    bench.put("/f", "a\r\nb\r\nc").await;
    let args = json!({"path": "f", "start_line": 2, "start_hash": "92", "new_content": "x\ny"});
    bench.ok::<HashlineEditTool>(args).await;
    assert_eq!(bench.get("/f").await, "a\r\nx\r\ny\r\nc");
}

#[tokio::test]
async fn bad_edits_are_refused_by_the_name_of_their_field() {
    let bench = abc().await;
    let edits = json!([{"start_line": -1, "start_hash": "0c", "new_content": "x"}]);
    let cases = expected! {
        {} => "start_line, start_hash, new_content must be given";
        {"start_line": 1, "start_hash": "0c"} => "new_content must be given";
        {"start_line": 1, "start_hash": "zz", "new_content": "x"} => "start_hash: ";
        {"start_line": -1, "start_hash": "0c", "new_content": "x"} =>
            "start_line must be 0 or more, not -1";
        {"start_line": 1, "start_hash": "0c", "new_content": "x", "end_hash": "92"} =>
            "end_hash is given without end_line";
        {"start_line": 1, "start_hash": "0c", "new_content": "x", "end_line": 0} =>
            "end_line must be 1 or more, not 0";
        { "edits": edits } => "edits[0]: start_line must be 0 or more, not -1";
        {"edits": edits, "start_line": 1, "insert_after": true} =>
            "edits cannot be combined with start_line, insert_after; give either";
        {"start_line": 9, "start_hash": "0c", "new_content": "x"} => "nothing was edited";
        {"start_line": 1, "start_hash": "0c", "new_content": "a"} =>
            "the lines are already as new_content says";
    };
    for (mut args, want) in cases {
        args["path"] = json!("f");
        let text = bench.fails::<HashlineEditTool>(args).await;
        assert!(text.starts_with(want), "{text}");
    }
    assert_eq!(bench.get("/f").await, "a\nb\nc\n");
    let args = json!({"path": "g", "start_line": 1, "start_hash": "0c", "new_content": "a"});
    let text = bench.fails::<HashlineEditTool>(args).await;
    assert!(text.starts_with("File 'g' not found."), "{text}");
}

#[tokio::test]
async fn bytes_that_are_not_text_stay_as_they_are() {
    let bench = Bench::hashline();
    bench.put("/f", b"a\ncaf\xe9\n").await;
    let args = json!({"path": "f", "start_line": 1, "start_hash": "0c", "new_content": "x"});
    let text = bench.fails::<HashlineEditTool>(args).await;
    assert!(text.starts_with("'f' is not valid UTF-8 text"), "{text}");
}

#[tokio::test]
async fn what_read_file_shows_can_be_edited_in_a_long_file_too() {
    let bench = Bench::hashline();
    let text: String = (0..3_000).map(|n| format!("line {n}\n")).collect();
    bench.put("/f", text).await;
    let shown = run!(bench.ok::<ReadFileTool>, {"path": "f", "offset": 1_999, "limit": 1});
    let (anchor, _) = shown.split_once('|').unwrap();
    let args = json!({"path": "f", "start_line": 2_000, "start_hash": anchor, "new_content": "x"});
    bench.ok::<HashlineEditTool>(args).await;
    assert!(bench.get("/f").await.contains("line 1998\nx\nline 2000\n"));
}
