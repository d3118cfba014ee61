//! The script that answers where there is no model: it writes two files, corrects one, runs
//! it after asking, and says what came out. `run COMMAND` asks to run a command.

use examples::chat::script::asked;
use examples::chat::{Script, Turn};
use serde_json::{Value, json};

/// Returns the script. It goes by the conversation, so it serves all sessions at once.
pub(crate) fn script() -> Script {
    Script::new().otherwise(answer)
}

fn answer(messages: &[Value]) -> Turn {
    let (said, steps, last) = asked(messages);
    match said.trim().strip_prefix("run ") {
        Some(command) => run(command, steps, last),
        None => count_words(said, steps, last),
    }
}

/// The demonstration.
fn count_words(said: &str, steps: usize, last: &str) -> Turn {
    match steps {
        0 => Turn::says("I keep your message and write a script that counts its words.")
            .calls(
                "write_file",
                json!({"path": "message.txt", "content": format!("{}\n", said.trim())}),
            )
            .calls(
                "write_file",
                json!({"path": "count.sh", "content": "# Counts characters.\nwc -c < message.txt\n"}),
            ),
        1 => Turn::says("That counts characters, not words, so I correct it.").calls(
            "edit_file",
            json!({"path": "count.sh", "edits": [
                {"old_string": "Counts characters.", "new_string": "Counts words."},
                {"old_string": "wc -c", "new_string": "wc -w"},
            ]}),
        ),
        2 => Turn::says("Now I run it, if you agree.")
            .calls("execute", json!({"command": "sh count.sh"})),
        _ => match last.trim().parse::<u64>() {
            Ok(words) => Turn::says(format!(
                "The script counts {words}. Both files are in the list; open one to edit it."
            )),
            Err(_) => Turn::says("It did not run. The script is in count.sh if you want to try it."),
        },
    }
}

/// The answer to a message that asks for a command.
fn run(command: &str, steps: usize, last: &str) -> Turn {
    match steps {
        0 => Turn::says("I ask you first.").calls("execute", json!({"command": command})),
        _ if last.starts_with("Error: ") => Turn::says("Then I leave it."),
        _ => Turn::says("That is what it printed."),
    }
}
