//! Killed writers and full disks: a file is the old one or the new one, never
//! less (in-place writes of pydantic-ai-backend truncated first).

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use backend_core::ops::{CopyOptions, WriteOptions};
use backend_core::{Backend as _, BackendExt as _, ErrorKind};
use backend_local::LocalBackend;

const SIZES: [(u8, usize); 2] = [(b'a', 700_000), (b'b', 300_000)];

/// The number of times a writer is killed.
const KILLS: usize = 40;

/// The process that is killed. The test below starts it in its working
/// directory.
#[tokio::test]
#[ignore = "a part of another test, which starts it"]
async fn part_writer() {
    let backend = LocalBackend::builder(".").open().unwrap();
    let path = backend.path("file").unwrap();
    println!("ready");
    for round in 0_usize.. {
        let (letter, size) = SIZES[round % 2];
        let options = WriteOptions::default().durable(round.is_multiple_of(7));
        let content = vec![letter; size];
        backend.write(&path, content.into(), options).await.unwrap();
        let copy = CopyOptions::default().overwrite(true);
        let to = backend.path("copy").unwrap();
        backend.copy(&path, &to, copy).await.unwrap();
        let text = backend.replace_text("edited", "old", "new").await;
        let back = backend.replace_text("edited", "new", "old").await;
        assert!(text.is_ok() && back.is_ok());
    }
}

/// The process that replaces a file again and again. It starts no process, which would keep
/// its files open for a moment.
#[tokio::test]
#[ignore = "a part of another test, which starts it"]
async fn part_rewriter() {
    let backend = LocalBackend::builder(".").open().unwrap();
    for letter in (b'a'..=b'z').cycle().take(1_000) {
        let content = vec![letter; 100 * 1024];
        backend.write_file("file", content).await.unwrap();
    }
}

fn start(part: &str, root: &Path) -> std::process::Child {
    let name = format!("attack_crash::{part}");
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--ignored", "--nocapture"])
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn one_of_the_sizes(path: &Path) {
    let content = fs::read(path).unwrap();
    let whole = SIZES
        .iter()
        .any(|(letter, size)| content.len() == *size && content.iter().all(|byte| byte == letter));
    assert!(whole, "{} has {} bytes", path.display(), content.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_writer_leaves_the_old_file_or_the_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for name in ["file", "copy"] {
        fs::write(root.join(name), vec![b'a'; 700_000]).unwrap();
    }
    let padding = "padding\n".repeat(20_000);
    fs::write(root.join("edited"), format!("old\n{padding}")).unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..KILLS {
        let mut child = start("part_writer", root);
        let mut told = String::new();
        let mut stdout = child.stdout.take().unwrap();
        while !told.contains("ready") {
            let mut byte = [0];
            assert_eq!(
                stdout.read(&mut byte).unwrap(),
                1,
                "the writer died: {told}"
            );
            told.push(char::from(byte[0]));
        }
        let until = Instant::now() + Duration::from_micros(random.u64(..12_000));
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        one_of_the_sizes(&root.join("file"));
        one_of_the_sizes(&root.join("copy"));
        let edited = fs::read_to_string(root.join("edited")).unwrap();
        let (first, rest) = edited.split_once('\n').unwrap();
        assert!(["old", "new"].contains(&first) && rest == padding);
        // The next writer expects the initial content for its edit.
        fs::write(root.join("edited"), format!("old\n{padding}")).unwrap();
    }
    // Temporary files are not listed, and at most one per kill is left.
    let backend = LocalBackend::builder(root).open().unwrap();
    let listing = backend.list_dir(".").await.unwrap();
    let names: Vec<_> = listing.entries.iter().map(|entry| entry.name()).collect();
    assert_eq!(names, ["copy", "edited", "file"]);
    let left = fs::read_dir(root).unwrap().count() - 3;
    assert!(left <= KILLS, "{left} temporary files");
}

/// Tests that need root for setup: file systems, and files of other users.
mod needs_root {
    use super::*;
    use crate::support::disk::{Mounted, names};

    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs root: cargo xtask test-all --only root"]
    async fn a_full_disk_leaves_the_old_file() {
        let directory = tempfile::tempdir().unwrap();
        let tiny = Mounted::at(directory.path(), "size=256k");
        let backend = LocalBackend::builder(&tiny.0).open().unwrap();
        let old = "old text\n".repeat(10_000);
        backend.write_file("file", old.as_str()).await.unwrap();
        let too_large = |kind: ErrorKind| assert_eq!(kind, ErrorKind::TooLarge);
        let written = backend.write_file("file", vec![b'x'; 1_000_000]).await;
        too_large(written.unwrap_err().kind());
        let created = backend.write_new_file("new", vec![b'x'; 1_000_000]).await;
        too_large(created.unwrap_err().kind());
        let pieces = (0..100).map(|_| Ok(bytes::Bytes::from(vec![b'x'; 10_000])));
        let content = backend_core::ops::Content::Stream(Box::pin(futures::stream::iter(pieces)));
        let path = backend.path("file").unwrap();
        let streamed = backend.write(&path, content, WriteOptions::default()).await;
        too_large(streamed.unwrap_err().kind());
        let edit = backend_core::text::Edit::new("old", "new and much longer").all();
        let edited = backend.edit(&path, &[edit], Default::default()).await;
        too_large(edited.unwrap_err().kind());
        backend.copy_to("file", "one").await.unwrap();
        let copied = backend.copy_to("file", "two").await;
        too_large(copied.unwrap_err().kind());
        assert_eq!(fs::read_to_string(tiny.0.join("file")).unwrap(), old);
        let left = names(&tiny.0);
        assert_eq!(left, ["file", "one"], "something was left behind");
    }

    /// The file that a write replaces may still take its space when the next one begins.
    #[tokio::test(flavor = "multi_thread")]
    #[ignore = "needs root: cargo xtask test-all --only root"]
    async fn a_nearly_full_disk_takes_one_write_after_another() {
        let directory = tempfile::tempdir().unwrap();
        let tiny = Mounted::at(directory.path(), "size=256k");
        let output = start("part_rewriter", &tiny.0).wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{printed}");
        assert_eq!(names(&tiny.0), ["file"]);
    }
}
