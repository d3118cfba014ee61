//! [`Toolbox`]: the requests to the service's own program in a sandbox.

use std::ops::Range;
use std::time::Duration;

use backend_core::{Error, Quoted, Result};
use bytes::{BufMut as _, Bytes, BytesMut};
use reqwest::Method;
use serde_json::{Value, json};

use crate::account::Account;
use crate::api::{document, encoded};
use crate::client::{self, Call, Repeat};
use crate::refusal::{Refusal, RefusalKind};

/// The time for a file to be sent or received.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(600);
/// The time beyond its own that an executed command gets to be answered.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// The time for a command of a session, and for input to be taken.
const SESSION_TIMEOUT: Duration = Duration::from_secs(60);
/// The size of the largest printed text of a command.
const PRINTED_BYTES: usize = 1024 * 1024;
/// The size of the largest log of a session's command.
pub(crate) const LOG_BYTES: usize = 64 * 1024 * 1024;

/// The toolbox of one sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Toolbox {
    account: Account,
    /// Its address, with the id of the sandbox.
    url: String,
}

/// A command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Executed {
    pub(crate) code: i64,
    pub(crate) printed: String,
}

/// The printed text of a session's command, from its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Toolbox {
    pub(crate) fn new(account: Account, url: String) -> Self {
        Self { account, url }
    }

    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Returns the address of a path of the toolbox.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    async fn call(&self, call: Call) -> Result<Bytes> {
        let call = call.through_proxy();
        self.account.client().call(&call).await
    }

    /// Runs a script with arguments, and waits for it. `repeat` says whether it may run
    /// twice.
    pub(crate) async fn execute(
        &self,
        script: &str,
        arguments: &[&str],
        limit: Duration,
        repeat: Repeat,
    ) -> Result<Executed> {
        let command = command_line(script, arguments);
        let seconds = limit.as_secs().max(1);
        let body = json!({"command": command, "timeout": seconds});
        let call = Call::new(Method::POST, self.at("/process/execute"), repeat)
            .json(&body)
            .timeout(limit + ANSWER_TIMEOUT)
            .limit(PRINTED_BYTES);
        let answer = document(&self.call(call).await?)?;
        let number = |field| answer.get(field).and_then(Value::as_i64);
        let printed = answer.get("result").and_then(Value::as_str);
        Ok(Executed {
            // Old toolboxes have another name for it.
            code: number("exitCode").or_else(|| number("code")).unwrap_or(-1),
            printed: printed.unwrap_or_default().to_owned(),
        })
    }

    /// Writes a file, in place. Missing directories are created.
    pub(crate) async fn upload(&self, path: &str, content: &[u8]) -> Result<()> {
        let boundary = format!("agentbox-{:032x}", fastrand::u128(..));
        let body = form(&boundary, path, content);
        let url = self.at("/files/bulk-upload");
        let call = Call::new(Method::POST, url, Repeat::Safe)
            .form(&boundary, body)
            .timeout(TRANSFER_TIMEOUT);
        self.call(call).await.map(drop).map_err(|error| {
            // The answer to a file that cannot be written is that to a malformed request.
            let is_invalid = |refusal: &&Refusal| refusal.kind == RefusalKind::Invalid;
            let Some(refusal) = Refusal::of(&error).filter(is_invalid) else {
                return error;
            };
            let said = Quoted::new(&refusal.message);
            let text = format!(
                "{path} could not be written in the sandbox, because the toolbox says {said}; see whether its disk is full"
            );
            Error::unavailable(text).with_source(refusal.clone())
        })
    }

    /// Reads a file. `None` if there is none.
    pub(crate) async fn download(&self, path: &str, limit: usize) -> Result<Option<Bytes>> {
        let url = self.at(&format!("/files/download?path={}", encoded(path)));
        let call = Call::get(url).timeout(TRANSFER_TIMEOUT).limit(limit);
        Error::none_if_missing(self.call(call).await)
    }

    /// Reads a part of a file. `None` if there is no file.
    pub(crate) async fn download_part(
        &self,
        path: &str,
        part: Range<u64>,
    ) -> Result<Option<Bytes>> {
        let url = self.at(&format!("/files/download?path={}", encoded(path)));
        let limit = usize::try_from(part.end.saturating_sub(part.start)).unwrap_or(usize::MAX);
        let call = Call::get(url).part(part).limit(limit);
        Error::none_if_missing(self.call(call).await)
    }

    /// Deletes a file or a directory, if it is there.
    pub(crate) async fn delete(&self, path: &str) -> Result<()> {
        let url = self.at(&format!("/files?path={}&recursive=true", encoded(path)));
        let call = Call::new(Method::DELETE, url, Repeat::Safe);
        Error::none_if_missing(self.call(call).await).map(drop)
    }

    /// Returns the directory that its commands start in.
    pub(crate) async fn work_dir(&self) -> Result<Option<String>> {
        let answer = document(&self.call(Call::get(self.at("/work-dir"))).await?)?;
        let directory = answer.get("dir").and_then(Value::as_str);
        Ok(directory.map(str::to_owned))
    }

    fn session(&self, session: &str, path: &str) -> String {
        self.at(&format!("/process/session/{}{path}", encoded(session)))
    }

    /// Creates a session: a shell that runs one command after the other.
    pub(crate) async fn create_session(&self, session: &str) -> Result<()> {
        let url = self.at("/process/session");
        let call = Call::new(Method::POST, url, Repeat::Safe);
        let created = self.call(call.json(&json!({"sessionId": session}))).await;
        match created {
            // Its name is random: an answer was lost, and the request repeated.
            Err(error) if client::status(&error) == Some(409) => Ok(()),
            created => created.map(drop),
        }
    }

    /// Runs a script in a session, and waits for it.
    pub(crate) async fn run_in_session(
        &self,
        session: &str,
        before: &str,
        script: &str,
        arguments: &[&str],
    ) -> Result<Executed> {
        let command = format!("{before}{}", command_line(script, arguments));
        let body = json!({"command": command, "runAsync": false});
        let url = self.session(session, "/exec");
        let call = Call::new(Method::POST, url, Repeat::Unperformed)
            .json(&body)
            .timeout(SESSION_TIMEOUT)
            .limit(PRINTED_BYTES);
        let answer = document(&self.call(call).await?)?;
        let text = |field| answer.get(field).and_then(Value::as_str);
        let code = answer.get("exitCode").and_then(Value::as_i64);
        let printed = text("stdout").or_else(|| text("output"));
        Ok(Executed {
            code: code.unwrap_or(-1),
            printed: printed.unwrap_or_default().to_owned(),
        })
    }

    /// Starts a script in a session, with its input open. Returns the id of the command.
    pub(crate) async fn start_in_session(
        &self,
        session: &str,
        script: &str,
        arguments: &[&str],
    ) -> Result<String> {
        let command = argument_line(script, arguments);
        let body = json!({"command": command, "runAsync": true, "suppressInputEcho": true});
        let url = self.session(session, "/exec");
        let call = Call::new(Method::POST, url, Repeat::Unperformed).json(&body);
        let answer = document(&self.call(call).await?)?;
        let command = answer.get("cmdId").and_then(Value::as_str);
        let command = command.map(str::to_owned);
        command.ok_or_else(|| {
            Error::unavailable("the toolbox started a command without an id; try again")
        })
    }

    /// Sends lines to the input of a command. The toolbox adds the last line end.
    ///
    /// They may arrive twice.
    pub(crate) async fn send_input(&self, session: &str, command: &str, lines: &str) -> Result<()> {
        let url = self.session(session, &format!("/command/{}/input", encoded(command)));
        let call = Call::new(Method::POST, url, Repeat::Safe)
            .json(&json!({"data": lines}))
            .timeout(SESSION_TIMEOUT);
        self.call(call).await.map(drop)
    }

    /// Returns the address of a command's log.
    pub(crate) fn log_url(&self, session: &str, command: &str) -> String {
        self.session(session, &format!("/command/{}/logs", encoded(command)))
    }

    /// Returns the log of a command.
    pub(crate) async fn log(&self, session: &str, command: &str) -> Result<Log> {
        let call = Call::get(self.log_url(session, command)).limit(LOG_BYTES);
        let answer = document(&self.call(call.unnoticed()).await?)?;
        let text = |field: &str| answer.get(field).and_then(Value::as_str).map(str::to_owned);
        let stdout = text("stdout").ok_or_else(|| {
            Error::unsupported(
                "the toolbox does not keep standard output and error apart; update the sandbox's snapshot",
            )
        })?;
        Ok(Log {
            stdout,
            stderr: text("stderr").unwrap_or_default(),
        })
    }

    /// Returns whether a command of a session has ended, or the session is gone.
    pub(crate) async fn has_ended(&self, session: &str, command: &str) -> Result<bool> {
        let url = self.session(session, &format!("/command/{}", encoded(command)));
        let answer = Error::none_if_missing(self.call(Call::get(url).unnoticed()).await)?;
        let Some(answer) = answer else {
            return Ok(true);
        };
        let code = document(&answer)?.get("exitCode").map(Value::is_number);
        Ok(code == Some(true))
    }

    /// Ends a session with everything that it runs.
    pub(crate) async fn delete_session(&self, session: &str) -> Result<()> {
        let url = self.session(session, "");
        let call = Call::new(Method::DELETE, url, Repeat::Safe);
        match self.call(call).await {
            Err(error) if error.is_not_found() => Ok(()),
            deleted => deleted.map(drop),
        }
    }
}

/// Quotes a text for a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns the command line that runs a script with its arguments, as a child of whatever
/// shell the toolbox uses.
fn argument_line(script: &str, arguments: &[&str]) -> String {
    let mut line = format!("sh -c {} sh", quoted(script));
    for argument in arguments {
        line.push(' ');
        line.push_str(&quoted(argument));
    }
    line
}

/// The same, with an empty input: the toolbox gives a command line to its shell as input,
/// which the script would read.
fn command_line(script: &str, arguments: &[&str]) -> String {
    let mut line = argument_line(script, arguments);
    line.push_str(" </dev/null");
    line
}

/// Returns a form with one file.
fn form(boundary: &str, path: &str, content: &[u8]) -> Bytes {
    let mut body = BytesMut::with_capacity(content.len() + path.len() + 512);
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"files[0].path\"\r\n\r\n{path}\r\n--{boundary}\r\nContent-Disposition: form-data; name=\"files[0].file\"; filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\n"
    );
    body.put_slice(head.as_bytes());
    body.put_slice(content);
    body.put_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    body.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_arguments_arrive_as_they_are() {
        assert_eq!(quoted("a'b"), r"'a'\''b'");
        let line = command_line("echo \"$1\"", &["it's", "$HOME"]);
        assert_eq!(line, r#"sh -c 'echo "$1"' sh 'it'\''s' '$HOME' </dev/null"#);
    }

    #[test]
    fn a_form_names_the_path_before_the_file() {
        let body = form("b", "/x/ä", b"con\0tent");
        let text = String::from_utf8_lossy(&body);
        let parts: Vec<_> = text.split("--b").collect();
        assert_eq!(parts.len(), 4);
        assert!(parts[1].ends_with("name=\"files[0].path\"\r\n\r\n/x/ä\r\n"));
        assert!(parts[2].ends_with("octet-stream\r\n\r\ncon\0tent\r\n"));
        assert_eq!(parts[3], "--\r\n");
    }
}
