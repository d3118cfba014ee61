//! Pins the encoding: both sides must have been built from the same types.

use std::time::{Duration, SystemTime};

use backend_core::ops::{
    ByteRange, Case, Change, CommandStatus, ContentHash, FileKind, GlobOrder, HardLinks, LineKind,
    Links, Output, ShellState, Skipped, Streams, View, WriteMode,
};
use backend_core::search::{Exclude, ExcludeRule};
use backend_core::text::window;
use backend_core::{Enforcement, ErrorKind, Operation};

use super::*;

fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

fn exclude() -> Exclude {
    let rules = vec![ExcludeRule::keep("/k"), ExcludeRule::hide("h")];
    Exclude::from_layers(vec![rules]).unwrap()
}

fn command() -> Command {
    Command::new("ls")
        .directory(path("/d"))
        .env("A", "b")
        .timeout(Duration::new(3, 4))
        .streams(Streams::Merged)
        .output_bytes(5)
        .hard_output_bytes(6)
        .keep_leftovers(true)
        .view(
            View::new(exclude(), Exclude::none())
                .hard_links(HardLinks::Accept)
                .required(Enforcement::View),
        )
}

fn requests() -> Vec<Request> {
    let refuse = Links::Refuse;
    let hash = ContentHash::from_bytes([9; 32]);
    let mut range = ByteRange::default();
    range.start = 300;
    let read = ReadOptions::default()
        .links(refuse)
        .range(range)
        .max_bytes(7);
    let text = TextOptions::default().links(refuse).offset(1).limit(2);
    let text = text.max_line_bytes(3).max_bytes(4).count_total(true);
    let write = WriteOptions::default().links(refuse).durable(true);
    let write = write.mode(WriteMode::IfUnchanged(hash));
    let glob = GlobQuery::new("*", path("/g")).order(GlobOrder::NewestFirst);
    let glob = glob
        .limit(8)
        .hidden(true)
        .generated(true)
        .links(refuse)
        .exclude(exclude())
        .metadata(false);
    let grep = GrepQuery::new("x", path("/g"))
        .case(Case::Smart)
        .literal(true);
    let grep = grep.multi_line(true).context(1, 2).files("*.rs");
    let grep = grep
        .max_matches(3)
        .max_bytes(4)
        .max_line_bytes(5)
        .ignored(true);
    vec![
        Request::Control,
        Request::Resolve(path("/r"), ResolveOptions::default()),
        Request::Stat(path("/s"), StatOptions::default().links(refuse)),
        Request::Ls(path("/l"), LsOptions::default().limit(9).exclude(exclude())),
        Request::Read(path("/r"), read),
        Request::ReadText(path("/t"), text),
        Request::Write(path("/w"), write, Bytes::from_static(b"ab")),
        Request::WriteStream(
            path("/w"),
            WriteOptions::default().mode(WriteMode::CreateNew),
        ),
        Request::Edit(
            path("/e"),
            vec![Edit::new("a", "b").all()],
            EditOptions::default().links(refuse).expected(hash),
        ),
        Request::CreateDir(path("/c"), CreateDirOptions::default().links(refuse)),
        Request::Delete(path("/d"), DeleteOptions::default().recursive(true)),
        Request::Rename(
            path("/a"),
            path("/b"),
            RenameOptions::default().overwrite(true),
        ),
        Request::Copy(
            path("/a"),
            path("/b"),
            CopyOptions::default().links(refuse).recursive(true),
        ),
        Request::Glob(glob),
        Request::Grep(grep.links(refuse).exclude(exclude())),
        Request::Execute(command()),
        Request::Stream(Command::new("x")),
        Request::ShellStart(Command::new("y")),
        Request::ShellRead(ShellId::new("bg_1"), Duration::from_millis(1500)),
        Request::ShellWrite(ShellId::new("bg_1"), Some(Bytes::from_static(b"in"))),
        Request::ShellKill(ShellId::new("bg_1")),
        Request::ShellList,
        Request::Connect(8080),
        Request::Watch(
            WatchQuery::new(path("/w"))
                .recursive(false)
                .links(refuse)
                .exclude(exclude()),
        ),
        Request::ShellAttach(ShellId::new("bg_1")),
        Request::ShellResize(ShellId::new("bg_1"), TerminalSize::new(24, 80)),
        Request::ShellSignal(ShellId::new("bg_1"), Signal::Interrupt),
    ]
}

fn entry() -> Entry {
    let before = SystemTime::UNIX_EPOCH - Duration::from_millis(1500);
    let entry = Entry::file(path("/f"), 300).with_modified(Some(before));
    entry.with_mode(Some(0o644)).with_link(true)
}

fn outcome() -> ExecuteOutcome {
    let mut outcome = ExecuteOutcome::new(CommandStatus::Signalled(9));
    outcome.stdout = Output::whole("out");
    outcome.stderr.head = Bytes::from_static(b"h");
    outcome.stderr.tail = Bytes::from_static(b"t");
    outcome.stderr.dropped = 7;
    outcome.leftovers = 2;
    outcome.duration = Duration::new(1, 2);
    outcome
}

fn skipped() -> Skipped {
    let mut skipped = Skipped::default();
    (skipped.hidden, skipped.ignored, skipped.binary) = (1, 2, 3);
    (skipped.unreadable, skipped.long_line, skipped.not_utf8) = (4, 5, 6);
    skipped.generated = 7;
    skipped
}

fn replies() -> Vec<Reply> {
    let error = Error::new(ErrorKind::Conflict, "no").at(Operation::Edit, &path("/e"));
    let mut listing = Listing::default();
    listing.entries = vec![Entry::directory(path("/d"))];
    (listing.total, listing.skipped) = (300, skipped());
    let mut glob = GlobResult::default();
    (glob.files, glob.truncated) = (vec![entry()], true);
    let lines = [(1, LineKind::Match, "one"), (2, LineKind::Context, "two")];
    let matches = || FileMatches::from_lines(path("/m"), lines);
    let mut grep = GrepResult::default();
    (grep.files, grep.matches, grep.truncated) = (vec![matches()], 1, true);
    let request = TextOptions::default().offset(1).max_line_bytes(2);
    let text = window(b"one\ntwo\nthree", request).unwrap();
    let hash = ContentHash::from_bytes([9; 32]);
    let mut output = ShellOutput::new(ShellState::Ended(CommandStatus::Exited(-1)));
    (output.stdout, output.dropped) = (Bytes::from_static(b"o"), 8);
    vec![
        Reply::Failed(error.with_source("why")),
        Reply::Beat(true),
        Reply::Done,
        Reply::Path(path("/p")),
        Reply::Entry(entry()),
        Reply::Entries(vec![Entry::of_kind(path("/l"), FileKind::Link)]),
        Reply::Listing(listing),
        Reply::Glob(glob),
        Reply::Matches(vec![matches()]),
        Reply::Grep(grep),
        Reply::Bytes(FileBytes::new(Bytes::from_static(b"ab"), 300)),
        Reply::Pieces(300),
        Reply::Piece(Bytes::from_static(b"ab")),
        Reply::Text(text),
        Reply::Written(WriteOutcome::new(true, 300, hash)),
        Reply::Edited(EditOutcome::new(vec![1, 300], 4, 5, hash)),
        Reply::Executed(outcome()),
        Reply::Event(Event::Ended(ExecuteOutcome::new(CommandStatus::TimedOut))),
        Reply::Shell(ShellInfo::new(ShellId::new("bg_1"), "sleep", Some(7))),
        Reply::ShellOutput(output),
        Reply::Killed(true),
        Reply::Shells(vec![ShellInfo::new(ShellId::new("bg_2"), "cat", None)]),
        Reply::Changes(vec![
            Change::created(path("/c")).into(),
            Change::changed(path("/c")).into(),
            Change::renamed(path("/c"), path("/d")).into(),
            Change::deleted(path("/d")).into(),
            WatchEvent::Overflow,
        ]),
    ]
}

fn hex(message: &impl Serialize) -> String {
    let bytes = postcard::to_extend(message, Vec::new()).unwrap();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns all samples: the name of the message, and its bytes.
fn samples() -> String {
    let more = [
        More::Beat,
        More::Piece(Bytes::from_static(b"ab")),
        More::End,
    ];
    let mut text = format!("protocol {PROTOCOL}\n");
    let mut add = |name: String, hex: String| {
        let name = name.split(['(', ' ']).next().unwrap_or_default();
        text.push_str(&format!("{name} {hex}\n"));
    };
    requests()
        .iter()
        .for_each(|m| add(format!("{m:?}"), hex(m)));
    more.iter().for_each(|m| add(format!("{m:?}"), hex(m)));
    replies().iter().for_each(|m| add(format!("{m:?}"), hex(m)));
    text
}

#[test]
fn the_encoding_is_that_of_this_protocol_version() {
    let samples = samples();
    assert!(
        samples == include_str!("pinned.txt"),
        "messages are encoded in another way than protocol {PROTOCOL} says: raise PROTOCOL in \
         message.rs, and put this into message/pinned.txt:\n{samples}"
    );
}

/// Every message has a sample: a new one must be added.
#[test]
fn every_message_has_a_sample() {
    let tag = |hex: String| u8::from_str_radix(&hex[..2], 16).unwrap();
    let requests: Vec<_> = requests().iter().map(|m| tag(hex(m))).collect();
    let replies: Vec<_> = replies().iter().map(|m| tag(hex(m))).collect();
    for tags in [&requests, &replies] {
        assert!(tags.iter().copied().eq(0..tags.len() as u8), "{tags:?}");
    }
    // The tag after the last is not a message.
    let next = |tags: &[u8]| vec![tags.len() as u8; 64];
    assert!(postcard::from_bytes::<Request>(&next(&requests)).is_err());
    assert!(postcard::from_bytes::<Reply>(&next(&replies)).is_err());
    assert!(self::replies().iter().all(|reply| !reply.name().is_empty()));
}

#[test]
fn messages_come_back_as_they_were() {
    for request in requests() {
        let bytes = postcard::to_extend(&request, Vec::new()).unwrap();
        let again: Request = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(format!("{again:?}"), format!("{request:?}"));
    }
    for reply in replies() {
        let bytes = postcard::to_extend(&reply, Vec::new()).unwrap();
        let again: Reply = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(hex(&again), hex(&reply));
    }
}
