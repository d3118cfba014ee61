//! Plays the conversation through an external client and compares the transcript:
//! `cargo run -p console-testkit --example replay -- [--docker IMAGE | --k8s IMAGE] COMMAND...`.
//!
//! The command is started with two more arguments: a backend in `agentbox` notation,
//! filled with the script's files, and a directory with an `agentbox` config file for
//! each conversation, named after it. It reads a line of JSON for each call, and
//! answers with one:
//!
//! ```text
//! {"conversation": "coder", "tool": "ls", "arguments": {}, "answer": "yes" | "no" | null}
//! {"text": "...", "is_error": false, "blocks": [{"media_type": "...", "base64": "..."}],
//!  "structured": {...} | null, "questions": 0}
//! ```
//!
//! `structured` must repeat the text, and holds the structured data of the tool as
//! `data`. A reply with blocks has no `structured`, because some clients would then
//! show the model nothing else.
//!
//! With `--docker`, each conversation has a container of that image, and all of them
//! have the directory with the files as their working directory. With `--k8s` they are
//! pods of a cluster whose only node is this machine.
#![allow(clippy::print_stdout, reason = "it tells what differs")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use backend_local::LocalBackend;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use console_testkit::{
    BlockSummary, Call, Client, Environment, Outcome, Script, Transcript, YesNo, play,
};
use serde::Deserialize;
use serde_json::{Value, json};

type Error = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Error> {
    let directory = tempfile::tempdir()?;
    let root = directory.path().canonicalize()?.join("workspace");
    let configs = directory.path().join("configs");
    std::fs::create_dir(&root)?;
    std::fs::create_dir(&configs)?;
    let script = Script::bundled()?;
    script.seed(&LocalBackend::builder(&root).open()?).await?;

    let mut command = std::env::args().skip(1).peekable();
    let kind = command.next_if(|word| matches!(&**word, "--docker" | "--k8s"));
    let kind = kind.as_deref().map(|kind| kind.trim_start_matches('-'));
    let (backend, settings, inside) = match kind {
        Some(kind) => {
            let image = command.next().ok_or("name an image")?;
            let settings = match kind {
                "k8s" => mounted_in_pods(&root)?,
                _ => mounted(&root)?,
            };
            let backend = format!("{kind}:{image}");
            (backend, Some((kind, settings)), INSIDE.into())
        }
        None => (
            format!("local:{}", root.display()),
            None,
            root.to_string_lossy(),
        ),
    };
    write_configs(&script, &configs, settings)?;
    let bridge = Bridge::start(command, &backend, &configs)?;
    let mut environment = Environment::default().directory(inside);
    environment.commands = true;
    let played = play(&bridge, &script, &environment).await;
    bridge.end()?;

    let mut expected = Transcript::expected().for_environment(&script, &environment);
    for entry in &mut expected.entries {
        without_data_beside_blocks(&mut entry.text);
    }
    if let Some(difference) = played.difference(&expected) {
        println!("{difference}");
        return Ok(ExitCode::FAILURE);
    }
    let left = std::fs::read_dir(&root)?.count();
    println!(
        "{} steps, as expected; {left} files left",
        played.entries.len()
    );
    Ok(match left {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

fn without_data_beside_blocks(text: &mut String) {
    if text.lines().any(|line| line.starts_with("block: ")) {
        let lines = text.split_inclusive('\n');
        *text = lines.filter(|line| !line.starts_with("data: ")).collect();
    }
}

/// The path of the directory in containers.
const INSIDE: &str = "/workspace";

/// Returns the settings of containers that work in a directory of this machine, as its
/// owner.
fn mounted(root: &Path) -> Result<toml::Table, Error> {
    use std::os::unix::fs::MetadataExt as _;

    let owner = root.metadata()?;
    let user = format!("{}:{}", owner.uid(), owner.gid());
    let volumes = [format!("{}:{INSIDE}", root.display())];
    let mut docker = toml::Table::new();
    docker.insert("user".to_owned(), user.into());
    docker.insert("volumes".to_owned(), volumes.to_vec().into());
    Ok(docker)
}

/// Returns the settings of pods that do the same, on a node that has the image.
fn mounted_in_pods(root: &Path) -> Result<toml::Table, Error> {
    use std::os::unix::fs::MetadataExt as _;

    let owner = root.metadata()?;
    let relax: &[&str] = if owner.uid() == 0 { &["root"] } else { &[] };
    let directory = json!({"path": root.display().to_string()});
    let container = json!({
        "name": "sandbox",
        "volumeMounts": [{"name": "files", "mountPath": INSIDE}],
    });
    let settings = json!({
        "user": format!("{}:{}", owner.uid(), owner.gid()),
        "relax": relax,
        "pull_policy": "never",
        "overlay": {"spec": {
            "volumes": [{"name": "files", "hostPath": directory}],
            "containers": [container],
        }},
    });
    Ok(toml::Table::try_from(settings)?)
}

/// Writes the setup of each conversation as a config file of the program.
fn write_configs(
    script: &Script,
    directory: &Path,
    settings: Option<(&str, toml::Table)>,
) -> Result<(), Error> {
    for setup in &script.conversations {
        let mut config = toml::Table::try_from(&setup.capability)?;
        // The client decides who approves calls.
        config.remove("approver");
        // The transcript contains the data, and says which steps failed.
        let mut mcp = toml::Table::new();
        mcp.insert("structured".to_owned(), true.into());
        mcp.insert("mark_failures".to_owned(), true.into());
        config.insert("mcp".to_owned(), mcp.into());
        if let Some((kind, settings)) = &settings {
            config.insert((*kind).to_owned(), settings.clone().into());
        }
        let file = directory.join(format!("{}.toml", setup.name));
        std::fs::write(file, toml::to_string(&config)?)?;
    }
    Ok(())
}

/// A client in another process.
struct Bridge(Mutex<Process>);

struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Bridge {
    fn start(
        mut command: impl Iterator<Item = String>,
        backend: &str,
        configs: &Path,
    ) -> Result<Self, Error> {
        let program = command.next().ok_or("name the command of a client")?;
        let mut child = Command::new(&program)
            .args(command)
            .arg(backend)
            .arg(configs)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {program}: {error}"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        Ok(Self(Mutex::new(Process {
            child,
            input: input.ok_or("the client has no input")?,
            output: BufReader::new(output.ok_or("the client has no output")?),
        })))
    }

    /// Closes the input and waits for the client to end.
    fn end(self) -> Result<(), Error> {
        let process = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Process {
            mut child, input, ..
        } = process;
        drop(input);
        let status = child.wait()?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("the client ended with {status}").into()),
        }
    }
}

/// The answer of a client.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answered {
    text: String,
    is_error: bool,
    blocks: Vec<Encoded>,
    structured: Option<Value>,
    questions: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Encoded {
    media_type: String,
    base64: String,
}

#[async_trait]
impl Client for Bridge {
    async fn call(&self, call: Call<'_>) -> Outcome {
        let answer = call.answer.map(|answer| match answer {
            YesNo::Yes => "yes",
            YesNo::No => "no",
        });
        let line = json!({
            "conversation": call.conversation,
            "tool": call.tool,
            "arguments": call.arguments,
            "answer": answer,
        });
        let mut process = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match process.ask(&line) {
            Ok(outcome) => outcome,
            Err(error) => Outcome {
                text: format!("the client failed: {error}"),
                is_error: true,
                ..Outcome::default()
            },
        }
    }
}

impl Process {
    fn ask(&mut self, line: &Value) -> Result<Outcome, Error> {
        writeln!(self.input, "{line}")?;
        self.input.flush()?;
        let mut answer = String::new();
        if self.output.read_line(&mut answer)? == 0 {
            return Err("it exited".into());
        }
        let answered: Answered = serde_json::from_str(&answer)?;
        let blocks = answered.blocks.into_iter().map(|block| {
            let data = STANDARD.decode(block.base64)?;
            Ok(BlockSummary::new(block.media_type, &data))
        });
        let structured = match answered.structured {
            None | Some(Value::Null) => None,
            Some(whole) if whole["text"] != answered.text.as_str() => {
                return Err(format!("its data and its text differ: {whole}").into());
            }
            Some(mut whole) => whole.get_mut("data").map(Value::take),
        };
        Ok(Outcome {
            text: answered.text,
            is_error: answered.is_error,
            blocks: blocks.collect::<Result<_, Error>>()?,
            structured,
            questions: answered.questions,
        })
    }
}
