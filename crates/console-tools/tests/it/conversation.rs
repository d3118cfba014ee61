//! Plays the scripted conversation on every backend and with every way to build a
//! toolset.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use backend_core::{Backend, Result};
use backend_local::{LocalBackend, NameSpace};
use backend_state::StateBackend;
use console_testkit::{Chats, Environment, Script, Transcript, play};
use console_tools::{Caller, Resolver};
use permissions::tool::Tool;

fn local(root: &Path, names: NameSpace) -> (Arc<dyn Backend>, Environment) {
    let root = root.canonicalize().unwrap();
    let backend = LocalBackend::builder(&root)
        .names(names)
        .enable_execute(true);
    let backend: Arc<dyn Backend> = Arc::new(backend.open().unwrap());
    let environment = Environment::of(backend.as_ref()).directory(root.to_str().unwrap());
    assert!(environment.commands, "commands run here");
    (backend, environment)
}

/// Plays the steps that an environment allows and compares the transcript with the
/// expected one.
async fn check(chats: &Chats, script: &Script, environment: &Environment) {
    let played = play(chats, script, environment).await;
    let expected = Transcript::expected().for_environment(script, environment);
    if let Some(difference) = played.difference(&expected) {
        panic!("the transcript is another one:\n{difference}");
    }
}

#[tokio::test]
async fn on_a_local_directory_twice() {
    let directory = tempfile::tempdir().unwrap();
    let script = Script::bundled().unwrap();
    for _ in 0..2 {
        let (backend, environment) = local(directory.path(), NameSpace::default());
        script.seed(backend.as_ref()).await.unwrap();
        let chats = Chats::new(&script, &backend).unwrap();
        check(&chats, &script, &environment).await;
        let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[tokio::test]
async fn on_a_state_without_commands() {
    let backend: Arc<dyn Backend> = Arc::new(StateBackend::new());
    let script = Script::bundled().unwrap();
    script.seed(backend.as_ref()).await.unwrap();
    let environment = Environment::of(backend.as_ref());
    assert!(!environment.commands, "nothing runs here");
    let chats = Chats::new(&script, &backend).unwrap();
    check(&chats, &script, &environment).await;
}

#[derive(Debug)]
struct Same(Arc<dyn Backend>);

#[async_trait]
impl Resolver for Same {
    async fn resolve(&self, _: &Caller) -> Result<Arc<dyn Backend>> {
        Ok(Arc::clone(&self.0))
    }
}

#[tokio::test]
async fn on_the_backend_that_a_resolver_picks() {
    let directory = tempfile::tempdir().unwrap();
    let script = Script::bundled().unwrap();
    let (backend, environment) = local(directory.path(), NameSpace::default());
    script.seed(backend.as_ref()).await.unwrap();
    let resolver: Arc<dyn Resolver> = Arc::new(Same(backend));
    let chats = Chats::resolving(&script, &resolver).unwrap();
    check(&chats, &script, &environment).await;
}

/// A working directory other than the root, as in a container.
#[tokio::test]
async fn in_another_working_directory() {
    let directory = tempfile::tempdir().unwrap();
    let script = Script::bundled().unwrap();
    let (backend, environment) = local(
        directory.path(),
        NameSpace::Host {
            allowed: Vec::new(),
        },
    );
    assert!(environment.directories.iter().all(|path| path != "/"));
    script.seed(backend.as_ref()).await.unwrap();
    let chats = Chats::new(&script, &backend).unwrap();
    check(&chats, &script, &environment).await;
}

/// Checks that the conversation is complete enough to be worth replaying.
#[test]
fn the_conversation_has_every_tool_and_enough_failures() {
    let script = Script::bundled().unwrap();
    let called: BTreeSet<&str> = script.steps.iter().map(|step| &*step.tool).collect();
    for tool in Tool::ALL.iter().filter(|tool| **tool != Tool::ListFiles) {
        assert!(called.contains(tool.name()), "{}", tool.name());
    }
    let expected = Transcript::expected();
    assert_eq!(expected.entries.len(), script.steps.len());
    let count = |line: &str| {
        let has = |text: &str| text.lines().any(|one| one == line);
        expected
            .entries
            .iter()
            .filter(|entry| has(&entry.text))
            .count()
    };
    assert!(count("error") >= 12 && count("ok") >= 45);
    for line in ["asked: 1 time, yes", "asked: 1 time, no"] {
        assert!(count(line) > 0, "{line}");
    }
    let text = expected.to_string();
    assert!(text.contains("block: image/png") && text.contains("block: application/pdf"));
    assert!(!text.contains("no question expected"));
}
