//! [`LoadedAgent`]: an agent in memory, read once for each version of its file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::SystemTime;

use backend_core::ops::ContentHash;
use backend_core::sync::lock;
use backend_core::{Error, ErrorKind, Quoted, Result};
use bytes::Bytes;

use super::AgentBinary;

/// An agent's content and its hash. Clones share the content.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadedAgent {
    /// The program.
    pub content: Bytes,
    /// The hash of the content, in hexadecimal digits.
    pub digest: String,
}

/// A file's size and time of change.
type Version = (u64, Option<SystemTime>);

impl AgentBinary {
    /// Reads the program and its hash, once for each version of the file. Waits for the
    /// disk on another thread of the current tokio runtime.
    ///
    /// # Errors
    ///
    /// As [`content`](Self::content).
    pub async fn load(&self) -> Result<LoadedAgent> {
        let agent = self.clone();
        let read = tokio::task::spawn_blocking(move || load_now(&agent)).await;
        read.unwrap_or_else(|_| Err(Error::internal("reading the agent panicked")))
    }
}

fn load_now(agent: &AgentBinary) -> Result<LoadedAgent> {
    static KNOWN: Mutex<BTreeMap<PathBuf, (Version, LoadedAgent)>> = Mutex::new(BTreeMap::new());
    let metadata = std::fs::metadata(agent.path()).map_err(|source| {
        let path = agent.path().to_string_lossy();
        let shown = Quoted::new(&path);
        let text = format!("the agent at {shown} cannot be read; build it again");
        Error::new(ErrorKind::Config, text).with_source(source)
    })?;
    let version = (metadata.len(), metadata.modified().ok());
    if let Some((known, loaded)) = lock(&KNOWN).get(agent.path())
        && *known == version
    {
        return Ok(loaded.clone());
    }
    let content = agent.content()?;
    let digest = ContentHash::of(&content).to_string();
    let loaded = LoadedAgent { content, digest };
    let kept = (version, loaded.clone());
    lock(&KNOWN).insert(agent.path().to_owned(), kept);
    Ok(loaded)
}
