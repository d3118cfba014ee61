//! A conversation in the `filesystem` profile, with mounts of every kind.

use std::sync::Arc;

use backend_core::BackendExt as _;
use backend_mounts::{MountConfig, Scope};
use backend_state::StateBackend;
use console_tools::{Chat, Options, Profile, Toolset};
use permissions::{Policy, PolicyBuilder};
use serde_json::{Value, json};

use super::approver::RecordingApprover;

const MOUNTS: &str = r#"
[[mounts]]
host_path = "/srv/docs"
mount_point = "/docs"
suffixes = [".md", ".txt"]
max_file_bytes = 2000

[[mounts]]
host_path = "/srv/user"
mount_point = "/user"
mode = "rw"
max_file_bytes = 300000
read_approval = true

[[mounts]]
host_path = "/srv/free"
mount_point = "/free"
mode = "rw"
write_approval = false
"#;

pub(crate) async fn store() -> StateBackend {
    let backend = StateBackend::new();
    for (path, content) in [
        ("/docs/a.md", "about\n"),
        ("/docs/big.md", &*"x".repeat(2001)),
        ("/docs/a.bin", "\n"),
        ("/user/b.md", "one two two\n"),
        ("/user/crlf.md", "one\r\ntwo\r\n"),
        ("/user/empty.md", ""),
        ("/user/long.txt", &*"0123456789".repeat(28_000)),
        ("/user/sub/c.md", "c\n"),
        ("/free/f.md", "free\n"),
        ("/secret/s.md", "s\n"),
    ] {
        backend.write_file(path, content).await.unwrap();
    }
    backend
}

pub(crate) fn policy() -> PolicyBuilder {
    let mounts = MountConfig::from_toml(MOUNTS).unwrap();
    Policy::builder().layer(Scope::new(mounts.build().unwrap()))
}

pub(crate) fn chat_under(
    policy: Policy,
    backend: &StateBackend,
    person: Option<&RecordingApprover>,
) -> Chat {
    let mut options = Options::default();
    options.profile = Profile::Filesystem;
    let mut builder = Toolset::builder(Arc::new(backend.clone()))
        .options(options)
        .policy(policy);
    if let Some(person) = person {
        builder = builder.approver(person.clone());
    }
    builder.build().unwrap().conversation("c")
}

pub(crate) fn chat(backend: &StateBackend, person: &RecordingApprover) -> Chat {
    chat_under(policy().build(), backend, Some(person))
}

pub(crate) fn from_to(source: &str, destination: &str) -> Value {
    json!({"source": source, "destination": destination})
}

pub(crate) fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old_text": old, "new_text": new})
}
