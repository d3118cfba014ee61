//! Tests of the queue of changes.

use futures::executor::block_on;
use futures::{FutureExt as _, StreamExt as _};
use proptest::prelude::*;

use super::*;

fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

/// Takes all events that can be read now.
fn unread(stream: &mut ChangeStream) -> Vec<WatchEvent> {
    let mut events = Vec::new();
    while let Some(Some(event)) = stream.next().now_or_never() {
        events.push(event.unwrap());
    }
    events
}

fn changes(events: Vec<WatchEvent>) -> Vec<Change> {
    let change = |event| match event {
        WatchEvent::Change(change) => change,
        WatchEvent::Overflow => unreachable!("nothing was lost"),
    };
    events.into_iter().map(change).collect()
}

#[test]
fn changes_of_a_file_that_were_not_read_are_told_once() {
    let (sender, mut stream) = channel();
    let (a, b) = (path("/a"), path("/b"));
    sender.tell(Change::created(a.clone()));
    sender.tell(Change::changed(a.clone()));
    sender.tell(Change::changed(b.clone()));
    sender.tell(Change::changed(b.clone()));
    let told = changes(unread(&mut stream));
    assert_eq!(told, [Change::created(a.clone()), Change::changed(b)]);
    sender.tell(Change::changed(a.clone()));
    assert_eq!(changes(unread(&mut stream)), [Change::changed(a)]);
}

#[test]
fn a_change_after_a_deletion_or_a_move_is_told() {
    let (sender, mut stream) = channel();
    let all = [
        Change::changed(path("/d/x")),
        Change::deleted(path("/d/x")),
        Change::created(path("/d/x")),
        Change::renamed(path("/d"), path("/e")),
        Change::renamed(path("/f"), path("/d")),
        Change::changed(path("/d/x")),
    ];
    for change in &all {
        sender.tell(change.clone());
    }
    assert_eq!(changes(unread(&mut stream)), all);
}

#[test]
fn a_full_queue_says_so_once_and_goes_on() {
    let (sender, mut stream) = channel();
    let file = |number: usize| path(&format!("/{number}"));
    for number in 0..WATCH_EVENTS * 3 {
        sender.tell(Change::created(file(number)));
    }
    assert!(sender.is_overflowed());
    let events = unread(&mut stream);
    assert_eq!(events.len(), WATCH_EVENTS + 1);
    let lost = events
        .iter()
        .filter(|event| **event == WatchEvent::Overflow);
    assert_eq!(lost.count(), 1);
    assert_eq!(events.last(), Some(&WatchEvent::Overflow));
    sender.tell(Change::deleted(file(7)));
    assert_eq!(changes(unread(&mut stream)), [Change::deleted(file(7))]);
}

#[test]
fn long_paths_fill_the_queue_earlier() {
    let (sender, mut stream) = channel();
    let directory = format!("/{}", vec!["d".repeat(250); 15].join("/"));
    for number in 0..WATCH_EVENTS {
        sender.tell(Change::created(path(&format!("{directory}/{number}"))));
    }
    let events = unread(&mut stream);
    assert!(events.len() < WATCH_EVENTS);
    assert_eq!(events.last(), Some(&WatchEvent::Overflow));
}

#[test]
fn the_end_is_told_even_if_the_queue_is_full() {
    let (sender, mut stream) = channel();
    for number in 0..=WATCH_EVENTS {
        sender.tell(Change::created(path(&format!("/{number}"))));
    }
    sender.gone(path("/"));
    sender.tell(Change::created(path("/late")));
    let gone = WatchEvent::Change(Change::deleted(path("/")));
    let events = unread(&mut stream);
    assert_eq!(events[events.len() - 2..], [WatchEvent::Overflow, gone]);
    assert!(block_on(stream.next()).is_none());
}

#[test]
fn an_error_is_the_last_item() {
    let (sender, mut stream) = channel();
    sender.tell(Change::created(path("/a")));
    sender.fail(Error::too_large("too many directories"));
    assert!(block_on(stream.next()).unwrap().is_ok());
    assert!(block_on(stream.next()).unwrap().is_err());
    assert!(block_on(stream.next()).is_none());
}

#[test]
fn each_end_learns_of_the_other() {
    let (sender, stream) = channel();
    assert!(sender.closed().now_or_never().is_none());
    let waiting = std::thread::spawn(move || block_on(sender.closed()));
    drop(stream);
    waiting.join().unwrap();

    let (sender, mut stream) = channel();
    let waiting = std::thread::spawn(move || block_on(stream.next()));
    drop(sender);
    assert!(waiting.join().unwrap().is_none());
}

#[derive(Debug, Clone)]
enum Step {
    Tell(Change),
    Read,
}

fn step() -> impl Strategy<Value = Step> {
    let name = || prop::sample::select(vec!["/a", "/b", "/d", "/d/x", "/e"]).prop_map(path);
    prop_oneof![
        2 => name().prop_map(|path| Step::Tell(Change::created(path))),
        4 => name().prop_map(|path| Step::Tell(Change::changed(path))),
        2 => name().prop_map(|path| Step::Tell(Change::deleted(path))),
        1 => (name(), name()).prop_map(|(from, to)| Step::Tell(Change::renamed(from, to))),
        3 => Just(Step::Read),
    ]
}

proptest! {
    /// Everything but repeated changes is told, in order; and after every change of a
    /// file an event of it is read.
    #[test]
    fn nothing_but_repetitions_is_dropped(steps in prop::collection::vec(step(), 0..60)) {
        let (sender, mut stream) = channel();
        let mut expected = Vec::new();
        let mut told = Vec::new();
        // Changes whose event must still be read.
        let mut due: Vec<VPath> = Vec::new();
        let note = |event: WatchEvent, due: &mut Vec<VPath>, told: &mut Vec<Change>| {
            let WatchEvent::Change(change) = event else { unreachable!("nothing was lost") };
            if matches!(change.kind, ChangeKind::Created | ChangeKind::Changed) {
                due.retain(|path| *path != change.path);
            }
            told.push(change);
        };
        for step in steps {
            match step {
                Step::Tell(change) => {
                    if change.kind == ChangeKind::Changed {
                        due.push(change.path.clone());
                    }
                    expected.push(change.clone());
                    sender.tell(change);
                }
                Step::Read => {
                    if let Some(Some(event)) = stream.next().now_or_never() {
                        note(event.unwrap(), &mut due, &mut told);
                    }
                }
            }
        }
        for event in unread(&mut stream) {
            note(event, &mut due, &mut told);
        }
        prop_assert_eq!(due, Vec::<VPath>::new());
        let others = |changes: &[Change]| -> Vec<Change> {
            let other = |change: &&Change| change.kind != ChangeKind::Changed;
            changes.iter().filter(other).cloned().collect()
        };
        prop_assert_eq!(others(&told), others(&expected));
        // What was told is the expected sequence with some changes left out.
        let mut rest = expected.iter();
        for change in &told {
            prop_assert!(rest.any(|other| other == change));
        }
    }
}
