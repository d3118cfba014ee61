//! Checks that the transcripts in `docs/tools.md` are accurate.
//!
//! A text block after `<!-- transcript: SCENE -->` holds calls, each on a line that
//! begins with `> ` and is followed by its result. The calls are made again here. With
//! `UPDATE_TRANSCRIPTS=1` in the environment the page is rewritten instead.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use backend_core::Backend;
use backend_local::LocalBackend;
use console_tools::{Chat, EditFormat, Options, Toolset, ToolsetBuilder};
use permissions::{Policy, Preset};
use tempfile::TempDir;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tools.md");

/// The marker before the fence of a transcript.
const MARK: &str = "<!-- transcript: ";
const OTHER_MARK: &str = "<!-- replayed by the tests of the program: a terminal -->";

/// Maximum number of consecutive lines with only a number. Longer runs are abridged.
const ROW: usize = 4;

const TODO: &str = "pub fn add(a: i32, b: i32) -> i32 {\n    todo!() // TODO: add them\n}\n";
const DONE: &str = "pub fn add(a: i64, b: i64) -> i64 {\n    a + b\n}\n";

/// A directory and a conversation on it.
struct Scene {
    directory: TempDir,
    chat: Chat,
}

impl Scene {
    fn new(
        source: &str,
        set: impl FnOnce(&mut Options),
        rules: fn(ToolsetBuilder) -> ToolsetBuilder,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (path, content) in [
            ("src/lib.rs", source),
            (".env.example", "FIXME=1\n"),
            (".gitignore", "target/\n"),
            ("target/notes.txt", "FIXME\n"),
        ] {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let local = LocalBackend::builder(directory.path()).enable_execute(true);
        let backend: Arc<dyn Backend> = Arc::new(local.open().unwrap());
        let mut options = Options::default();
        set(&mut options);
        let toolset = rules(Toolset::builder(backend).options(options));
        let chat = toolset.build().unwrap().conversation("c");
        Self { directory, chat }
    }

    async fn named(name: &str) -> Self {
        let allow: fn(ToolsetBuilder) -> ToolsetBuilder =
            |builder| builder.policy(Policy::allow_all());
        match name {
            "first steps" => Self::new(TODO, |_| {}, allow),
            "by line" => Self::new(
                DONE,
                |options| options.edit_format = EditFormat::Hashline,
                allow,
            ),
            "long output" => Self::new(TODO, |_| {}, allow),
            "goes on" => Self::new(TODO, |options| options.timeout_to_background = true, allow),
            "changed meanwhile" => {
                let scene = Self::new(TODO, |_| {}, allow);
                let read = serde_json::json!({"path": "src/lib.rs"});
                assert!(scene.chat.call("read_file", read).await.is_success());
                let changed = TODO.replace("i32", "i64");
                std::fs::write(scene.directory.path().join("src/lib.rs"), changed).unwrap();
                scene
            }
            "asked" | "nobody to ask" => Self::new(
                DONE,
                |_| {},
                |builder| builder.ruleset(Preset::Default.ruleset()),
            ),
            other => panic!("there is no scene {other:?}"),
        }
    }

    /// Makes a call and returns the question if the scene is about questions, else the
    /// reply.
    async fn call(&self, name: &str, tool: &str, arguments: &str) -> String {
        if name == "asked" {
            let preview = self.chat.preview(tool, arguments).await;
            return preview.questions().first().expect("it asks").to_string();
        }
        abridged(&self.chat.call(tool, arguments).await.text)
    }
}

/// Abridges long runs of numbers.
fn abridged(text: &str) -> String {
    let is_number = |line: &&str| line.parse::<u64>().is_ok();
    let lines: Vec<&str> = text.lines().collect();
    let mut shown = Vec::new();
    let mut rest = lines.as_slice();
    while let Some(first) = rest.first() {
        let row = rest.iter().take_while(|line| is_number(line)).count();
        if row > ROW {
            shown.extend([rest[0], rest[1], "…", rest[row - 1]]);
            rest = &rest[row..];
        } else {
            shown.push(first);
            rest = &rest[1..];
        }
    }
    shown.join("\n")
}

/// Makes the calls of a block again.
async fn replayed(name: &str, block: &str) -> String {
    let scene = Scene::named(name).await;
    let mut text = String::new();
    for line in block.lines() {
        let Some((tool, arguments)) = line
            .strip_prefix("> ")
            .and_then(|call| call.split_once(' '))
        else {
            continue;
        };
        let told = scene.call(name, tool, arguments).await;
        let gap = if text.is_empty() { "" } else { "\n" };
        writeln!(text, "{gap}{line}\n{told}").unwrap();
    }
    assert!(!text.is_empty(), "{name}: there are no calls");
    scene.chat.close().await.unwrap();
    text
}

/// Makes all calls of the page again. Returns the new page and the number of
/// transcripts.
async fn renewed(page: &str) -> (String, usize) {
    let mut parts = page.split(MARK);
    let mut renewed = parts.next().unwrap().to_owned();
    let mut count = 0;
    for part in parts {
        let (name, rest) = part
            .split_once(" -->\n```text\n")
            .expect("a fence follows the mark");
        let (block, after) = rest.split_once("\n```\n").expect("the block ends");
        let mut text = replayed(name, block).await;
        // The command has a second to print a word, and the call five to see that it
        // still runs. On a busy machine that may be too little, so it is retried.
        let in_time = |text: &str| text.contains("continues as") && text.ends_with("begun\n");
        for _ in 0..20 {
            if name != "goes on" || in_time(&text) {
                break;
            }
            text = replayed(name, block).await;
        }
        write!(renewed, "{MARK}{name} -->\n```text\n{text}```\n{after}").unwrap();
        count += 1;
    }
    (renewed, count)
}

#[tokio::test]
async fn local_runs_are_what_the_guide_shows() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (renewed, count) = renewed(&page).await;
    assert_eq!(count, 7);
    // A transcript without a marker would not be checked at all. Terminals need the
    // program, whose own tests replay their transcript.
    let calls = |text: &str| text.lines().filter(|line| line.starts_with("> ")).count();
    let (before, others) = page.split_once(OTHER_MARK).unwrap();
    let (_, after) = others.split_once("\n```\n").unwrap();
    let marked: usize = page
        .split(MARK)
        .skip(1)
        .map(|part| calls(part.split("\n```\n").next().unwrap()))
        .sum();
    assert_eq!(
        calls(before) + calls(after),
        marked,
        "some calls are in no transcript"
    );
    if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
        std::fs::write(Path::new(PAGE), renewed).unwrap();
    } else {
        let differs = page
            .lines()
            .zip(renewed.lines())
            .find(|(page, now)| page != now);
        assert_eq!(
            differs, None,
            "run this test with UPDATE_TRANSCRIPTS=1 and look at the change"
        );
        assert!(page == renewed);
    }
}
