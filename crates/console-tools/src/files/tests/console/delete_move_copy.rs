//! Tests of `delete_file`, `move_file` and `copy_file`.

use serde_json::json;

use super::{Bench, CopyFileTool, DeleteFileTool, EditFileTool, MoveFileTool, ReadFileTool};

async fn tree() -> Bench {
    let bench = Bench::new();
    for path in ["/d/a", "/d/b", "/f"] {
        bench.put(path, format!("{path}\n")).await;
    }
    bench
}

#[tokio::test]
async fn files_are_deleted_moved_and_copied() {
    let bench = tree().await;
    let reply = run!(bench.call::<CopyFileTool>, {"source": "f", "destination": "new/g"});
    assert_eq!(reply.text, "Copied f to new/g");
    assert_eq!(
        reply.structured.unwrap(),
        json!({"source": "/f", "destination": "/new/g"})
    );
    assert_eq!(bench.get("/new/g").await, "/f\n");
    assert_eq!(
        run!(bench.ok::<MoveFileTool>, {"source": "f", "destination": "h"}),
        "Moved f to h"
    );
    assert_eq!(bench.get("/h").await, "/f\n");
    assert_eq!(run!(bench.ok::<DeleteFileTool>, {"path": "h"}), "Deleted h");
    let args = json!({"source": "d", "destination": "e", "recursive": true});
    assert_eq!(bench.ok::<CopyFileTool>(args).await, "Copied d to e");
    assert_eq!(bench.get("/e/b").await, "/d/b\n");
    assert_eq!(
        run!(bench.ok::<DeleteFileTool>, {"path": "d", "recursive": true}),
        "Deleted d"
    );
    let args = json!({"source": "e/a", "destination": "e/b", "overwrite": true});
    assert_eq!(bench.ok::<MoveFileTool>(args).await, "Moved e/a to e/b");
    assert_eq!(bench.get("/e/b").await, "/d/a\n");
}

#[tokio::test]
async fn failures_say_the_next_step() {
    let bench = tree().await;
    let delete = expected! {
        {"path": "d"} => "'d' is a directory; set recursive to delete it with its contents";
        {"path": "x"} => "File 'x' not found. Check the path with `ls` or `glob`, then try again.";
        {"path": ".", "recursive": true} =>
            "'.': it is the working directory or lies above it; name what is in it instead";
    };
    for (args, want) in delete {
        assert_eq!(bench.fails::<DeleteFileTool>(args).await, want);
    }
    let transfer = expected! {
        {"source": "x", "destination": "y"} =>
            "File 'x' not found. Check the path with `ls` or `glob`, then try again.";
        {"source": "f", "destination": "d/a"} =>
            "'d/a' exists already; set overwrite to replace it, or choose another destination";
        {"source": "f", "destination": "d/"} =>
            "'d' is a directory; give the whole new path, such as 'd/f'";
        {"source": "f", "destination": "d/a/x"} =>
            "'d/a/x': it, or a part of the path above it, is not a directory";
        {"source": "f", "destination": "f"} =>
            "'f': the destination is the source or lies inside it; choose another";
    };
    for (args, want) in transfer {
        assert_eq!(bench.fails::<MoveFileTool>(args.clone()).await, want);
        assert_eq!(bench.fails::<CopyFileTool>(args).await, want);
    }
    assert_eq!(
        run!(bench.fails::<CopyFileTool>, {"source": "d", "destination": "e"}),
        "'d' is a directory; set recursive to copy it with its contents"
    );
    let text = run!(bench.fails::<MoveFileTool>, {"source": "f", "destination": "../x"});
    assert!(text.starts_with("destination: "), "{text}");
    let args = json!({"source": "d", "destination": "f", "overwrite": true});
    let text = bench.fails::<MoveFileTool>(args).await;
    assert!(
        text.contains("directories are neither replaced nor merged"),
        "{text}"
    );
    assert_eq!(bench.get("/d/a").await, "/d/a\n");
}

#[tokio::test]
async fn what_was_read_moves_along() {
    let bench = tree().await;
    run!(bench.ok::<ReadFileTool>, {"path": "d/a"});
    run!(bench.ok::<MoveFileTool>, {"source": "d", "destination": "e"});
    bench.put("/e/a", "somebody else\n").await;
    let args = json!({"path": "e/a", "old_string": "else", "new_string": "x"});
    let text = bench.fails::<EditFileTool>(args).await;
    assert!(text.contains("changed since you last read it"), "{text}");
    // Overwritten and deleted files are forgotten.
    run!(bench.ok::<CopyFileTool>, {"source": "f", "destination": "e/a", "overwrite": true});
    run!(bench.ok::<EditFileTool>, {"path": "e/a", "old_string": "f", "new_string": "x"});
    run!(bench.ok::<DeleteFileTool>, {"path": "e", "recursive": true});
    bench.put("/e/a", "anew\n").await;
    run!(bench.ok::<EditFileTool>, {"path": "e/a", "old_string": "anew", "new_string": "x"});
}
