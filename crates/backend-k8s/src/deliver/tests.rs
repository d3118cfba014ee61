//! Agents that are placed by a real shell, and shells that do not place them.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use backend_core::ErrorKind;
use backend_core::ops::ContentHash;
use futures::{FutureExt as _, future};
use tokio::process::Command;
use tokio_util::io::ReaderStream;

use super::*;

/// A program that stands for the agent: it prints its arguments and copies its input.
const AGENT: &[u8] = b"#!/bin/sh\nprintf 'hello %s\\n' \"$1\"\nexec cat\n";

/// Runs the receiver as a pod would.
fn shell(path: &Path, content: &[u8], digest: &str) -> Process {
    let mut child = Command::new("sh")
        .args(["-c", RECEIVE, "sh"])
        .arg(path)
        .args([&*content.len().to_string(), digest, "you"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = ReaderStream::new(child.stdout.take().unwrap());
    let stdout = stdout.map(|bytes| Ok(OutputChunk::Stdout(bytes.unwrap())));
    let stderr = ReaderStream::new(child.stderr.take().unwrap());
    let stderr = stderr.map(|bytes| Ok(OutputChunk::Stderr(bytes.unwrap())));
    let stdin: Pin<Box<dyn AsyncWrite + Send>> = Box::pin(child.stdin.take().unwrap());
    let exit = async move { Ok(child.wait().await.unwrap().code().unwrap()) };
    let output = stream::select(stdout, stderr);
    Process::new(Some(stdin), output.boxed(), exit.boxed())
}

/// A program whose output is given.
fn saying(output: Vec<OutputChunk>, code: i32) -> Process {
    let output = stream::iter(output.into_iter().map(Ok));
    let exit = future::ready(Ok(code));
    let stdin: Pin<Box<dyn AsyncWrite + Send>> = Box::pin(tokio::io::sink());
    Process::new(Some(stdin), output.boxed(), exit.boxed())
}

/// Sends a line to the agent, and returns all that it says.
async fn converse(process: Process) -> String {
    let mut stdin = process.stdin.unwrap();
    stdin.write_all(b"a line\n").await.unwrap();
    stdin.shutdown().await.unwrap();
    drop(stdin);
    let mut said = Vec::new();
    let mut output = process.output;
    while let Some(chunk) = output.next().await {
        if let OutputChunk::Stdout(bytes) = chunk.unwrap() {
            said.extend_from_slice(&bytes);
        }
    }
    assert_eq!(process.exit.await.unwrap(), 0);
    String::from_utf8(said).unwrap()
}

#[tokio::test]
async fn the_shell_receives_the_agent_and_becomes_it() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("below/agent");
    let digest = ContentHash::of(AGENT).to_string();
    let content = Bytes::from_static(AGENT);
    let placed = deliver(shell(&path, AGENT, &digest), &content, "/x").await;
    assert_eq!(converse(placed.unwrap()).await, "hello you\na line\n");
    assert_eq!(fs::read(&path).unwrap(), AGENT);
    // The second time, nothing is sent.
    let nothing = Bytes::from_static(b"must not be sent");
    let placed = deliver(shell(&path, AGENT, &digest), &nothing, "/x").await;
    assert_eq!(converse(placed.unwrap()).await, "hello you\na line\n");
    let files = fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(files, 1);
}

#[tokio::test]
async fn an_agent_that_was_changed_is_replaced() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("agent");
    let digest = ContentHash::of(AGENT).to_string();
    let content = Bytes::from_static(AGENT);
    for other in [&b"short"[..], &[b'#'; AGENT.len()]] {
        fs::write(&path, other).unwrap();
        let placed = deliver(shell(&path, AGENT, &digest), &content, "/x").await;
        assert_eq!(converse(placed.unwrap()).await, "hello you\na line\n");
    }
}

#[tokio::test]
async fn an_agent_that_another_user_could_change_is_replaced() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};

    let place = tempfile::tempdir().unwrap();
    let (path, other) = (place.path().join("agent"), place.path().join("other"));
    let digest = ContentHash::of(AGENT).to_string();
    let content = Bytes::from_static(AGENT);
    fs::write(&other, AGENT).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
    symlink(&other, &path).unwrap();
    let placed = deliver(shell(&path, AGENT, &digest), &content, "/x").await;
    assert_eq!(converse(placed.unwrap()).await, "hello you\na line\n");
    assert!(!path.is_symlink());
    let own = fs::metadata(&path).unwrap().uid();
    // Only root can give a file away.
    if chown(&path, Some(own + 1), None).is_ok() {
        let placed = deliver(shell(&path, AGENT, &digest), &content, "/x").await;
        assert_eq!(converse(placed.unwrap()).await, "hello you\na line\n");
        assert_eq!(fs::metadata(&path).unwrap().uid(), own);
    }
}

#[tokio::test]
async fn an_agent_that_arrives_damaged_is_not_run() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("agent");
    let digest = ContentHash::of(b"other").to_string();
    let content = Bytes::from_static(AGENT);
    let placed = deliver(shell(&path, AGENT, &digest), &content, "/x").await;
    let error = placed.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("damaged"), "{error}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_is_named() {
    let digest = ContentHash::of(AGENT).to_string();
    let content = Bytes::from_static(AGENT);
    let path = Path::new("/proc/nowhere/agent");
    let error = deliver(shell(path, AGENT, &digest), &content, "/proc/nowhere/agent").await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("writable volume"), "{error}");
}

#[tokio::test]
async fn shells_that_are_none() {
    let stdout = |text: &'static str| OutputChunk::Stdout(text.into());
    let stderr = |text: &'static str| OutputChunk::Stderr(text.into());
    let long: &'static str = "x".repeat(10_000).leak();
    for (output, code, kind) in [
        (vec![stderr("not found")], 127, ErrorKind::Unsupported),
        (vec![], 126, ErrorKind::Unsupported),
        (vec![], 0, ErrorKind::Unavailable),
        (vec![stdout("login: ")], 1, ErrorKind::Unavailable),
        (vec![stdout("Welcome!\n")], 0, ErrorKind::Unavailable),
        (vec![stdout(long)], 0, ErrorKind::Unavailable),
        (vec![stderr(long)], 1, ErrorKind::Unavailable),
    ] {
        let said = format!("{output:?}");
        let placed = deliver(saying(output, code), &Bytes::new(), "/x").await;
        assert_eq!(placed.unwrap_err().kind(), kind, "{said}");
    }
}

#[tokio::test]
async fn output_after_the_last_line_is_the_agents() {
    let pieces = ["agentbox: se", "nd\nagentbox: run\n\0ag", "twire"];
    let output = pieces.map(|text| OutputChunk::Stdout(text.into())).into();
    let placed = deliver(saying(output, 0), &Bytes::new(), "/x").await;
    let chunks: Vec<_> = placed.unwrap().output.map(Result::unwrap).collect().await;
    let expected = ["\0ag", "twire"].map(|text| OutputChunk::Stdout(text.into()));
    assert_eq!(chunks, expected);
}
