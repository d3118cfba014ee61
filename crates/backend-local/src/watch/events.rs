//! Events of the kernel, in their order, with the two halves of a move joined.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

use rustix::fs::inotify::ReadFlags;
use rustix::io::Errno;
use tokio::net::unix::pipe::Receiver;

use crate::fs::is_temporary;

/// Time to wait for the second half of a move. The kernel queues both right after each
/// other; an entry that was moved out of the tree has no second half.
const GRACE: Duration = Duration::from_millis(10);

/// Events that are read ahead: more than the kernel keeps by default.
const AHEAD: usize = 32 * 1024;

/// Bytes of one read.
const BUFFER_BYTES: usize = 32 * 1024;

/// The events that tell of an entry of a directory while the kernel has it locked.
const LOCKED: ReadFlags = ReadFlags::CREATE
    .union(ReadFlags::DELETE)
    .union(ReadFlags::MOVED_FROM)
    .union(ReadFlags::MOVED_TO);

/// The name in an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    Text(Box<str>),
    /// A file that is being written.
    Temporary,
    /// Not UTF-8, or none.
    None,
}

impl Name {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// One event.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) watch: i32,
    pub(super) flags: ReadFlags,
    cookie: u32,
    pub(super) name: Name,
}

impl Event {
    /// Takes the first event from the bytes of a read: four numbers, the last of which is
    /// the length of the name, and the name with at least one NUL after it.
    fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (watch, bytes) = bytes.split_first_chunk()?;
        let (flags, bytes) = bytes.split_first_chunk()?;
        let (cookie, bytes) = bytes.split_first_chunk()?;
        let (length, bytes) = bytes.split_first_chunk()?;
        let length = usize::try_from(u32::from_ne_bytes(*length)).ok()?;
        let (name, rest) = bytes.split_at_checked(length)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = match std::str::from_utf8(name) {
            _ if is_temporary(OsStr::from_bytes(name)) => Name::Temporary,
            Ok(name) if !name.is_empty() => Name::Text(name.into()),
            _ => Name::None,
        };
        let event = Self {
            watch: i32::from_ne_bytes(*watch),
            flags: ReadFlags::from_bits_retain(u32::from_ne_bytes(*flags)),
            cookie: u32::from_ne_bytes(*cookie),
            name,
        };
        Some((event, rest))
    }

    pub(super) fn has(&self, flags: ReadFlags) -> bool {
        self.flags.intersects(flags)
    }

    /// Whether this is the first half of a move.
    fn leaves(&self) -> bool {
        self.has(ReadFlags::MOVED_FROM)
    }
}

/// The next thing to handle.
#[derive(Debug)]
pub(super) enum Item {
    /// Any event but the two below.
    Event(Event),
    /// An entry that has another name or place now.
    Moved(Event, Event),
    /// An entry that left the tree.
    MovedOut(Event),
}

/// The queue of events that were read and not handled.
#[derive(Debug, Default)]
pub(super) struct Events {
    ahead: VecDeque<Event>,
    /// The end of the wait for the second half of the move that is next.
    until: Option<Instant>,
}

impl Events {
    /// Reads all events that there are now, or enough. Returns whether there were any.
    ///
    /// The kernel is asked, whatever the engine knows: an event that was queued before
    /// this call is read.
    pub(super) fn read(&mut self, inotify: impl AsFd) -> rustix::io::Result<bool> {
        let before = self.ahead.len();
        let mut buffer = [0; BUFFER_BYTES];
        while self.ahead.len() < AHEAD {
            match rustix::io::read(&inotify, &mut buffer) {
                Ok(read) => self.parse(buffer.get(..read).unwrap_or_default()),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(self.ahead.len() > before)
    }

    /// Reads once more in such a way that the engine waits for new events if there are
    /// none. Returns whether there were any.
    pub(super) fn read_or_wait(&mut self, inotify: &Receiver) -> io::Result<bool> {
        let mut buffer = [0; BUFFER_BYTES];
        match inotify.try_read(&mut buffer) {
            Ok(read) => {
                self.parse(buffer.get(..read).unwrap_or_default());
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Takes events apart. The kernel returns whole ones only.
    fn parse(&mut self, mut bytes: &[u8]) {
        while let Some((event, rest)) = Event::parse(bytes) {
            self.ahead.push_back(event);
            bytes = rest;
        }
    }

    /// Takes the next item. `None` means that more events must be read first: until
    /// [`wait`](Self::wait), if that is a time. Moves that the watches `alone` report
    /// have no second half.
    pub(super) fn next(&mut self, now: Instant, alone: &[i32]) -> Option<Item> {
        let event = self.ahead.front()?;
        if !event.leaves() || alone.contains(&event.watch) {
            return self.ahead.pop_front().map(Item::Event);
        }
        match self.second_half() {
            Half::At(index) => {
                let second = self.ahead.remove(index)?;
                let first = self.take()?;
                Some(Item::Moved(first, second))
            }
            Half::Missing => self.take().map(Item::MovedOut),
            Half::Unknown if self.ahead.len() >= AHEAD => self.take().map(Item::MovedOut),
            Half::Unknown => {
                let until = *self.until.get_or_insert(now + GRACE);
                (now >= until).then(|| self.take().map(Item::MovedOut))?
            }
        }
    }

    fn take(&mut self) -> Option<Event> {
        self.until = None;
        self.ahead.pop_front()
    }

    /// Looks for the second half of the move that is next.
    fn second_half(&self) -> Half {
        let mut events = self.ahead.iter().enumerate();
        let Some((_, first)) = events.next() else {
            return Half::Missing;
        };
        for (index, event) in events {
            if event.has(ReadFlags::MOVED_TO) && event.cookie == first.cookie {
                return Half::At(index);
            }
            // The directory is locked until both halves are queued, so none comes after
            // another event of its entries.
            if event.watch == first.watch && event.has(LOCKED) {
                return Half::Missing;
            }
        }
        Half::Unknown
    }

    /// Returns the time until which more events are waited for.
    pub(super) fn wait(&self) -> Option<Instant> {
        self.until
    }

    /// Whether a later event tells that another entry got or lost this name, or might,
    /// because not all events were read.
    pub(super) fn has_later(&self, watch: i32, name: &str) -> bool {
        let concerns = |event: &Event| {
            event.watch == watch && event.has(LOCKED) && event.name.text() == Some(name)
        };
        self.ahead.len() >= AHEAD || self.ahead.iter().any(concerns)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ahead.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.ahead.clear();
        self.until = None;
    }
}

enum Half {
    At(usize),
    Missing,
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(watch: i32, flags: ReadFlags, cookie: u32) -> Event {
        Event {
            watch,
            flags,
            cookie,
            name: Name::Text("a".into()),
        }
    }

    fn queue(events: impl IntoIterator<Item = Event>) -> Events {
        Events {
            ahead: events.into_iter().collect(),
            until: None,
        }
    }

    #[test]
    fn events_are_taken_apart() {
        let raw = |watch: i32, flags: ReadFlags, name: &[u8]| {
            let numbers = [watch as u32, flags.bits(), 7, name.len() as u32];
            let numbers = numbers.map(u32::to_ne_bytes).concat();
            [&numbers, name].concat()
        };
        let bytes = [
            raw(1, ReadFlags::CREATE, b"a.txt\0\0\0"),
            raw(2, ReadFlags::DELETE, b".agentbox-tmp-1\0"),
            raw(3, ReadFlags::DELETE, b"\xff\0"),
            raw(-1, ReadFlags::QUEUE_OVERFLOW, b""),
            b"half".to_vec(),
        ];
        let mut events = Events::default();
        events.parse(&bytes.concat());
        let found: Vec<_> = events.ahead.iter().collect();
        let names: Vec<_> = found.iter().map(|event| event.name.clone()).collect();
        let text = Name::Text("a.txt".into());
        assert_eq!(names, [text, Name::Temporary, Name::None, Name::None]);
        assert!(found[3].watch == -1 && found[3].has(ReadFlags::QUEUE_OVERFLOW));
        assert_eq!(found[0].cookie, 7);
        assert!(events.has_later(1, "a.txt"));
        assert!(!events.has_later(2, "a.txt") && !events.has_later(1, "b.txt"));
    }

    #[test]
    fn the_halves_of_a_move_are_joined_across_other_events() {
        let mut events = queue([
            event(1, ReadFlags::MOVED_FROM, 7),
            event(1, ReadFlags::MODIFY, 0),
            event(3, ReadFlags::CREATE, 0),
            event(2, ReadFlags::MOVED_TO, 7),
        ]);
        let now = Instant::now();
        let Some(Item::Moved(from, to)) = events.next(now, &[]) else {
            panic!("the halves belong together")
        };
        assert_eq!((from.watch, to.watch), (1, 2));
        for flags in [ReadFlags::MODIFY, ReadFlags::CREATE] {
            assert!(matches!(events.next(now, &[]), Some(Item::Event(event)) if event.has(flags)));
        }
        assert!(events.next(now, &[]).is_none());
    }

    #[test]
    fn a_move_without_a_second_half_left_the_tree() {
        let later = event(1, ReadFlags::DELETE, 0);
        let mut events = queue([event(1, ReadFlags::MOVED_FROM, 7), later]);
        let now = Instant::now();
        assert!(matches!(events.next(now, &[]), Some(Item::MovedOut(_))));

        let mut events = queue([event(1, ReadFlags::MOVED_FROM, 7)]);
        assert!(events.next(now, &[]).is_none());
        assert_eq!(events.wait(), Some(now + GRACE));
        events.ahead.push_back(event(2, ReadFlags::CREATE, 0));
        assert!(events.next(now + GRACE / 2, &[]).is_none());
        assert!(matches!(
            events.next(now + GRACE, &[]),
            Some(Item::MovedOut(_))
        ));
        assert!(matches!(events.next(now, &[]), Some(Item::Event(_))));
        assert_eq!(events.wait(), None);

        let mut events = queue([event(1, ReadFlags::MOVED_FROM, 7)]);
        assert!(matches!(events.next(now, &[1]), Some(Item::Event(_))));
    }
}
