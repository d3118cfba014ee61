//! Plays the conversation on a local directory and writes the result as the expected
//! transcript: `cargo run -p console-testkit --example bless`.

use std::path::Path;
use std::sync::Arc;

use backend_core::Backend;
use backend_local::LocalBackend;
use console_testkit::{Chats, Environment, Script, play};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let root = directory.path().canonicalize()?;
    let backend = LocalBackend::builder(&root).enable_execute(true).open()?;
    let backend: Arc<dyn Backend> = Arc::new(backend);
    let script = Script::bundled()?;
    script.seed(backend.as_ref()).await?;
    let environment = Environment::of(backend.as_ref()).directory(root.to_string_lossy());
    let transcript = play(&Chats::new(&script, &backend)?, &script, &environment).await;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/transcript.txt");
    std::fs::write(file, transcript.to_string())?;
    Ok(())
}
