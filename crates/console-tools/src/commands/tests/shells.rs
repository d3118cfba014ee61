//! Tests of background shells: start, read, write, list and kill.

use backend_testkit::fake::{FakeSandbox, PausedClock};

use super::*;

#[tokio::test]
async fn a_background_shell_from_start_to_end() {
    let fixture = Fixture::new();
    assert_eq!(
        run!(fixture.text::<ListShellsTool>, {}),
        "No background shells."
    );
    let line = "while read line; do echo \"got $line\"; done; echo end; exit 5";
    let reply = run!(fixture.call::<RunInBackgroundTool>, {"command": line});
    let structured = reply.structured.unwrap();
    let (id, pid) = (structured["shell_id"].as_str().unwrap(), &structured["pid"]);
    assert_eq!(
        reply.text,
        format!(
            "Started background shell {id} (pid {pid}).\nUse read_output('{id}') to follow its \
             output and kill_shell('{id}') to stop it."
        )
    );
    let idle = run!(fixture.text::<ReadOutputTool>, {"shell_id": id});
    assert_eq!(idle, format!("[{id}] running\n(no new output)"));
    let listed = run!(fixture.text::<ListShellsTool>, {});
    assert_eq!(listed, format!("{id}  running  {line}"));
    assert_eq!(
        run!(fixture.text::<WriteInputTool>, {"shell_id": id, "input": "one\n"}),
        format!("Wrote 4 bytes to background shell {id}.")
    );
    let all = fixture.follow(id, "got one").await;
    assert!(all.starts_with(&format!("[{id}] running\n")), "{all}");
    assert_eq!(
        run!(fixture.text::<WriteInputTool>, {"shell_id": id, "input": "two", "close": true}),
        format!("Wrote 3 bytes to background shell {id} and closed its standard input.")
    );
    let all = fixture.follow(id, "exited (code 5)").await;
    assert!(all.contains("end"), "{all}");
    let again = run!(fixture.call::<ReadOutputTool>, {"shell_id": id});
    assert_eq!(
        again.text,
        format!("[{id}] exited (code 5)\n(no new output)")
    );
    assert_eq!(again.structured.unwrap()["exit_code"], json!(5));
    assert_eq!(
        run!(fixture.text::<ListShellsTool>, {}),
        format!("{id}  exited(5)  {line}")
    );
    assert_eq!(
        run!(fixture.error::<WriteInputTool>, {"shell_id": id, "input": "x"}).0,
        FailureClass::Fixable
    );
    let killed = run!(fixture.text::<KillShellTool>, {"shell_id": id});
    assert_eq!(
        killed,
        format!("Background shell {id} was already finished.")
    );
}

#[tokio::test]
async fn a_background_shell_is_killed() {
    let fixture = Fixture::new();
    let line = "echo up\nread go\nx=$(printf '\\001')";
    run!(fixture.call::<RunInBackgroundTool>, {"command": line});
    fixture.follow("bg_1", "up").await;
    let listed = run!(fixture.text::<ListShellsTool>, {});
    assert_eq!(listed.lines().count(), 1, "{listed}");
    let reply = run!(fixture.call::<KillShellTool>, {"shell_id": "bg_1"});
    assert_eq!(reply.text, "Killed background shell bg_1.");
    assert_eq!(
        reply.structured.unwrap(),
        json!({"shell_id": "bg_1", "killed": true})
    );
    let text = run!(fixture.text::<ReadOutputTool>, {"shell_id": "bg_1"});
    assert!(text.starts_with("[bg_1] ended by signal"), "{text}");
}

#[tokio::test]
async fn much_background_output_is_cut_and_kept() {
    let mut fixture = Fixture::new();
    fixture.options.limits.output_bytes = 100;
    let line = "seq 1 3000; echo done; read go";
    run!(fixture.call::<RunInBackgroundTool>, {"command": line});
    let all = fixture.follow("bg_1", "done").await;
    assert!(all.len() < 2_000, "{}", all.len());
    let file = fixture
        .backend
        .read_to_string("/.agentbox/outputs/1.txt")
        .await
        .unwrap();
    assert!(file.starts_with("1\n2\n"), "{file}");
}

#[tokio::test]
async fn an_unknown_shell_is_answered_with_the_known_ones() {
    let fixture = Fixture::new();
    let wrong = json!({"shell_id": "bg_7"});
    let (class, text) = fixture.error::<ReadOutputTool>(wrong.clone()).await;
    assert_eq!(class, FailureClass::Fixable);
    assert_eq!(
        text,
        "there is no background shell 'bg_7'; there are none; start one with run_in_background"
    );
    for _ in 0..2 {
        run!(fixture.call::<RunInBackgroundTool>, {"command": "read go"});
    }
    let expected = "there is no background shell 'bg_7'; there are bg_1, bg_2";
    assert_eq!(
        fixture.error::<ReadOutputTool>(wrong.clone()).await.1,
        expected
    );
    assert_eq!(fixture.error::<KillShellTool>(wrong).await.1, expected);
    assert_eq!(
        run!(fixture.error::<WriteInputTool>, {"shell_id": "bg_7", "input": "x"}).1,
        expected
    );
}

#[tokio::test]
async fn wrong_arguments_say_what_they_must_be() {
    let fixture = Fixture::new();
    for seconds in [-1, 601] {
        let args = json!({"shell_id": "bg_1", "wait_seconds": seconds});
        let (_, text) = fixture.error::<ReadOutputTool>(args).await;
        assert_eq!(
            text,
            format!("wait_seconds must be from 0 to 600, not {seconds}")
        );
    }
    let (_, text) = run!(fixture.error::<WriteInputTool>, {"shell_id": "bg_1", "input": ""});
    assert!(text.starts_with("input is empty"), "{text}");
    for output in [
        ExecuteTool::output_schema(),
        RunInBackgroundTool::output_schema(),
        ReadOutputTool::output_schema(),
        WriteInputTool::output_schema(),
        KillShellTool::output_schema(),
        ListShellsTool::output_schema(),
    ] {
        assert_eq!(output.unwrap()["type"], json!("object"));
    }
}

/// Returns tools on a sandbox whose terminals show what is typed.
fn with_terminals() -> Fixture {
    let sandbox = FakeSandbox::new("fake", StateBackend::new(), PausedClock::new());
    Fixture::on(Arc::new(sandbox))
}

#[tokio::test]
async fn a_terminal_is_shown_as_its_screen() {
    let fixture = with_terminals();
    let start = json!({"command": "vi notes", "terminal": true});
    assert_eq!(
        fixture.text::<RunInBackgroundTool>(start).await,
        "Started background shell bg_1.\nUse read_output('bg_1') to see its screen, write_input \
         to type, and kill_shell('bg_1') to stop it."
    );
    let read = async || {
        let reply = run!(fixture.call::<ReadOutputTool>, {"shell_id": "bg_1"});
        (reply.text, reply.structured.unwrap())
    };
    let (text, data) = read().await;
    assert_eq!(
        text,
        "[bg_1] running\n(screen, cursor at row 1, column 1)\n(empty)"
    );
    assert_eq!(
        data["screen"],
        json!({"text": "", "cursor_row": 1, "cursor_column": 1})
    );
    let drawn = "\u{1b}[2J\u{1b}[3;5Hmiddle\u{1b}[1;1Htop\u{1b}[?25l";
    run!(fixture.call::<WriteInputTool>, {"shell_id": "bg_1", "input": drawn});
    let expected = "[bg_1] running\n(screen, no cursor)\ntop\n\n    middle";
    assert_eq!(read().await.0, expected);
    // It is still there.
    assert_eq!(read().await.0, expected);
    let lines: String = (1..=30).map(|line| format!("{line}\r\n")).collect();
    let lines = format!("\u{1b}[2J\u{1b}[H\u{1b}[?25h{lines}");
    run!(fixture.call::<WriteInputTool>, {"shell_id": "bg_1", "input": lines});
    let (text, data) = read().await;
    let scrolled = "(scrolled off the screen since the last read)\ntop\n\n    middle\n1\n2\n";
    assert!(text.contains(scrolled), "{text}");
    assert!(
        text.ends_with("\n7\n(screen, cursor at row 24, column 1)\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n21\n22\n23\n24\n25\n26\n27\n28\n29\n30"),
        "{text}"
    );
    assert_eq!(
        data["output"],
        json!("top\n\n    middle\n1\n2\n3\n4\n5\n6\n7\n")
    );
}

#[tokio::test]
async fn keys_are_pressed_by_name() {
    let fixture = with_terminals();
    let start = json!({"command": "cat", "terminal": true});
    fixture.call::<RunInBackgroundTool>(start).await;
    assert_eq!(
        run!(fixture.text::<WriteInputTool>, {"shell_id": "bg_1", "input": "ab", "keys": ["Left", "x"]}),
        "Wrote 2 bytes and 2 keys to background shell bg_1."
    );
    let text = run!(fixture.text::<ReadOutputTool>, {"shell_id": "bg_1"});
    assert!(text.ends_with("\nax"), "{text}");
    let (class, text) =
        run!(fixture.error::<WriteInputTool>, {"shell_id": "bg_1", "keys": ["Entr"]});
    assert_eq!(class, FailureClass::Fixable);
    assert!(text.starts_with("there is no key 'Entr'; "), "{text}");
    run!(fixture.call::<RunInBackgroundTool>, {"command": "cat"});
    assert_eq!(
        run!(fixture.error::<WriteInputTool>, {"shell_id": "bg_2", "keys": ["Enter"]}).1,
        "background shell bg_2 has no terminal, so it takes no keys; write text, or start the \
         command with terminal set to true"
    );
    assert_eq!(
        run!(fixture.error::<WriteInputTool>, {"shell_id": "bg_1"}).1,
        "input is empty; give text to write or keys to press, or set close to true"
    );
}

#[tokio::test]
async fn without_a_supervisor_there_is_no_terminal() {
    let fixture = Fixture::new();
    let start = json!({"command": "vi", "terminal": true});
    let (_, text) = fixture.error::<RunInBackgroundTool>(start).await;
    assert!(text.contains("terminals need a supervisor"), "{text}");
}
