//! Large transfers: they do not block other calls, and neither side is flooded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use backend_core::ErrorKind::{self, AlreadyExists, Auth, Conflict, TooLarge};
use backend_core::ops::{
    Command, Content, Event, GlobQuery, GrepQuery, LsOptions, ReadOptions, WriteMode, WriteOptions,
};
use backend_core::{Backend, BackendExt as _, Edit, Error, Operation, Sandbox as _};
use backend_local::{Commands, LocalBackend, Supervisor};
use backend_state::StateBackend;
use backend_testkit::fake::Intercepted;
use backend_testkit::{fails, path};
use bytes::Bytes;
use futures::future::{BoxFuture, join_all};
use futures::{FutureExt as _, StreamExt as _, stream};

use crate::support::hanging::Hanging;
use crate::support::pipe::piped;

const GIGABYTE: u64 = 1024 * 1024 * 1024;
const PIECE: usize = 64 * 1024;

fn local(directory: &tempfile::TempDir) -> LocalBackend {
    let commands = Commands::default().supervisor(Supervisor::None);
    let builder = LocalBackend::builder(directory.path());
    builder
        .enable_execute(true)
        .commands(commands)
        .open()
        .unwrap()
}

/// Returns content that ends when it is told to, or after a gigabyte.
fn content(sent: &Arc<AtomicU64>, enough: &Arc<AtomicBool>) -> Content {
    let (sent, enough) = (Arc::clone(sent), Arc::clone(enough));
    let pieces = stream::repeat_with(|| Ok(Bytes::from_static(&[7; PIECE])));
    let pieces = pieces.take_while(move |_| {
        let before = sent.fetch_add(PIECE as u64, Ordering::SeqCst);
        std::future::ready(before < GIGABYTE && !enough.load(Ordering::SeqCst))
    });
    Content::Stream(pieces.boxed())
}

#[tokio::test]
async fn a_small_read_does_not_wait_for_a_large_write() {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = piped(local(&directory));
    sandbox.write_file("small", "small").await.unwrap();
    let (sent, enough) = (Arc::default(), Arc::default());
    let big = path("/big");
    let mut write = sandbox.write(&big, content(&sent, &enough), WriteOptions::default());
    for _ in 0..20 {
        tokio::select! {
            _ = &mut write => panic!("the write ended"),
            read = sandbox.read_bytes("small") => assert_eq!(read.unwrap(), "small"),
        }
    }
    enough.store(true, Ordering::SeqCst);
    let written = write.await.unwrap();
    assert!(written.size >= PIECE as u64 && written.size < GIGABYTE);
    assert_eq!(
        std::fs::metadata(directory.path().join("big"))
            .unwrap()
            .len(),
        written.size
    );
}

#[tokio::test]
async fn a_small_read_does_not_wait_for_a_large_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(directory.path().join("big")).unwrap();
    file.set_len(GIGABYTE).unwrap();
    let sandbox = piped(local(&directory));
    sandbox.write_file("small", "small").await.unwrap();
    let big = path("/big");
    let mut read = sandbox.read(&big, ReadOptions::default().max_bytes(2 * GIGABYTE));
    for _ in 0..20 {
        tokio::select! {
            _ = &mut read => panic!("the read ended"),
            read = sandbox.read_bytes("small") => assert_eq!(read.unwrap(), "small"),
        }
    }
    drop(read);
    assert_eq!(sandbox.machine().spawned(), 1);
}

#[tokio::test]
async fn large_content_arrives_as_it_was_sent() {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = piped(local(&directory));
    let bytes: Bytes = (0..5_000_000_u32).map(|at| (at / 7) as u8).collect();
    let big = path("/big");
    let outcome = sandbox
        .write(&big, bytes.clone().into(), WriteOptions::default())
        .await;
    assert_eq!(outcome.unwrap().size, bytes.len() as u64);
    let read = sandbox.read(&big, ReadOptions::default()).await.unwrap();
    assert!(read.data == bytes, "other bytes came back");
    let options = ReadOptions::default().range(1_000_000..4_000_001);
    let part = sandbox.read(&big, options).await.unwrap();
    assert!(
        part.data == bytes.slice(1_000_000..4_000_001),
        "another part came back"
    );
    assert_eq!(part.size, bytes.len() as u64);
    let error = fails(
        TooLarge,
        sandbox.read(&big, options.max_bytes(3_000_000)).await,
    );
    assert!(error.to_string().contains("3000001 bytes"), "{error}");
}

#[tokio::test]
async fn a_file_that_changes_while_it_is_read_is_a_conflict() {
    let store = StateBackend::new();
    store.write_file("big", vec![1; 3 << 20]).await.unwrap();
    let (behind, reads) = (store.clone(), AtomicU64::new(0));
    let changing = Intercepted::new(store, move |call| {
        if call.operation == Operation::Read && reads.fetch_add(1, Ordering::SeqCst) == 5 {
            let write = behind.write_file("big", vec![2; 3 << 20]);
            futures::executor::block_on(write)?;
        }
        Ok(())
    });
    let sandbox = piped(changing);
    fails(Conflict, sandbox.read_bytes("big").await);
    assert_eq!(sandbox.read_bytes("big").await.unwrap(), vec![2; 3 << 20]);
}

/// The source fails in the middle: the file stays as it was.
#[tokio::test]
async fn a_source_that_fails_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = piped(local(&directory));
    sandbox.write_file("file", "old").await.unwrap();
    let pieces = (0..40).map(|_| Ok(Bytes::from_static(&[7; PIECE])));
    let failed = Err(Error::new(ErrorKind::Auth, "the source is closed"));
    let content = Content::Stream(stream::iter(pieces.chain([failed])).boxed());
    let file = path("/file");
    fails(
        Auth,
        sandbox.write(&file, content, WriteOptions::default()).await,
    );
    assert_eq!(sandbox.read_bytes("file").await.unwrap(), "old");
    // The agent cleans up when it learns of it, which can be after the answer.
    while std::fs::read_dir(directory.path()).unwrap().count() > 1 {
        sandbox.exists("file").await.unwrap();
    }
}

/// The answer comes before the content has ended, which may be never.
#[tokio::test]
async fn a_refused_write_does_not_wait_for_its_source() {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = piped(local(&directory));
    sandbox.write_file("file", "old").await.unwrap();
    let first = stream::iter([Ok(Bytes::from_static(b"new"))]);
    let content = Content::Stream(first.chain(stream::pending()).boxed());
    let options = WriteOptions::default().mode(WriteMode::CreateNew);
    fails(
        AlreadyExists,
        sandbox.write(&path("/file"), content, options).await,
    );
}

/// The content is not read: the source is polled for no more than fits into the
/// buffers.
#[tokio::test]
async fn a_slow_writer_slows_the_source() {
    let (backend, mut seen) = Hanging::new();
    let sandbox = piped(backend);
    let sent = Arc::default();
    let file = path("/file");
    let content = content(&sent, &Arc::default());
    let mut write = sandbox.write(&file, content, WriteOptions::default());
    tokio::select! { _ = &mut write => panic!("the write ended"), _ = seen.recv() => {} }
    settle(&mut write, &sent).await;
    assert!(
        sent.load(Ordering::SeqCst) < 8 << 20,
        "{sent:?} bytes went out"
    );
}

/// The output is not read: the command prints no more than fits into the
/// buffers.
#[tokio::test]
async fn a_slow_reader_slows_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = piped(local(&directory));
    // Each line is counted in a file when it is printed.
    let line = "while printf '%01000d\\n' 7; do printf x >> count; done";
    let mut events = sandbox.stream(Command::new(line)).await.unwrap();
    assert!(matches!(events.next().await, Some(Ok(Event::Stdout(_)))));
    let (mut before, mut same) = (0, 0);
    while same < 50 {
        let now = sandbox
            .read_bytes("count")
            .await
            .map_or(0, |bytes| bytes.len());
        same = if now == before { same + 1 } else { 0 };
        before = now;
        assert!(now < 8 << 10, "{now} KB were printed");
    }
    // It goes on when it is read again.
    let mut read = 0;
    while read < (before + 100) * 1000 {
        let Some(Ok(Event::Stdout(bytes))) = events.next().await else {
            panic!("the output ended");
        };
        read += bytes.len();
    }
}

/// Polls a call until it sends nothing more.
async fn settle<T>(call: &mut (impl Future<Output = T> + Unpin), sent: &AtomicU64) {
    let (mut before, mut same) = (0, 0);
    while same < 1000 {
        assert!(call.now_or_never().is_none(), "the call ended");
        tokio::task::yield_now().await;
        let now = sent.load(Ordering::SeqCst);
        same = if now == before { same + 1 } else { 0 };
        before = now;
    }
}

#[tokio::test]
async fn two_hundred_mixed_calls_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = Arc::new(piped(local(&directory)));
    for at in 0..50 {
        let text = format!("needle {at}\n").repeat(500);
        sandbox
            .write_file(&format!("in/{at}.txt"), text)
            .await
            .unwrap();
    }
    let calls = (0..200).map(|at| tokio::spawn(mixed(Arc::clone(&sandbox), at)));
    for done in join_all(calls).await {
        done.unwrap();
    }
    assert_eq!(sandbox.machine().spawned(), 1);
    let listing = sandbox
        .ls(&path("/out"), LsOptions::default())
        .await
        .unwrap();
    assert_eq!(listing.total, 34);
}

fn mixed(sandbox: Arc<impl backend_core::Sandbox>, at: usize) -> BoxFuture<'static, ()> {
    async move {
        let file = format!("in/{}.txt", at % 50);
        match at % 6 {
            0 => {
                let text = sandbox.read_bytes(&file).await.unwrap();
                assert!(text.starts_with(format!("needle {}\n", at % 50).as_bytes()));
            }
            1 => {
                let content = format!("written by {at}");
                sandbox
                    .write_file(&format!("out/{at}"), content)
                    .await
                    .unwrap();
            }
            2 => {
                let command = Command::new(format!("echo {at}; exit {}", at % 7));
                let outcome = sandbox.execute(command).await.unwrap();
                assert_eq!(outcome.stdout.text(), format!("{at}\n"));
            }
            3 => {
                let query = GrepQuery::new(format!("needle {}$", at % 50), path("/in"));
                assert_eq!(sandbox.grep(query).await.unwrap().matches, 500);
            }
            4 => {
                let query = GlobQuery::new("*.txt", path("/in"));
                assert_eq!(sandbox.glob(query).await.unwrap().files.len(), 50);
            }
            _ => {
                let name = format!("edited/{at}");
                sandbox.write_file(&name, "one").await.unwrap();
                let edits = [Edit::new("one", "two")];
                let file = path(&format!("/{name}"));
                let edited = sandbox.edit(&file, &edits, Default::default());
                assert_eq!(edited.await.unwrap().replacements, [1]);
            }
        }
    }
    .boxed()
}
