//! Delivers the agent and the directories its user needs into a container.

use std::sync::Arc;

use backend_core::ops::ContentHasher;
use backend_core::{Error, Quoted, Result};
use bollard::models::ExecConfig;
use bollard::query_parameters::ContainerArchiveInfoOptionsBuilder;
use bytes::Bytes;
use futures::StreamExt as _;
use sandbox_wire::Spawn;
use sandbox_wire::agent::AgentBinary;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::OnceCell;

use super::Core;
use super::exec::Exec;
use super::state::Pending;
use crate::archive::{Archive, PROGRAM};
use crate::check;
use crate::daemon;
use crate::spec;

/// Path prefix of an uploaded agent. The rest of the name identifies the agent.
const UPLOADED: &str = "/.agentbox/sandbox-agent-";
/// The same for a read-only root, where `/tmp` is in memory.
const IN_MEMORY: &str = "/tmp/.agentbox-agent-";
/// Writes a program from standard input, completely or not at all.
const RECEIVE: &str =
    r#"umask 022; cat > "$1.part" && chmod 755 "$1.part" && mv -f "$1.part" "$1""#;
/// Bytes kept of the output of a failed delivery.
const STDERR_BYTES: usize = 400;

impl Core {
    pub(super) fn is_agent(&self, program: &Spawn) -> bool {
        program.argv.first().is_some_and(|path| {
            spec::is_ours(path) || path.starts_with(UPLOADED) || path.starts_with(IN_MEMORY)
        })
    }

    /// Places the agent unless it is there, and returns the command line to run it.
    pub(super) async fn place_agent(&self) -> Result<Vec<String>> {
        let image = self.state().architecture.clone();
        let agent = self.config.agents.require(&image, "container", "image")?;
        let stamp = stamp(agent).await?;
        let (is_bound, uploaded, read_only) = {
            let state = self.state();
            let is_bound = state.bound.as_ref() == Some(&stamp);
            (is_bound, state.uploaded.clone(), state.read_only)
        };
        let path = match uploaded {
            _ if is_bound => spec::BOUND_AGENT.to_owned(),
            Some(path) => path,
            None if read_only => {
                self.send_agent(agent, format!("{IN_MEMORY}{stamp}"))
                    .await?
            }
            None => self.upload_agent(agent, uploaded_path(&stamp)).await?,
        };
        let directory = self.config.working_dir.to_string();
        Ok(vec![path, "--directory".to_owned(), directory])
    }

    async fn upload_agent(&self, agent: &AgentBinary, path: String) -> Result<String> {
        self.provision().await?;
        let client = self.config.daemon.client();
        let options = ContainerArchiveInfoOptionsBuilder::default()
            .path(&path)
            .build();
        let there = client.get_container_archive_info(&self.config.name, Some(options));
        match there.await {
            Ok(_) => {}
            Err(error) if daemon::is_missing(&error) => {
                let mut archive = Archive::new();
                archive.file(&path, PROGRAM, &content(agent).await?)?;
                self.unpack(archive.finish()?).await?;
            }
            Err(error) => return Err(self.explain(error).await),
        }
        self.state().uploaded = Some(path.clone());
        Ok(path)
    }

    /// Sends the agent through a shell, because archives cannot be uploaded into a
    /// read-only root.
    async fn send_agent(&self, agent: &AgentBinary, path: String) -> Result<String> {
        let line = ["sh", "-c", RECEIVE, "sh", &path];
        let config = ExecConfig {
            attach_stdin: Some(true),
            cmd: Some(line.iter().map(|&part| part.to_owned()).collect()),
            working_dir: Some("/".to_owned()),
            ..ExecConfig::default()
        };
        let Exec {
            id,
            mut output,
            mut input,
        } = self.start_exec(config).await?;
        let content = content(agent).await?;
        // If the receiver died, its output and exit code show it.
        let send = async {
            let _ = input.write_all(&content).await;
            let _ = input.shutdown().await;
        };
        let mut stderr = Vec::new();
        let listen = async {
            while let Some(Ok(piece)) = output.next().await {
                let room = STDERR_BYTES.saturating_sub(stderr.len());
                stderr.extend(piece.into_bytes().iter().take(room));
            }
        };
        futures::join!(send, listen);
        let ended = self.config.daemon.client().inspect_exec(&id).await;
        let ended = ended.map_err(|error| self.config.daemon.error(error))?;
        if ended.exit_code == Some(0) {
            self.state().uploaded = Some(path.clone());
            return Ok(path);
        }
        Err(Error::unavailable(format!(
            "the agent could not be written to {path} in a container with a read-only root: {}; let the daemon mount it, or give a tmpfs at /tmp",
            Quoted::new(String::from_utf8_lossy(&stderr).trim())
        )))
    }

    /// Unpacks the pending archive, once.
    pub(super) async fn provision(&self) -> Result<()> {
        let Some(pending) = self.state().pending.clone() else {
            return Ok(());
        };
        let unpack = || self.unpack(pending.archive.clone());
        pending.done.get_or_try_init(unpack).await?;
        let mut state = self.state();
        state.pending.take_if(|now| Arc::ptr_eq(now, &pending));
        Ok(())
    }

    /// Sets the archive to unpack before any operation in the container.
    pub(super) fn set_pending(&self, archive: Option<Bytes>) {
        self.state().pending = archive.map(|archive| {
            Arc::new(Pending {
                archive,
                done: OnceCell::new(),
            })
        });
    }

    async fn unpack(&self, archive: Bytes) -> Result<()> {
        let unpacked = self.config.daemon.unpack(&self.config.name, archive).await;
        self.explained(unpacked).await
    }
}

/// Returns the path that an agent with this stamp is uploaded to.
pub(super) fn uploaded_path(stamp: &str) -> String {
    format!("{UPLOADED}{stamp}")
}

/// Identifies an agent without reading its content: another path, size or modification
/// time is another agent.
pub(super) async fn stamp(agent: &AgentBinary) -> Result<String> {
    let metadata = tokio::fs::metadata(agent.path()).await.map_err(|source| {
        let path = agent.path().to_string_lossy();
        let shown = Quoted::new(&path);
        let message = format!("the agent at {shown} cannot be read; build it again");
        check::wrong(message).with_source(source)
    })?;
    let modified = metadata.modified().ok();
    let since = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let nanos = since.unwrap_or_default().as_nanos();
    let mut hasher = ContentHasher::new();
    hasher.update(agent.path().as_os_str().as_encoded_bytes());
    hasher.update(&metadata.len().to_le_bytes());
    hasher.update(&nanos.to_le_bytes());
    let mut stamp = hasher.finish().to_string();
    stamp.truncate(16);
    Ok(stamp)
}

pub(super) async fn content(agent: &AgentBinary) -> Result<Bytes> {
    let agent = agent.clone();
    let read = tokio::task::spawn_blocking(move || agent.content()).await;
    read.unwrap_or_else(|_| Err(Error::internal("reading the agent panicked")))
}
