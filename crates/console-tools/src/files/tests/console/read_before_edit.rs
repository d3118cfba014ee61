//! Tests of read tracking through the tools.

use std::sync::{Arc, Mutex};

use backend_core::{BackendExt as _, Error, ErrorKind, Operation};
use backend_state::StateBackend;
use backend_testkit::fake::{Call, Intercepted};
use futures::FutureExt as _;
use futures::executor::block_on;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Bench, DeleteFileTool, EditFileTool, HashlineEditTool, MoveFileTool, ReadFileTool,
    WriteFileTool, call, context,
};
use crate::options::Options;
use crate::reply::FailureClass;

fn edit(old: &str, new: &str) -> Value {
    json!({"path": "f", "old_string": old, "new_string": new})
}

#[tokio::test]
async fn an_edit_of_what_changed_says_what_did() {
    let bench = Bench::new();
    bench.put("/f", "a\nb\nc\n").await;
    run!(bench.ok::<ReadFileTool>, {"path": "./x/../f"});
    bench.put("/f", "a\nB\nc\n").await;
    for args in [
        edit("a", "x"),
        json!({"path": "f", "old_string": "a", "new_string": "x", "dry_run": true}),
    ] {
        assert_eq!(
            bench.fails::<EditFileTool>(args).await,
            "'f' changed since you last read it. Read it again before editing so your change \
             applies to the current contents. What changed:\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c"
        );
    }
    let text = run!(bench.fails::<WriteFileTool>, {"path": "f", "content": "x"});
    assert!(
        text.contains("changed since you last read it") && text.contains("-b\n+B"),
        "{text}"
    );
    let args = json!({"path": "f", "start_line": 1, "start_hash": "0c", "new_content": "x"});
    let text = bench.fails::<HashlineEditTool>(args).await;
    assert!(
        text.contains("changed since you last read it") && text.contains("-b\n+B"),
        "{text}"
    );
    assert_eq!(bench.get("/f").await, "a\nB\nc\n");
    run!(bench.ok::<ReadFileTool>, {"path": "f"});
    bench.ok::<EditFileTool>(edit("a", "x")).await;
    assert_eq!(bench.get("/f").await, "x\nB\nc\n");
}

#[tokio::test]
async fn files_never_read_are_edited_unless_an_option_says_otherwise() {
    let bench = Bench::new();
    bench.put("/f", "a\n").await;
    bench.ok::<EditFileTool>(edit("a", "b")).await;
    let bench = Bench::with(|options| options.require_read_before_edit = true);
    bench.put("/f", "a\n").await;
    bench.put("/d/x", "").await;
    let want = "'f' has not been read yet; read it with read_file first, then change it";
    assert_eq!(bench.fails::<EditFileTool>(edit("a", "b")).await, want);
    let args = json!({"path": "f", "start_line": 1, "start_hash": "0c", "new_content": "x"});
    assert_eq!(bench.fails::<HashlineEditTool>(args).await, want);
    let write = json!({"path": "f", "content": "x"});
    assert_eq!(bench.fails::<WriteFileTool>(write.clone()).await, want);
    let text = run!(bench.fails::<WriteFileTool>, {"path": "d", "content": "x"});
    assert_eq!(text, "'d' is a directory; name a file in it");
    assert_eq!(bench.get("/f").await, "a\n");
    run!(bench.ok::<WriteFileTool>, {"path": "new", "content": "x"});
    run!(bench.ok::<ReadFileTool>, {"path": "f"});
    bench.ok::<EditFileTool>(edit("a", "b")).await;
    bench.ok::<WriteFileTool>(write).await;
    // Written content is tracked, under every spelling of the path.
    run!(bench.ok::<EditFileTool>, {"path": "./new", "old_string": "x", "new_string": "y"});
}

#[tokio::test]
async fn a_failed_read_is_not_a_read() {
    let bench = Bench::with(|options| options.require_read_before_edit = true);
    bench.put("/f", "a\n").await;
    run!(bench.fails::<ReadFileTool>, {"path": "f", "offset": 9});
    let text = bench.fails::<EditFileTool>(edit("a", "b")).await;
    assert!(text.contains("has not been read yet"), "{text}");
}

#[tokio::test]
async fn a_file_that_is_gone_is_written_anew() {
    let bench = Bench::new();
    bench.put("/f", "a\n").await;
    run!(bench.ok::<ReadFileTool>, {"path": "f"});
    bench.state.delete_file("/f").await.unwrap();
    let text = bench.fails::<EditFileTool>(edit("a", "b")).await;
    assert!(text.starts_with("File 'f' not found."), "{text}");
    let reply = run!(bench.call::<WriteFileTool>, {"path": "f", "content": "x"});
    assert_eq!(reply.structured.unwrap()["created"], json!(true));
    assert_eq!(bench.get("/f").await, "x");
}

#[tokio::test]
async fn large_files_are_known_by_size_and_time() {
    let bench = Bench::new();
    let big = |first: &str| format!("{first}\n{}", "line\n".repeat(1_000_000));
    bench.put("/f", big("a")).await;
    run!(bench.ok::<ReadFileTool>, {"path": "f", "limit": 1});
    bench.put("/f", big("longer")).await;
    let text = bench.fails::<EditFileTool>(edit("longer", "b")).await;
    assert!(text.contains("changed since you last read it"), "{text}");
    let text = run!(bench.fails::<WriteFileTool>, {"path": "f", "content": "x"});
    assert!(text.contains("changed since you last read it"), "{text}");
    run!(bench.ok::<ReadFileTool>, {"path": "f", "limit": 1});
    bench.ok::<EditFileTool>(edit("longer", "b")).await;
    // After an edit, the file is tracked by its hash.
    bench.put("/f", "small\n").await;
    let text = bench.fails::<EditFileTool>(edit("small", "b")).await;
    assert!(text.contains("What changed:\nit has 1 line now"), "{text}");
}

#[tokio::test]
async fn the_length_is_told_where_the_text_was_not_kept() {
    let bench = Bench::new();
    bench.put("/f", "line\n".repeat(100_000)).await;
    run!(bench.ok::<ReadFileTool>, {"path": "f", "limit": 1});
    bench.put("/f", "other\n").await;
    let text = bench.fails::<EditFileTool>(edit("other", "b")).await;
    assert!(
        text.ends_with("What changed:\nit had 100000 lines, it has 1 line and 6 bytes now"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_edits_of_one_conversation_all_apply() {
    let bench = Arc::new(Bench::new());
    let text: String = (0..40).map(|n| format!("<{n}>\n")).collect();
    bench.put("/f", text).await;
    run!(bench.ok::<ReadFileTool>, {"path": "f"});
    let calls = (0..40).map(|n| {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move {
            let path = ["f", "/f", "./f", "d/../f"][n % 4];
            let new = format!("[{n}]");
            let args = json!({"path": path, "old_string": format!("<{n}>"), "new_string": new});
            bench.ok::<EditFileTool>(args).await;
            run!(bench.ok::<ReadFileTool>, {"path": "f"});
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    let want: String = (0..40).map(|n| format!("[{n}]\n")).collect();
    assert_eq!(bench.get("/f").await, want);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Read,
    Write,
    Edit,
    Lines,
    Move,
    /// Another process writes.
    Foreign,
}

/// A step on one of two files, and the backend call before which another process writes
/// to it.
fn step() -> impl Strategy<Value = (Step, bool, Option<usize>)> {
    use Step::*;
    let step = proptest::sample::select(vec![Read, Write, Edit, Lines, Move, Foreign]);
    let meddles = prop_oneof![2 => Just(None), 1 => (0..3_usize).prop_map(Some)];
    (step, any::<bool>(), meddles)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A change applies only to the content that the conversation last read or wrote,
    /// whatever another process does between any two calls.
    #[test]
    fn no_stale_edit_goes_through(steps in proptest::collection::vec(step(), 1..30)) {
        block_on(interleave(steps));
    }
}

/// Drives a future that only waits for its own locks, even inside another executor.
fn drive<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    loop {
        if let Some(output) = future.as_mut().now_or_never() {
            return output;
        }
    }
}

/// A backend in which another process writes just before a call. Records the content of
/// each file when it was about to be changed.
#[derive(Debug, Default)]
struct Meddler {
    state: StateBackend,
    /// The number of tool calls before the write, the path and the content.
    next: Mutex<Option<(usize, &'static str, String)>>,
    changed: Mutex<Option<Option<String>>>,
}

impl Meddler {
    fn now(&self, path: &str) -> Option<String> {
        drive(self.state.read_to_string(path)).ok()
    }

    fn put(&self, path: &str, content: String) {
        drive(self.state.write_file(path, content)).unwrap();
    }

    fn before(&self, call: &Call) {
        let mut next = self.next.lock().unwrap();
        *next = match next.take() {
            Some((0, path, content)) => {
                self.put(path, content);
                None
            }
            Some((calls, path, content)) => Some((calls - 1, path, content)),
            None => None,
        };
        if matches!(call.operation, Operation::Write | Operation::Edit) {
            *self.changed.lock().unwrap() = Some(self.now(call.path.as_str()));
        }
    }
}

async fn interleave(steps: Vec<(Step, bool, Option<usize>)>) {
    let meddler = Arc::new(Meddler::default());
    let seen = Arc::clone(&meddler);
    let backend = Intercepted::new(meddler.state.clone(), move |call| {
        seen.before(call);
        Ok(())
    });
    let context = context(Arc::new(backend), Options::default());
    let mut knows: [Option<String>; 2] = [None, None];
    for (number, (step, which, meddles)) in steps.into_iter().enumerate() {
        let (at, path) = (usize::from(which), ["/a", "/b"][usize::from(which)]);
        let new = format!("new {number}\n");
        let before = meddler.now(path);
        *meddler.changed.lock().unwrap() = None;
        *meddler.next.lock().unwrap() =
            meddles.map(|calls| (calls, path, format!("else {number}\n")));
        let old = before.clone().unwrap_or_default();
        let reply = match step {
            Step::Foreign => {
                meddler.put(path, new);
                continue;
            }
            Step::Read => call::<ReadFileTool>(&context, json!({ "path": path })).await,
            Step::Write => {
                let args = json!({"path": path, "content": new});
                call::<WriteFileTool>(&context, args).await
            }
            Step::Edit => {
                let args = json!({"path": path, "old_string": old, "new_string": new});
                call::<EditFileTool>(&context, args).await
            }
            Step::Lines => {
                let hash = &hashline::render(&old)[2..4];
                let args =
                    json!({"path": path, "start_line": 1, "start_hash": hash, "new_content": new});
                call::<HashlineEditTool>(&context, args).await
            }
            Step::Move => {
                let to = ["/b", "/a"][at];
                let args = json!({"source": path, "destination": to, "overwrite": true});
                call::<MoveFileTool>(&context, args).await
            }
        };
        *meddler.next.lock().unwrap() = None;
        if meddles.is_none() {
            // Nor is a fresh edit refused.
            let exists = before.is_some();
            let fresh = !exists || knows[at].is_none() || knows[at] == before;
            let want = fresh && (exists || matches!(step, Step::Write));
            let changes = !matches!(step, Step::Read | Step::Move);
            assert_eq!(reply.is_success(), if changes { want } else { exists });
        }
        if !reply.is_success() {
            assert_ne!(meddler.now(path).as_deref(), Some(new.as_str()));
            continue;
        }
        match step {
            Step::Read => {
                let (_, shown) = reply.text.split_once('\t').unwrap();
                knows[at] = Some(format!("{shown}\n"));
            }
            Step::Move => knows[1 - at] = knows[at].take(),
            _ => {
                let replaced = meddler.changed.lock().unwrap().take().unwrap();
                let fresh = replaced.is_none() || knows[at].is_none() || knows[at] == replaced;
                assert!(
                    fresh,
                    "{step:?} of {path} replaced {replaced:?}, knowing {knows:?}"
                );
                assert_eq!(meddler.now(path).as_deref(), Some(new.as_str()));
                knows[at] = Some(new);
            }
        }
    }
}

#[tokio::test]
async fn the_ordinary_case_is_one_call_to_the_backend() {
    let (backend, calls) = Intercepted::recording(StateBackend::new());
    let context = context(Arc::new(backend), Options::default());
    let operations = || {
        calls
            .taken()
            .iter()
            .map(|call| call.operation)
            .collect::<Vec<_>>()
    };
    call::<WriteFileTool>(&context, json!({"path": "f", "content": "a\n"})).await;
    assert_eq!(operations(), [Operation::Write]);
    call::<ReadFileTool>(&context, json!({"path": "f"})).await;
    assert_eq!(operations(), [Operation::Read]);
    call::<EditFileTool>(&context, edit("a", "b")).await;
    assert_eq!(operations(), [Operation::Edit]);
    // A failed edit of a file that was read needs no other operation either.
    let reply = call::<EditFileTool>(&context, edit("B", "c")).await;
    assert!(reply.text.contains("     1\tb"), "{}", reply.text);
    assert_eq!(operations(), [Operation::Edit]);
    let args = json!({"path": "f", "start_line": 1, "start_hash": "92", "new_content": "x"});
    call::<HashlineEditTool>(&context, args).await;
    assert_eq!(operations(), [Operation::Read, Operation::Edit]);
}

#[tokio::test]
async fn a_change_between_reading_and_editing_is_noticed() {
    let state = StateBackend::new();
    state.write_file("/f", "a\n").await.unwrap();
    let meddled = state.clone();
    let backend = Intercepted::new(state.clone(), move |call| {
        if call.operation == Operation::Edit {
            drive(meddled.write_file("/f", "a\nadded\n")).unwrap();
        }
        Ok(())
    });
    let context = context(Arc::new(backend), Options::default());
    let args = json!({"path": "f", "start_line": 1, "start_hash": "0c", "new_content": "x"});
    let reply = call::<HashlineEditTool>(&context, args).await;
    assert_eq!(
        reply.text,
        "Error: 'f' changed since you last read it. Read it again before editing so your change \
         applies to the current contents. What changed:\n@@ -1 +1,2 @@\n a\n+added"
    );
    assert_eq!(state.read_to_string("/f").await.unwrap(), "a\nadded\n");
}

#[tokio::test]
async fn a_failed_delete_is_not_forgotten() {
    let bench = Bench::new();
    bench.put("/d/f", "a\n").await;
    run!(bench.ok::<ReadFileTool>, {"path": "d/f"});
    run!(bench.fails::<DeleteFileTool>, {"path": "d"});
    bench.put("/d/f", "b\n").await;
    let text = run!(bench.fails::<WriteFileTool>, {"path": "d/f", "content": "c"});
    assert!(text.contains("changed since you last read it"), "{text}");
}

#[tokio::test]
async fn a_refusal_is_passed_on_and_nothing_is_told_of_the_file() {
    let state = StateBackend::new();
    state.write_file("/f", "secret line\n").await.unwrap();
    let backend = Intercepted::new(state.clone(), |call| match call.operation {
        Operation::Read => Err(Error::new(ErrorKind::PermissionDenied, "not allowed")),
        Operation::Delete => Err(Error::unavailable("gone")),
        _ => Ok(()),
    });
    let context = context(Arc::new(backend), Options::default());
    let reply = call::<ReadFileTool>(&context, json!({"path": "f"})).await;
    assert_eq!(reply.failure, Some(FailureClass::Refused), "{}", reply.text);
    let args = json!({"path": "f", "start_line": 1, "start_hash": "92", "new_content": "x"});
    let reply = call::<HashlineEditTool>(&context, args).await;
    assert_eq!(reply.failure, Some(FailureClass::Refused), "{}", reply.text);
    let reply = call::<EditFileTool>(&context, edit("nothing like it", "x")).await;
    assert_eq!(reply.failure, Some(FailureClass::Fixable), "{}", reply.text);
    assert!(reply.text.contains("was not found") && !reply.text.contains("secret"));
    let reply = call::<DeleteFileTool>(&context, json!({"path": "f"})).await;
    assert_eq!(
        reply.failure,
        Some(FailureClass::Environment),
        "{}",
        reply.text
    );
    assert_eq!(state.read_to_string("/f").await.unwrap(), "secret line\n");
}
