//! Writing whole files.

use std::sync::Arc;

use backend_core::ops::{Content, ContentHash, WriteMode, WriteOptions, WriteOutcome};
use backend_core::{BackendExt as _, Error, ErrorKind, Result};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::channel::oneshot;
use futures::future::{self, Either};
use futures::stream;

use super::concurrent::{at_once, one_winner};
use super::create_dir::create_dir;
use super::read::large_content;
use crate::env::Env;
use crate::failure::CaseResult;
use crate::{check, check_eq};

async fn write(t: &Env, path: &str, content: &str, mode: WriteMode) -> Result<WriteOutcome> {
    let path = t.backend().path(path)?;
    let options = WriteOptions::default().mode(mode);
    t.backend().write(&path, content.into(), options).await
}

fn pieces(pieces: impl IntoIterator<Item = Bytes>) -> Content {
    let pieces: Vec<_> = pieces.into_iter().map(Ok).collect();
    Content::Stream(stream::iter(pieces).boxed())
}

fn failing_stream() -> Content {
    let broken = Error::new(ErrorKind::Cancelled, "the stream broke");
    Content::Stream(stream::iter([Ok(Bytes::from("half")), Err(broken)]).boxed())
}

/// Missing parent directories are created.
pub async fn creates_parents(t: &Env) -> CaseResult {
    t.put("a/b/c/file", "deep").await?;
    check_eq!(t.get("a/b/c/file").await?, b"deep")?;
    check_eq!(t.names("a/b").await?, ["c/"])
}

/// Overwriting a file with a shorter one leaves nothing of the old content.
pub async fn overwrites(t: &Env) -> CaseResult {
    t.put("file", "something long").await?;
    t.put("file", "short").await?;
    check_eq!(t.get("file").await?, b"short")
}

/// `CreateNew` creates a file, including its parents.
pub async fn create_new_creates(t: &Env) -> CaseResult {
    write(t, "new/file", "first", WriteMode::CreateNew).await?;
    check_eq!(t.get("new/file").await?, b"first")
}

/// `CreateNew` never replaces a file, not even an empty one.
pub async fn create_new_conflicts(t: &Env) -> CaseResult {
    for old in ["", "old"] {
        t.put("file", old).await?;
        let written = write(t, "file", "new", WriteMode::CreateNew).await;
        t.fails(ErrorKind::AlreadyExists, written)?;
        check_eq!(t.get("file").await?, old.as_bytes())?;
    }
    Ok(())
}

/// `CreateNew` fails on a directory too.
pub async fn create_new_on_a_directory(t: &Env) -> CaseResult {
    t.put("directory/file", "kept").await?;
    let written = write(t, "directory", "new", WriteMode::CreateNew).await;
    t.fails(ErrorKind::AlreadyExists, written)?;
    check_eq!(t.get("directory/file").await?, b"kept")
}

/// Of many concurrent calls that create the same file, exactly one succeeds.
pub async fn create_new_has_one_winner(t: &Env) -> CaseResult {
    let results = at_once((0..16).map(|writer| {
        let backend = Arc::clone(t.backend());
        async move { backend.write_new_file("file", format!("by {writer}")).await }
    }));
    let winner = one_winner(t, ErrorKind::AlreadyExists, results.await?)?;
    check_eq!(t.get("file").await?, format!("by {winner}").as_bytes())
}

/// `IfUnchanged` replaces a file that has not changed since it was read.
pub async fn if_unchanged_applies(t: &Env) -> CaseResult {
    let seen = t.backend().write_file("file", "old").await?.hash;
    write(t, "file", "new", WriteMode::IfUnchanged(seen)).await?;
    check_eq!(t.get("file").await?, b"new")
}

/// `IfUnchanged` does not replace a file that has changed, even if its size is the
/// same.
pub async fn if_unchanged_conflicts(t: &Env) -> CaseResult {
    let seen = t.backend().write_file("file", "old").await?.hash;
    for changed in ["odd", "old and more", ""] {
        t.put("file", changed).await?;
        let written = write(t, "file", "mine", WriteMode::IfUnchanged(seen)).await;
        t.fails(ErrorKind::Conflict, written)?;
        check_eq!(t.get("file").await?, changed.as_bytes())?;
    }
    Ok(())
}

/// `IfUnchanged` fails on a missing file, even if the old content was empty.
pub async fn if_unchanged_on_a_missing_file(t: &Env) -> CaseResult {
    for seen in [ContentHash::of(b""), ContentHash::of(b"old")] {
        for path in ["file", "no/such/file"] {
            let written = write(t, path, "new", WriteMode::IfUnchanged(seen)).await;
            t.fails(ErrorKind::Conflict, written)?;
        }
    }
    check!(t.names("").await?.is_empty(), "something was created")
}

/// Of many concurrent calls with the same `IfUnchanged` hash, exactly one succeeds.
pub async fn if_unchanged_has_one_winner(t: &Env) -> CaseResult {
    let seen = t.backend().write_file("file", "old").await?.hash;
    let path = t.path("file")?;
    let results = at_once((0..16).map(|writer| {
        let (backend, path) = (Arc::clone(t.backend()), path.clone());
        let options = WriteOptions::default().mode(WriteMode::IfUnchanged(seen));
        let content = Content::from(format!("by {writer}"));
        async move { backend.write(&path, content, options).await }
    }));
    let winner = one_winner(t, ErrorKind::Conflict, results.await?)?;
    check_eq!(t.get("file").await?, format!("by {winner}").as_bytes())
}

/// A directory, empty or not, is not replaced by a file.
pub async fn to_a_directory(t: &Env) -> CaseResult {
    create_dir(t, "directory/empty").await?;
    for path in ["directory", "directory/empty"] {
        let written = t.backend().write_file(path, "new").await;
        t.fails(ErrorKind::IsADirectory, written)?;
    }
    check_eq!(t.names("directory").await?, ["empty/"])
}

/// The working directory is a directory too.
pub async fn to_the_working_directory(t: &Env) -> CaseResult {
    t.put("file", "kept").await?;
    for path in ["", "."] {
        let written = t.backend().write_file(path, "new").await;
        t.fails(ErrorKind::IsADirectory, written)?;
    }
    check_eq!(t.get("file").await?, b"kept")
}

/// Nothing is written below a file, and the file is unchanged.
pub async fn beneath_a_file(t: &Env) -> CaseResult {
    t.put("file", "kept").await?;
    for path in ["file/beneath", "file/far/beneath"] {
        for mode in [WriteMode::Overwrite, WriteMode::CreateNew] {
            let written = write(t, path, "new", mode).await;
            t.fails(ErrorKind::NotADirectory, written)?;
        }
    }
    check_eq!(t.get("file").await?, b"kept")?;
    check_eq!(t.names("").await?, ["file"])
}

/// Carriage returns are ordinary bytes.
pub async fn carriage_returns_are_kept(t: &Env) -> CaseResult {
    let content = b"dos\r\nunix\nmac\rdoubled\r\r\nreversed\n\r\r";
    t.put("file", content).await?;
    check_eq!(t.get("file").await?, content)
}

/// Nothing in the content is expanded, escaped or taken for an end marker.
pub async fn special_characters_are_verbatim(t: &Env) -> CaseResult {
    let content = "$HOME ${HOME} $(id) `id` $$ !! ~ * ? [a-z] {a,b} # ; | & < >\n\
        \\ \\n \\\\ \\x41 %s %d %% %41 \"double\" 'single' '\\''\n\
        EOF\n'EOF'\n.\n\tü 日本 🦀 \u{feff} \u{2028} \u{1b}[0m \0 end\\";
    t.put("file", content).await?;
    check_eq!(t.get("file").await?, content.as_bytes())
}

/// Names are taken literally, and listed as given.
pub async fn names_are_verbatim(t: &Env) -> CaseResult {
    let names = "with space| outer |it's|\"double\"|$HOME|`id`|a;b|-rf|back\\slash|new\nline|*|[x]|\
        {a,b}|#|%41|...|über-🦀";
    let mut names: Vec<_> = names.split('|').collect();
    for name in &names {
        t.put(&format!("my work/{name}"), *name).await?;
    }
    for name in &names {
        check_eq!(t.get(&format!("my work/{name}")).await?, name.as_bytes())?;
    }
    names.sort_unstable();
    check_eq!(t.names("my work").await?, names)
}

/// No final newline is added.
pub async fn nothing_is_appended(t: &Env) -> CaseResult {
    let written = t.backend().write_file("file", "one\ntwo").await?;
    check_eq!(written.size, 7)?;
    check_eq!(t.get("file").await?, b"one\ntwo")
}

/// Empty content creates an empty file.
pub async fn empty_content_makes_an_empty_file(t: &Env) -> CaseResult {
    t.put("file", "").await?;
    let entry = t.backend().metadata("file").await?;
    check!(entry.is_file(), "{entry:?}")?;
    check_eq!(entry.size, Some(0))?;
    t.put("full", "old").await?;
    t.put("full", "").await?;
    check_eq!(t.get("full").await?, b"")
}

/// Bytes that are not text are kept.
pub async fn invalid_utf8_is_kept(t: &Env) -> CaseResult {
    let content = b"caf\xe9 \xff\xfe\0\x80\xed\xa0\x80\xc3";
    t.put("file", content).await?;
    check_eq!(t.get("file").await?, content)
}

/// The pieces of a stream are written in order, wherever they are split.
pub async fn stream_is_written(t: &Env) -> CaseResult {
    let content = "one\r\ntwo 🦀\n";
    let cut = content.as_bytes().chunks(3).map(Bytes::copy_from_slice);
    let cut = pieces(cut.chain([Bytes::new()]));
    let written = t.backend().write_file("file", cut).await?;
    let hash = ContentHash::of(content.as_bytes());
    check_eq!(written, WriteOutcome::new(true, content.len() as u64, hash))?;
    check_eq!(t.get("file").await?, content.as_bytes())?;
    t.put("empty", pieces([])).await?;
    check_eq!(t.get("empty").await?, b"")
}

/// A stream that fails halfway fails the write with its own error, and the old file
/// stays.
pub async fn failing_stream_keeps_the_old_file(t: &Env) -> CaseResult {
    t.put("file", "old").await?;
    let written = t.backend().write_file("file", failing_stream()).await;
    t.fails(ErrorKind::Cancelled, written)?;
    check_eq!(t.get("file").await?, b"old")?;
    check_eq!(t.names("").await?, ["file"])
}

/// A stream that fails halfway leaves nothing behind.
pub async fn failing_stream_creates_nothing(t: &Env) -> CaseResult {
    let written = t.backend().write_file("file", failing_stream()).await;
    t.fails(ErrorKind::Cancelled, written)?;
    t.fails(ErrorKind::NotFound, t.backend().metadata("file").await)?;
    check!(t.names("").await?.is_empty(), "something was left behind")
}

/// A write that is dropped halfway has no effect.
pub async fn dropped_write_has_not_happened(t: &Env) -> CaseResult {
    t.put("file", "old").await?;
    let (reached, half_way) = oneshot::channel();
    let half = stream::once(future::ready(Ok(Bytes::from("half"))));
    let rest = stream::once(async move {
        // The receiver is gone only if the case is over.
        let _ = reached.send(());
        future::pending().await
    });
    let content = Content::Stream(half.chain(rest).boxed());
    let written = Box::pin(t.backend().write_file("file", content));
    match future::select(written, half_way).await {
        Either::Left((written, _)) => check!(false, "it ended before its content: {written:?}")?,
        Either::Right((_, written)) => drop(written),
    }
    check_eq!(t.get("file").await?, b"old")?;
    check_eq!(t.names("").await?, ["file"])
}

/// The outcome says whether the file is new, its size and its hash.
pub async fn outcome_tells_what_happened(t: &Env) -> CaseResult {
    let outcome = |created, content: &str| {
        let hash = ContentHash::of(content.as_bytes());
        WriteOutcome::new(created, content.len() as u64, hash)
    };
    let new = write(t, "file", "première\n", WriteMode::Overwrite).await?;
    check_eq!(new, outcome(true, "première\n"))?;
    let again = write(t, "file", "2", WriteMode::Overwrite).await?;
    check_eq!(again, outcome(false, "2"))?;
    let unchanged = write(t, "file", "", WriteMode::IfUnchanged(again.hash)).await?;
    check_eq!(unchanged, outcome(false, ""))?;
    let other = write(t, "other", "new", WriteMode::CreateNew).await?;
    check_eq!(other, outcome(true, "new"))
}

/// A read during concurrent writes returns one complete version of the file.
pub async fn concurrent_writes_never_mix(t: &Env) -> CaseResult {
    const SIZE: usize = 64 * 1024;
    t.put("file", vec![b'-'; SIZE]).await?;
    let results = at_once((b'a'..=b'h').map(|letter| {
        let backend = Arc::clone(t.backend());
        async move {
            for _ in 0..8 {
                let write = backend.write_file("file", vec![letter; SIZE]);
                let (_, seen) = future::try_join(write, backend.read_bytes("file")).await?;
                check_eq!(seen.len(), SIZE)?;
                let whole = seen.iter().all(|byte| *byte == seen[0]);
                check!(whole, "two files are mixed")?;
            }
            CaseResult::Ok(())
        }
    }));
    results.await?.into_iter().collect::<CaseResult>()?;
    check_eq!(t.names("").await?, ["file"])
}

/// A large stream replaces a large file, and the hash covers all of it.
pub async fn large_file(t: &Env) -> CaseResult {
    let mut content = large_content();
    t.put("large", content.as_slice()).await?;
    content.reverse();
    let cut = content.chunks(100_003).map(Bytes::copy_from_slice);
    let written = t.backend().write_file("large", pieces(cut)).await?;
    let size = content.len() as u64;
    let hash = ContentHash::of(&content);
    check_eq!(written, WriteOutcome::new(false, size, hash))?;
    check!(t.get("large").await? == content, "the bytes differ")
}

/// Other files are not touched, however similar their names are.
pub async fn siblings_are_untouched(t: &Env) -> CaseResult {
    let siblings = ["a", "a.bak", "a.tmp", "aa", "a~"];
    t.put_all(&siblings).await?;
    t.put("a", "new").await?;
    for sibling in &siblings[1..] {
        check_eq!(t.get(sibling).await?, b"text\n")?;
    }
    check_eq!(t.names("").await?, siblings)
}
