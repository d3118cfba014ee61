//! Places the agent in a sandbox and starts it: it listens on a port there.
//!
//! A script in a session says whether the agent is there already, checks and starts it, and
//! prints its port. The session ends the agent when it is deleted.

use backend_core::{Error, Quoted, Result};
use sandbox_wire::agent::LoadedAgent;
use sandbox_wire::websocket::Token;

use crate::toolbox::{Toolbox, quoted};

const SCRIPT: &str = include_str!("agent.sh");

/// The start of the agent's path in a sandbox. The rest identifies its content.
const PATH: &str = "/tmp/.agentbox/sandbox-agent-";
/// Digits of the digest in the path.
const DIGITS: usize = 16;

/// The exit codes of programs that could not be run.
const NOT_RUN: [&str; 2] = ["126", "127"];

/// The result of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Launch {
    /// It listens on this port.
    Listening(u16),
    /// It cannot be run there.
    Unfit,
}

/// Returns the path of an agent in a sandbox.
pub(crate) fn path(agent: &LoadedAgent) -> String {
    let digits = agent.digest.get(..DIGITS).unwrap_or(&agent.digest);
    format!("{PATH}{digits}")
}

/// Whether a program is an agent.
pub(crate) fn is_path(program: &str) -> bool {
    program.starts_with(PATH)
}

/// Returns the name of a new session. It is the name of a directory there.
pub(crate) fn new_session() -> String {
    format!("agentbox-{:032x}", fastrand::u128(..))
}

/// Starts an agent in a new session, and sends it there if it is missing.
///
/// # Errors
///
/// `Unavailable`, with the reason, if it cannot be placed or does not listen.
pub(crate) async fn launch(
    toolbox: &Toolbox,
    agent: &LoadedAgent,
    session: &str,
    token: &Token,
    working_dir: &str,
) -> Result<Launch> {
    toolbox.create_session(session).await?;
    let (path, size) = (path(agent), agent.content.len().to_string());
    let directory = format!("/tmp/.agentbox/{session}");
    let arguments = [&*path, &*size, &*agent.digest, &*directory, working_dir];
    // Written by the shell itself: no list of processes shows the token.
    let write_token = format!(
        "(umask 077; mkdir -p {directory} && printf %s {} >{directory}/token)\n",
        quoted(token.as_str())
    );
    let ran = toolbox.run_in_session(session, &write_token, SCRIPT, &arguments);
    let printed = ran.await?.printed;
    if printed.trim() != "send" {
        return launched(&printed, &path);
    }
    let new = format!("{path}.{session}");
    toolbox.upload(&new, &agent.content).await?;
    let [path, size, digest, directory, working_dir] = arguments;
    let arguments = [path, size, digest, directory, working_dir, &*new];
    let ran = toolbox.run_in_session(session, "", SCRIPT, &arguments);
    launched(&ran.await?.printed, path)
}

/// Reads the answer of the script.
fn launched(printed: &str, path: &str) -> Result<Launch> {
    let (first, rest) = printed.split_once('\n').unwrap_or((printed, ""));
    let mut words = first.split_whitespace();
    let said = Quoted::new(rest.trim());
    match (words.next(), words.next()) {
        (Some("port"), Some(port)) => {
            let port = port.parse().ok().filter(|port| *port > 0);
            let port = port.ok_or_else(|| {
                Error::unavailable("the agent in the sandbox listens on no valid port; try again")
            })?;
            Ok(Launch::Listening(port))
        }
        (Some("failed"), Some(code)) if NOT_RUN.contains(&code) => {
            tracing::debug!("the agent was not run: {said}");
            Ok(Launch::Unfit)
        }
        (Some("failed"), Some(code)) => Err(Error::unavailable(format!(
            "the agent in the sandbox ended with code {} and said {said}; see whether its user may use the working directory",
            Quoted::new(code)
        ))),
        (Some("damaged"), _) => Err(Error::unavailable(
            "the agent arrived damaged in the sandbox; try again",
        )),
        (Some("unwritable"), _) => Err(Error::unavailable(format!(
            "the agent could not be written to {path} in the sandbox; see whether its disk is full"
        ))),
        (Some("late"), _) => Err(Error::unavailable(
            "the agent in the sandbox did not listen in 10 s; see whether the sandbox is overloaded",
        )),
        _ => Err(Error::unavailable(format!(
            "the shell in the sandbox printed {} instead of starting the agent; check that it runs `sh` as it is given",
            Quoted::new(printed.trim())
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use backend_core::ErrorKind;
    use backend_core::ops::ContentHash;

    use super::*;

    /// Programs that stand for the agent.
    const LISTENS: &str = "#!/bin/sh\necho 4711 >\"$2.port\"\n";
    const FAILS: &str = "#!/bin/sh\necho 'no such user' >&2\nexit 3\n";

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            std::fs::create_dir(place.path("run")).unwrap();
            place
        }

        fn path(&self, name: &str) -> String {
            self.0.path().join(name).to_str().unwrap().to_owned()
        }

        /// Runs the script. `content` is that of the expected agent.
        fn run(&self, content: &str, new: &str) -> String {
            let digest = ContentHash::of(content.as_bytes()).to_string();
            let (agent, run) = (self.path("agent"), self.path("run"));
            let size = content.len().to_string();
            let arguments = [&*agent, &*size, &*digest, &*run, "/", new];
            let mut command = Command::new("sh");
            command.args(["-c", SCRIPT, "sh"]).args(arguments);
            let ended = command.output().unwrap();
            String::from_utf8(ended.stdout).unwrap()
        }

        fn write(&self, name: &str, content: &str) -> String {
            let path = self.path(name);
            std::fs::write(&path, content).unwrap();
            path
        }
    }

    #[test]
    fn an_agent_is_sent_once() {
        let place = Place::new();
        assert_eq!(place.run(LISTENS, ""), "send\n");
        let new = place.write("sent", LISTENS);
        assert_eq!(place.run(LISTENS, &new), "port 4711\n");
        assert!(!Path::new(&new).exists());
        assert_eq!(place.run(LISTENS, ""), "port 4711\n");
        place.write("agent", "#!/bin/sh\necho 4712 >\"$2.port\"\n");
        assert_eq!(place.run(LISTENS, ""), "send\n", "it was changed");
    }

    #[test]
    fn a_damaged_agent_is_not_run() {
        let place = Place::new();
        let new = place.write("sent", &LISTENS.replace("4711", "4712"));
        assert_eq!(place.run(LISTENS, &new), "damaged\n");
        assert!(!Path::new(&place.path("agent")).exists());
    }

    #[test]
    fn why_an_agent_does_not_listen_is_told() {
        let place = Place::new();
        let new = place.write("sent", FAILS);
        let printed = place.run(FAILS, &new);
        assert_eq!(printed, "failed 3\nno such user\n");
        let error = launched(&printed, "/a").unwrap_err();
        assert!(error.message().contains("no such user"), "{error}");
        let place = Place::new();
        let content = "\x7fELF of another processor";
        let new = place.write("sent", content);
        let printed = place.run(content, &new);
        assert_eq!(
            launched(&printed, "/a").unwrap(),
            Launch::Unfit,
            "{printed}"
        );
    }

    #[test]
    fn answers_that_make_no_sense_are_errors() {
        for printed in [
            "",
            "port",
            "port 0",
            "port 70000",
            "port x",
            "late\n",
            "hello\nport 7",
        ] {
            let error = launched(printed, "/a").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{printed}");
        }
        assert_eq!(launched("port 7\n", "/a").unwrap(), Launch::Listening(7));
    }
}
