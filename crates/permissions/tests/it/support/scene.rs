//! Helpers: a guarded backend, a scripted user, and a call of every method.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use backend_core::ops::{
    Command, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, GlobQuery, GrepQuery,
    LsOptions, ReadOptions, RenameOptions, ResolveOptions, StatOptions, TextOptions, WatchQuery,
    WriteOptions,
};
use backend_core::{Backend, BackendExt as _, Edit, Error, Result, VPath};
use backend_local::{Commands, LocalBackend, Supervisor};
use permissions::approval::{Approver, ApproverError};
use permissions::{Answer, Guarded, Op, Policy, Question, Ruleset};

pub(crate) use backend_testkit::path;

type Reply = Arc<dyn Fn(&Question) -> Answer + Send + Sync>;

/// A fake user that answers questions and records them. Clones share their state.
#[derive(Clone)]
pub(crate) struct Person {
    reply: Reply,
    asked: Arc<Mutex<Vec<Question>>>,
}

impl Person {
    pub(crate) fn who(reply: impl Fn(&Question) -> Answer + Send + Sync + 'static) -> Self {
        Self {
            reply: Arc::new(reply),
            asked: Arc::default(),
        }
    }

    pub(crate) fn yes() -> Self {
        Self::who(|_| Answer::yes())
    }

    pub(crate) fn no() -> Self {
        Self::who(|_| Answer::no())
    }

    /// Takes the questions asked since the last call.
    pub(crate) fn taken(&self) -> Vec<Question> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl fmt::Debug for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Person")
    }
}

#[async_trait]
impl Approver for Person {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        let answer = (self.reply)(question);
        self.asked.lock().unwrap().push(question.clone());
        Ok(answer)
    }
}

pub(crate) fn rules(json: &str) -> Ruleset {
    serde_json::from_str(json).unwrap()
}

pub(crate) fn policy(json: &str) -> Policy {
    let builder = Policy::builder().ruleset(&rules(json), &VPath::root());
    builder.build()
}

pub(crate) fn guard<B: Backend>(backend: B, policy: Policy, person: &Person) -> Guarded<B> {
    Guarded::builder(backend)
        .policy(policy)
        .approver(person.clone())
        .session("test")
        .build()
}

/// Creates a local backend that runs commands, on a temporary directory.
pub(crate) fn local() -> (tempfile::TempDir, LocalBackend) {
    let directory = tempfile::tempdir().unwrap();
    let backend = LocalBackend::builder(directory.path())
        .enable_execute(true)
        .commands(Commands::default().supervisor(Supervisor::None))
        .open()
        .unwrap();
    (directory, backend)
}

pub(crate) fn link(root: &Path, name: &str, text: &str) {
    std::os::unix::fs::symlink(text, root.join(name)).unwrap();
}

/// Every method that touches files.
pub(crate) const METHODS: &[(&str, &[Op])] = &[
    ("resolve", &[Op::Ls]),
    ("stat", &[Op::Ls]),
    ("ls", &[Op::Ls]),
    ("read", &[Op::Read]),
    ("read_text", &[Op::Read]),
    ("write", &[Op::Write]),
    ("edit", &[Op::Read, Op::Edit]),
    ("create_dir", &[Op::Write]),
    ("delete", &[Op::Delete]),
    ("rename", &[Op::Read, Op::Delete, Op::Write, Op::Move]),
    ("copy", &[Op::Read, Op::Write, Op::Copy]),
    ("glob", &[Op::Glob]),
    ("grep", &[Op::Grep, Op::Read]),
    ("watch", &[Op::Ls, Op::Glob]),
];

/// Creates the files that the methods work on.
pub(crate) async fn furnish(backend: &dyn Backend) {
    backend.write_file("/d/a.txt", "needle\n").await.unwrap();
    backend.write_file("/d/b.txt", "needle\n").await.unwrap();
}

/// Calls a method and returns the answer as text.
pub(crate) async fn call(backend: &dyn Backend, method: &str) -> Result<String> {
    let (a, d, new) = (path("/d/a.txt"), path("/d"), path("/d/new"));
    Ok(match method {
        "resolve" => said(backend.resolve(&a, ResolveOptions::default()).await?),
        "stat" => said(backend.stat(&a, StatOptions::default()).await?),
        "ls" => said(backend.ls(&d, LsOptions::default()).await?),
        "read" => said(backend.read(&a, ReadOptions::default()).await?),
        "read_text" => said(backend.read_text(&a, TextOptions::default()).await?),
        "write" => {
            let options = WriteOptions::default();
            said(backend.write(&a, "written\n".into(), options).await?)
        }
        "edit" => {
            let edits = [Edit::new("needle", "pin")];
            said(backend.edit(&a, &edits, EditOptions::default()).await?)
        }
        "create_dir" => said(
            backend
                .create_dir(&new, CreateDirOptions::default())
                .await?,
        ),
        "delete" => said(backend.delete(&a, DeleteOptions::default()).await?),
        "rename" => said(backend.rename(&a, &new, RenameOptions::default()).await?),
        "copy" => said(backend.copy(&a, &new, CopyOptions::default()).await?),
        "glob" => said(backend.glob(GlobQuery::new("*", d)).await?),
        "grep" => said(backend.grep(GrepQuery::new("needle", d)).await?),
        "watch" => said(backend.watch(WatchQuery::new(d)).await.map(drop)?),
        "execute" => {
            let Some(sandbox) = backend.as_sandbox() else {
                return Err(Error::unsupported("no sandbox"));
            };
            said(sandbox.execute(Command::new("touch ran")).await?)
        }
        "shell_start" => {
            let Some(sandbox) = backend.as_sandbox() else {
                return Err(Error::unsupported("no sandbox"));
            };
            let shell = sandbox.shell_start(Command::new("touch ran")).await?;
            let wait = std::time::Duration::from_secs(20);
            said(sandbox.shell_read(&shell.id, wait).await?)
        }
        "stream" => {
            use futures::StreamExt as _;
            let Some(sandbox) = backend.as_sandbox() else {
                return Err(Error::unsupported("no sandbox"));
            };
            let events = sandbox.stream(Command::new("touch ran")).await?;
            said(events.collect::<Vec<_>>().await)
        }
        other => return Err(Error::unsupported(format!("no method {other}"))),
    })
}

fn said(answer: impl fmt::Debug) -> String {
    format!("{answer:?}")
}

/// Returns all files of a backend, for comparison.
pub(crate) async fn snapshot(backend: &dyn Backend) -> Vec<(String, String)> {
    let query = GlobQuery::new("**", VPath::root())
        .hidden(true)
        .ignored(true);
    let mut all = Vec::new();
    for file in backend.glob(query).await.unwrap().files {
        let content = backend.read_to_string(file.path.as_str()).await.unwrap();
        all.push((file.path.to_string(), content));
    }
    all
}
