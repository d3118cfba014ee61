//! Agents that lie, flood, stay silent or are not agents: the host reports it
//! and survives.

use std::time::Duration;

use backend_core::limits::SHELLS;
use backend_core::ops::{
    Change, Command, CommandStatus, Entry, Event, ExecuteOutcome, FileBytes, FileMatches,
    GlobQuery, GlobResult, GrepQuery, GrepResult, LineKind, Listing, LsOptions, Output,
    ReadOptions, ShellId, ShellInfo, ShellOutput, ShellState, StatOptions, TextOptions, WatchEvent,
    WatchQuery,
};
use backend_core::search::Exclude;
use backend_core::text::window;
use backend_core::{Backend, BackendExt as _, Edit, Error, ErrorKind, Result, Sandbox as _, VPath};
use futures::future::BoxFuture;
use futures::{AsyncWriteExt as _, FutureExt as _, StreamExt as _};
use yamux::{Connection, Mode};

use super::{AgentOptions, Hostile, answering, greeted, raw};
use crate::message::{BATCH, Reply, encode};

fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

fn replies(replies: &[Reply]) -> Vec<u8> {
    replies
        .iter()
        .flat_map(|reply| encode(reply).unwrap())
        .collect()
}

type Check = for<'a> fn(&'a Hostile) -> BoxFuture<'a, Result<()>>;

/// Calls a sandbox whose agent answers with these bytes, twice. The channel
/// ends each time.
async fn breaks(what: &str, bytes: Vec<u8>, call: Check) {
    let sandbox = answering(bytes);
    for channels in 1..3 {
        let error = call(&sandbox).await.expect_err(what);
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{what}: {error}");
        let text = error.to_string();
        assert!(
            text.contains("the agent broke the protocol: "),
            "{what}: {text}"
        );
        assert_eq!(sandbox.machine().spawned(), channels, "{what}");
    }
}

fn stat(s: &Hostile) -> BoxFuture<'_, Result<()>> {
    async {
        s.stat(&path("/w/a"), StatOptions::default())
            .await
            .map(drop)
    }
    .boxed()
}

fn read(s: &Hostile) -> BoxFuture<'_, Result<()>> {
    let options = ReadOptions::default().max_bytes(10);
    async move { s.read(&path("/w/a"), options).await.map(drop) }.boxed()
}

fn ls(s: &Hostile) -> BoxFuture<'_, Result<()>> {
    let exclude = Exclude::hide(["hidden"]).unwrap();
    let options = LsOptions::default().limit(2).exclude(exclude);
    async { s.ls(&path("/w"), options).await.map(drop) }.boxed()
}

fn glob(s: &Hostile) -> BoxFuture<'_, Result<()>> {
    let exclude = Exclude::hide(["hidden"]).unwrap();
    let query = GlobQuery::new("*", path("/w")).limit(2).exclude(exclude);
    async { s.glob(query).await.map(drop) }.boxed()
}

fn grep(s: &Hostile) -> BoxFuture<'_, Result<()>> {
    let exclude = Exclude::hide(["hidden"]).unwrap();
    let query = GrepQuery::new("x", path("/w")).max_matches(2).max_bytes(20);
    async { s.grep(query.exclude(exclude)).await.map(drop) }.boxed()
}

fn execute(s: &Hostile) -> BoxFuture<'_, Result<()>> {
    let command = Command::new("x").output_bytes(10).hard_output_bytes(100);
    async { s.execute(command).await.map(drop) }.boxed()
}

fn events(s: &Hostile) -> BoxFuture<'_, Result<()>> {
    let command = Command::new("x").output_bytes(10).hard_output_bytes(100);
    async {
        let mut events = s.stream(command).await?;
        while let Some(event) = events.next().await {
            event?;
        }
        Ok(())
    }
    .boxed()
}

fn connection(s: &Hostile) -> BoxFuture<'_, Result<()>> {
    async {
        let mut connection = s.connect(80).await?;
        while let Some(bytes) = connection.incoming.next().await {
            bytes?;
        }
        Ok(())
    }
    .boxed()
}

#[tokio::test]
async fn what_is_no_connection_ends_the_channel() {
    let piece = |length| Reply::Piece(vec![0; length].into());
    breaks("bytes too early", replies(&[piece(1)]), connection).await;
    breaks(
        "the wrong kind",
        replies(&[Reply::Done, Reply::Beat(true)]),
        connection,
    )
    .await;
    let long = replies(&[Reply::Done, piece(1 << 20)]);
    breaks("a long piece", long, connection).await;
    let honest = replies(&[Reply::Done, piece(10), Reply::Done]);
    connection(&answering(honest)).await.unwrap();
    let failed = Reply::Failed(Error::unavailable("reset"));
    let lost = answering(replies(&[Reply::Done, piece(10), failed]));
    let error = connection(&lost).await.unwrap_err();
    assert_eq!(error.to_string(), "fake: connect: reset");
}

fn changes(s: &Hostile) -> BoxFuture<'_, Result<()>> {
    let exclude = Exclude::hide(["hidden"]).unwrap();
    let query = WatchQuery::new(path("/w")).exclude(exclude);
    async {
        let mut changes = s.watch(query).await?;
        while let Some(event) = changes.next().await {
            event?;
        }
        Ok(())
    }
    .boxed()
}

#[tokio::test]
async fn changes_that_were_not_asked_for_end_the_channel() {
    let told = |change: Change| replies(&[Reply::Done, Reply::Changes(vec![change.into()])]);
    let early = Reply::Changes(vec![Change::created(path("/w/a")).into()]);
    breaks("a change too early", replies(&[early]), changes).await;
    breaks(
        "the wrong kind",
        replies(&[Reply::Done, Reply::Beat(true)]),
        changes,
    )
    .await;
    breaks(
        "no changes",
        replies(&[Reply::Done, Reply::Changes(Vec::new())]),
        changes,
    )
    .await;
    let one = || WatchEvent::from(Change::changed(path("/w/a")));
    let many = Reply::Changes(vec![one(); BATCH + 1]);
    breaks("many changes", replies(&[Reply::Done, many]), changes).await;
    for forged in ["/etc/passwd", "/wrong", "/w/hidden/a", "/"] {
        breaks(forged, told(Change::deleted(path(forged))), changes).await;
        let moved = Change::renamed(path(forged), path("/w/a"));
        breaks(forged, told(moved), changes).await;
    }
    breaks(
        "the directory itself",
        told(Change::created(path("/w"))),
        changes,
    )
    .await;

    let honest = [
        Reply::Done,
        Reply::Changes(vec![one(); BATCH]),
        Reply::Changes(vec![
            WatchEvent::Overflow,
            Change::deleted(path("/w")).into(),
        ]),
        Reply::Done,
    ];
    changes(&answering(replies(&honest))).await.unwrap();
    let failed = [Reply::Done, Reply::Failed(Error::too_large("too many"))];
    let error = changes(&answering(replies(&failed))).await.unwrap_err();
    assert_eq!(error.to_string(), "fake: watch '/w': too many");
}

#[tokio::test]
async fn what_is_no_message_ends_the_channel() {
    let long = u32::MAX.to_le_bytes().to_vec();
    breaks("a length of 4 GB", long, stat).await;
    breaks(
        "a kind that is none",
        vec![5, 0, 0, 0, 255, 255, 255, 255, 15],
        stat,
    )
    .await;
    let mut trailing = replies(&[Reply::Done]);
    trailing[0] += 3;
    trailing.extend_from_slice(b"abc");
    breaks("bytes after the message", trailing, stat).await;
    breaks("the wrong kind", replies(&[Reply::Killed(true)]), stat).await;
    breaks("the wrong kind", replies(&[Reply::Done]), read).await;
    breaks("the wrong kind", replies(&[Reply::Beat(true)]), ls).await;
    breaks(
        "the wrong kind",
        replies(&[Reply::Pieces(1), Reply::Beat(true)]),
        read,
    )
    .await;
    let event = || Reply::Event(Event::Stdout("x".into()));
    breaks("an event too early", replies(&[event()]), events).await;
    breaks(
        "the wrong kind",
        replies(&[Reply::Done, event(), Reply::Done]),
        events,
    )
    .await;
}

#[tokio::test]
async fn more_than_was_asked_for_ends_the_channel() {
    let bytes = |length: usize, size| Reply::Bytes(FileBytes::new(vec![0; length].into(), size));
    breaks("100 bytes", replies(&[bytes(100, 100)]), read).await;
    breaks("fewer bytes", replies(&[bytes(3, 5)]), read).await;
    breaks("a large file", replies(&[Reply::Pieces(100)]), read).await;
    let piece = || Reply::Piece(vec![0; 8].into());
    breaks(
        "a long piece",
        replies(&[Reply::Pieces(10), piece(), piece()]),
        read,
    )
    .await;
    breaks(
        "few pieces",
        replies(&[Reply::Pieces(10), piece(), Reply::Done]),
        read,
    )
    .await;

    let mut outcome = ExecuteOutcome::new(CommandStatus::Exited(0));
    outcome.stdout = Output::whole(vec![0; 11]);
    breaks("much output", replies(&[Reply::Executed(outcome)]), execute).await;
    let event = || Reply::Event(Event::Stdout(vec![0; 200_000].into()));
    let flood = [
        Reply::Done,
        event(),
        event(),
        event(),
        event(),
        event(),
        event(),
    ];
    breaks("a flood of events", replies(&flood), events).await;

    let shell = |at| ShellInfo::new(ShellId::new(format!("bg_{at}")), "x", None);
    let shells = Reply::Shells((0..=SHELLS).map(shell).collect());
    breaks("many shells", replies(&[shells]), |s| {
        async { s.shell_list().await.map(drop) }.boxed()
    })
    .await;
    let mut log = ShellOutput::new(ShellState::Running);
    log.stdout = vec![0; (1 << 20) + 1].into();
    breaks("a long log", replies(&[Reply::ShellOutput(log)]), |s| {
        async {
            s.shell_read(&ShellId::new("x"), Duration::ZERO)
                .await
                .map(drop)
        }
        .boxed()
    })
    .await;
}

#[tokio::test]
async fn too_many_or_forged_entries_end_the_channel() {
    let file = |name: &str| Entry::file(path(name), 1);
    let listing = |entries: Vec<Entry>| {
        let mut listing = Listing::default();
        listing.total = entries.len();
        listing.entries = entries;
        replies(&[Reply::Listing(listing)])
    };
    let found = |files: Vec<Entry>| {
        let mut result = GlobResult::default();
        result.files = files;
        replies(&[Reply::Glob(result)])
    };
    let three = || vec![file("/w/a"), file("/w/b"), file("/w/c")];
    breaks("three entries", listing(three()), ls).await;
    breaks("three files", found(three()), glob).await;
    breaks("a batch", replies(&[Reply::Entries(three())]), ls).await;
    for forged in ["/etc/passwd", "/w/a/b", "/w/hidden", "/"] {
        breaks(forged, listing(vec![file(forged)]), ls).await;
    }
    for forged in ["/etc/passwd", "/wrong", "/w/hidden/a"] {
        breaks(forged, found(vec![file(forged)]), glob).await;
    }
    breaks(
        "a directory",
        found(vec![Entry::directory(path("/w/a"))]),
        glob,
    )
    .await;
    breaks("another path", replies(&[Reply::Entry(file("/w/b"))]), stat).await;
    let mut few = Listing::default();
    few.entries = vec![file("/w/a")];
    breaks("a total too small", replies(&[Reply::Listing(few)]), ls).await;
}

#[tokio::test]
async fn too_many_or_forged_matches_end_the_channel() {
    let file = |name: &str, lines: &[(u64, LineKind, &str)]| {
        FileMatches::from_lines(path(name), lines.iter().copied())
    };
    let result = |files: Vec<FileMatches>| {
        let mut result = GrepResult::default();
        result.matches = files.iter().map(|file| file.matches).sum();
        result.files = files;
        replies(&[Reply::Grep(result)])
    };
    let line = |number| (number, LineKind::Match, "x");
    let context = |number| (number, LineKind::Context, "x");
    let three = || file("/w/a", &[line(1), line(2), line(3)]);
    breaks("three matches", result(vec![three()]), grep).await;
    breaks(
        "three matches",
        replies(&[Reply::Matches(vec![three()])]),
        grep,
    )
    .await;
    let wide = file("/w/a", &[(1, LineKind::Match, "twenty-one characters")]);
    breaks("many bytes", result(vec![wide]), grep).await;
    let around = file("/w/a", &[line(1), context(2)]);
    breaks("context nobody wanted", result(vec![around]), grep).await;
    breaks("no match", result(vec![file("/w/a", &[])]), grep).await;
    breaks(
        "another place",
        result(vec![file("/etc/passwd", &[line(1)])]),
        grep,
    )
    .await;
    breaks("hidden", result(vec![file("/w/hidden", &[line(1)])]), grep).await;
    let mut miscounted = GrepResult::default();
    miscounted.matches = 5;
    breaks("a wrong count", replies(&[Reply::Grep(miscounted)]), grep).await;
}

#[tokio::test]
async fn other_lines_and_edits_than_were_asked_for_end_the_channel() {
    let text = |text: &[u8], request| Reply::Text(window(text, request).unwrap());
    let later = TextOptions::default().offset(1);
    fn lines(s: &Hostile) -> BoxFuture<'_, Result<()>> {
        let options = TextOptions::default()
            .limit(2)
            .max_bytes(10)
            .max_line_bytes(10);
        async move { s.read_text(&path("/w/a"), options).await.map(drop) }.boxed()
    }
    let all = TextOptions::default();
    breaks("another offset", replies(&[text(b"a\nb\n", later)]), lines).await;
    breaks("three lines", replies(&[text(b"a\nb\nc\n", all)]), lines).await;
    breaks("a long line", replies(&[text(b"eleven char", all)]), lines).await;
    let hash = backend_core::ops::ContentHash::of(b"");
    let edited = backend_core::ops::EditOutcome::new(vec![1, 1], 1, 0, hash);
    breaks("two edits", replies(&[Reply::Edited(edited)]), |s| {
        let edits = [Edit::new("a", "b")];
        async move {
            s.edit(&path("/w/a"), &edits, Default::default())
                .await
                .map(drop)
        }
        .boxed()
    })
    .await;
}

/// Correct replies are accepted, so the tests above fail for the stated reason.
#[tokio::test]
async fn honest_answers_are_taken() {
    let entry = Entry::file(path("/w/a"), 1);
    stat(&answering(replies(&[Reply::Entry(entry)])))
        .await
        .unwrap();
    let bytes = Reply::Bytes(FileBytes::new(vec![0; 10].into(), 10));
    read(&answering(replies(&[bytes]))).await.unwrap();
    ls(&answering(replies(&[Reply::Listing(Listing::default())])))
        .await
        .unwrap();
    glob(&answering(replies(&[Reply::Glob(GlobResult::default())])))
        .await
        .unwrap();
    grep(&answering(replies(&[Reply::Grep(GrepResult::default())])))
        .await
        .unwrap();
    let outcome = || ExecuteOutcome::new(CommandStatus::Exited(0));
    execute(&answering(replies(&[Reply::Executed(outcome())])))
        .await
        .unwrap();
    let ended = [Reply::Done, Reply::Event(Event::Ended(outcome()))];
    events(&answering(replies(&ended))).await.unwrap();
    let failed = Reply::Failed(Error::not_found());
    let error = stat(&answering(replies(&[failed]))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error.to_string().starts_with("fake: stat '/w/a': "),
        "{error}"
    );
}

#[tokio::test]
async fn an_agent_that_opens_a_stream_is_cut_off() {
    let sandbox = raw(AgentOptions::default(), |pipe| async move {
        let socket = greeted(pipe).await;
        let mut connection = Connection::new(socket, yamux::Config::default(), Mode::Server);
        let mut stream = std::future::poll_fn(|cx| connection.poll_new_outbound(cx))
            .await
            .unwrap();
        stream.write_all(b"come here").await.unwrap();
        while let Some(Ok(_)) = std::future::poll_fn(|cx| connection.poll_next_inbound(cx)).await {}
    });
    let error = sandbox.exists("a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("it opened a stream"), "{error}");
}

#[tokio::test]
async fn an_agent_that_goes_mad_after_its_greeting_is_cut_off() {
    let sandbox = raw(AgentOptions::default(), |pipe| async move {
        let mut socket = greeted(pipe).await;
        let _ = socket.write_all(&[0x42; 4096]).await;
        let _ = socket.flush().await;
        std::future::pending::<()>().await;
    });
    let error = sandbox.exists("a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.to_string().contains("channel to the agent was lost"),
        "{error}"
    );
}
