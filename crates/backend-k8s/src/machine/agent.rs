//! The agent of a pod: which one it is, and where.

use std::time::Duration;

use backend_core::{Error, Result, VPath};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use sandbox_wire::agent::AgentBinary;
use sandbox_wire::{OutputChunk, Spawn};
use tokio::time::timeout;

use super::Core;
use crate::deliver;
use crate::exec::exec;
use crate::spec;

/// The directory for the agent in pods that have no volume for it.
const TEMPORARY: &str = "/tmp";

/// Bytes of the name of a processor.
const NAME_BYTES: usize = 64;
/// The time for a program that prints it.
const UNAME_TIMEOUT: Duration = Duration::from_secs(10);

/// The names of processors as `uname` prints them and as images have them, where they
/// differ.
const PROCESSORS: [(&str, &str); 3] = [
    ("x86_64", "amd64"),
    ("aarch64", "arm64"),
    ("loongarch64", "loong64"),
];

impl Core {
    /// Whether an init container has brought the agent into the pod that is used.
    fn has_agent(&self) -> bool {
        self.state().pod.as_ref().is_some_and(|pod| pod.has_agent)
    }

    /// Returns why no agent can serve the running pod; `None` if one can.
    pub(super) async fn missing_agent(&self) -> Result<Option<&'static str>> {
        if self.has_agent() {
            return Ok(None);
        }
        if self.config.agents.is_empty() {
            return Ok(Some(
                "there is no sandbox-agent; `agentbox agent install` makes one",
            ));
        }
        let node = self.architecture().await?;
        let missing = self.config.agents.fitting(&node).is_none();
        Ok(missing.then_some(
            "there is no sandbox-agent for the node's processor; `agentbox agent install` makes one",
        ))
    }

    /// Returns the command line of the agent.
    pub(super) async fn agent_command(&self) -> Result<Vec<String>> {
        let path = if self.has_agent() {
            spec::agent_path()
        } else {
            let agent = self.fitting_agent().await?;
            let path = deliver::agent_path(&agent, &self.agent_directory()?).await?;
            self.state().agent = Some((path.clone(), agent));
            path
        };
        let directory = self.config.working_dir.to_string();
        Ok(vec![path, "--directory".to_owned(), directory])
    }

    /// Returns the agent that a program is, if it still has to be delivered, and whether
    /// it is the agent at all.
    pub(super) fn agent_of(&self, program: &Spawn) -> (Option<AgentBinary>, bool) {
        let Some(first) = program.argv.first() else {
            return (None, false);
        };
        let state = self.state();
        match &state.agent {
            Some((path, agent)) if path == first => ((!state.placed).then(|| agent.clone()), true),
            _ => (None, *first == spec::agent_path()),
        }
    }

    pub(super) fn agent_directory(&self) -> Result<VPath> {
        let directory = match self.config.foreign {
            true => TEMPORARY,
            false => spec::AGENT_DIRECTORY,
        };
        Ok(VPath::parse(directory)?)
    }

    /// Returns the agent for the node's processor. If there is only one, it is taken to
    /// fit: to find out would take as long as to start it.
    async fn fitting_agent(&self) -> Result<AgentBinary> {
        let architecture = match self.config.agents.len() {
            0 | 1 => String::new(),
            _ => self.architecture().await?,
        };
        let agent = self.config.agents.require(&architecture, "pod", "node")?;
        Ok(agent.clone())
    }

    /// Returns the processor of the running pod's node. Empty if it is not known.
    async fn architecture(&self) -> Result<String> {
        let known = self.state().architecture.clone();
        if !known.is_empty() {
            return Ok(known);
        }
        let found = match self.ask_architecture().await {
            Ok(found) => found,
            Err(error) => return Err(self.explain(error).await),
        };
        self.state().architecture.clone_from(&found);
        Ok(found)
    }

    /// Asks the image's own `uname`. If there is none, its processor is unknown.
    async fn ask_architecture(&self) -> Result<String> {
        let program = ["uname", "-m"].map(str::to_owned);
        let process = exec(&self.config.cluster, &self.config.name, &program, false).await?;
        let printed = first_bytes(process.output).await?;
        let printed = String::from_utf8_lossy(&printed);
        let name = printed.trim();
        let known = PROCESSORS.iter().find(|(theirs, _)| *theirs == name);
        Ok(known.map_or(name, |(_, ours)| ours).to_owned())
    }
}

/// Reads the beginning of a program's output, until it ends. Programs of a pod may never
/// end.
async fn first_bytes(mut output: BoxStream<'static, Result<OutputChunk>>) -> Result<Vec<u8>> {
    let mut printed = Vec::new();
    let read = async {
        while let Some(piece) = output.next().await {
            if let OutputChunk::Stdout(bytes) = piece? {
                let room = NAME_BYTES.saturating_sub(printed.len());
                printed.extend(bytes.iter().take(room));
            }
        }
        Ok(())
    };
    let read = timeout(UNAME_TIMEOUT, read).await;
    let late = |_| {
        let seconds = UNAME_TIMEOUT.as_secs();
        Err(Error::unavailable(format!(
            "`uname` in the pod did not end in {seconds} s; give one agent only, or use another image"
        )))
    };
    read.unwrap_or_else(late)?;
    Ok(printed)
}

#[cfg(test)]
mod tests {
    use backend_core::ErrorKind;
    use futures::stream;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_program_that_never_ends_is_not_waited_for() {
        let chunk = || Ok(OutputChunk::Stdout("x86_64\n".into()));
        let ended = stream::iter([chunk()]);
        assert_eq!(first_bytes(ended.boxed()).await.unwrap(), b"x86_64\n");
        let silent = stream::iter([chunk()]).chain(stream::pending());
        let error = first_bytes(silent.boxed()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let flood = stream::repeat_with(chunk).then(|chunk| async {
            tokio::time::sleep(UNAME_TIMEOUT / 100).await;
            chunk
        });
        let error = first_bytes(flood.boxed()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}
