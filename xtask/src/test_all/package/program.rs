//! Makes a model's tool calls on a directory, in a project with only the packages.

use std::sync::Arc;

use backend_core::BackendExt as _;
use backend_local::LocalBackend;
use console_tools::{FailureClass, Toolset};
use permissions::Ruleset;

const RULES: &str = r#"
default = "allow"

[write]
default = "allow"
rules = [{ pattern = "**/.env", action = "deny", description = "a secret" }]
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tokio::runtime::Runtime::new()?.block_on(work())
}

async fn work() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::temp_dir().join(format!("agentbox-package-{}", std::process::id()));
    std::fs::create_dir(&directory)?;
    let done = calls(&directory).await;
    std::fs::remove_dir_all(&directory)?;
    done
}

async fn calls(directory: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    let files = Arc::new(LocalBackend::builder(directory).open()?);
    let toolset = Toolset::builder(Arc::clone(&files) as _)
        .ruleset(Ruleset::from_toml(RULES)?)
        .build()?;
    let chat = toolset.conversation("package");
    let written = r#"{"path": "plan.md", "content": "- [ ] release\n"}"#;
    assert_eq!(chat.call("write_file", written).await.failure, None);
    let edited = r#"{"path": "plan.md", "old_string": "[ ]", "new_string": "[x]"}"#;
    assert_eq!(chat.call("edit_file", edited).await.failure, None);
    let found = r#"{"pattern": "\\[x\\]", "output_mode": "content"}"#;
    let found = chat.call("grep", found).await;
    assert!(found.text.contains("- [x] release"), "{}", found.text);
    let secret = r#"{"path": ".env", "content": "TOKEN=1"}"#;
    let refused = chat.call("write_file", secret).await;
    assert_eq!(
        refused.failure,
        Some(FailureClass::Refused),
        "{}",
        refused.text
    );
    assert!(!directory.join(".env").exists());
    assert_eq!(files.read_to_string("plan.md").await?, "- [x] release\n");
    Ok(())
}
