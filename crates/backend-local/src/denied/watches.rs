//! The directories of which the kernel reports changes. Those without a report are as
//! they were and need no look, however many there are.
//!
//! All views of this process share one inotify instance: a user has few of them, and
//! directories are watched once for all rules.

use std::collections::HashMap;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use backend_core::sync::lock;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::fs::is_local_filesystem;

/// The most directories that are watched. Each takes about a kilobyte of the kernel's
/// memory, and the user's other programs have the same limit. The rest is compared.
const MOST_WATCHED: usize = 10_000;

/// The most events that are read at once, more than the kernel keeps by default. A
/// process that causes more of them all the time must not keep a command from starting.
const MOST_EVENTS: usize = 32 * 1024;

/// The events of what changes a directory's entries, its path, or who may list it.
const ENTRIES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::ONLYDIR);

/// All watched directories.
#[derive(Debug)]
pub(super) struct Watches {
    inotify: OwnedFd,
    /// Reports to `poll` when anything was mounted or unmounted: something else may be at
    /// the path of a directory that has not changed.
    mounts: File,
    state: Mutex<State>,
    /// How often any directory may have changed without a report.
    losses: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// By the kernel's number of the watch.
    watched: HashMap<i32, Arc<Reported>>,
    /// Whether all changes on a device are made on this machine.
    local: HashMap<u64, bool>,
}

/// The number of reports about a directory.
#[derive(Debug, Default)]
struct Reported(AtomicU64);

/// A directory that is watched, from before it was listed.
#[derive(Debug)]
pub(super) struct Watch {
    reported: Arc<Reported>,
    /// The reports and losses up to then.
    reports: u64,
    losses: u64,
}

/// The knowledge about a watched directory since it was listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    Unchanged,
    Changed,
    /// Reports were lost, or another directory may be at its path: it is to be compared.
    Unknown,
}

impl Watches {
    /// Returns those of this process, or `None` if the kernel gives it none.
    pub(super) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Watches>> = OnceLock::new();
        SHARED.get_or_init(|| Self::new().ok()).as_ref()
    }

    fn new() -> std::io::Result<Self> {
        Ok(Self {
            inotify: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?,
            mounts: File::open("/proc/self/mountinfo")?,
            state: Mutex::default(),
            losses: AtomicU64::new(0),
        })
    }

    /// Reads what the kernel has reported. Changes that were made before this call are
    /// known after it.
    pub(super) fn read(&self) {
        // Held to the end: another thread must not find no events while these are counted.
        let mut state = lock(&self.state);
        let mut polled = [PollFd::new(&self.mounts, PollFlags::PRI)];
        if rustix::event::poll(&mut polled, Some(&Timespec::default())) != Ok(0) {
            // A device may be another by now.
            state.local.clear();
            self.lose();
        }
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut events = Reader::new(&self.inotify, &mut buffer);
        for _ in 0..MOST_EVENTS {
            match events.next() {
                Ok(event) => {
                    let (flags, has_name) = (event.events(), event.file_name().is_some());
                    self.count(&mut state, event.wd(), flags, has_name);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return state.make_room(&self.inotify),
                Err(_) => break,
            }
        }
        self.lose();
    }

    fn count(&self, state: &mut State, watch: i32, flags: ReadFlags, has_name: bool) {
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            return self.lose();
        }
        // The attributes of an entry, not its own.
        if flags.contains(ReadFlags::ATTRIB) && has_name {
            return;
        }
        if let Some(reported) = state.watched.get(&watch) {
            reported.0.fetch_add(1, Ordering::SeqCst);
        }
        if flags.contains(ReadFlags::IGNORED) {
            // It was deleted or unmounted, and its watch with it.
            state.watched.remove(&watch);
        }
    }

    fn lose(&self) {
        self.losses.fetch_add(1, Ordering::SeqCst);
    }

    /// Watches an open directory, which is listed afterwards. Returns `None` if that
    /// would not report everything, or is refused.
    pub(super) fn watch(&self, directory: &OwnedFd, device: u64) -> Option<Watch> {
        let losses = self.losses.load(Ordering::SeqCst);
        let mut state = lock(&self.state);
        let local = state.local.entry(device);
        let is_local = *local.or_insert_with(|| is_local_filesystem(directory));
        if !is_local || state.watched.len() >= MOST_WATCHED {
            return None;
        }
        let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let number = inotify::add_watch(&self.inotify, path, ENTRIES).ok()?;
        let reported = Arc::clone(state.watched.entry(number).or_default());
        Some(Watch {
            reports: reported.0.load(Ordering::SeqCst),
            losses,
            reported,
        })
    }

    /// Returns how often reports were lost so far, for [`Watch::is_compared`].
    pub(super) fn losses(&self) -> u64 {
        self.losses.load(Ordering::SeqCst)
    }
}

impl State {
    /// Ends the watches that nothing uses any more, if there are too many.
    fn make_room(&mut self, inotify: &OwnedFd) {
        if self.watched.len() < MOST_WATCHED {
            return;
        }
        self.watched.retain(|number, reported| {
            let is_used = Arc::strong_count(reported) > 1;
            if !is_used {
                let _ = inotify::remove_watch(inotify, *number);
            }
            is_used
        });
    }
}

impl Watch {
    /// Returns what is known since the directory was listed, of what was
    /// [read](Watches::read).
    pub(super) fn since(&self, watches: &Watches) -> Since {
        if self.reported.0.load(Ordering::SeqCst) != self.reports {
            Since::Changed
        } else if watches.losses() != self.losses {
            Since::Unknown
        } else {
            Since::Unchanged
        }
    }

    /// Notes that another directory may be at its path.
    pub(super) fn doubt(&mut self) {
        self.losses = u64::MAX;
    }

    /// Notes that the directory was compared after so many losses, and is as it was.
    pub(super) fn is_compared(&mut self, losses: u64) {
        self.losses = losses;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::{Mode, OFlags};

    use super::*;

    fn open(path: &std::path::Path) -> OwnedFd {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty()).unwrap()
    }

    fn watch(watches: &Watches, path: &std::path::Path) -> Watch {
        let opened = open(path);
        let device = rustix::fs::fstat(&opened).unwrap().st_dev;
        watches.watch(&opened, device).unwrap()
    }

    #[test]
    fn changes_of_entries_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let watches = Watches::new().unwrap();
        fs::write(at("file"), "old").unwrap();
        let changes: [&dyn Fn(); 7] = [
            &|| fs::write(at("new"), "").unwrap(),
            &|| fs::rename(at("new"), at("newer")).unwrap(),
            &|| fs::remove_file(at("newer")).unwrap(),
            &|| fs::hard_link(at("file"), at("other")).unwrap(),
            &|| std::os::unix::fs::symlink("file", at("link")).unwrap(),
            &|| fs::create_dir(at("inner")).unwrap(),
            &|| {
                use std::os::unix::fs::PermissionsExt as _;
                let mode = fs::Permissions::from_mode(0o711);
                fs::set_permissions(directory.path(), mode).unwrap();
            },
        ];
        for (number, change) in changes.iter().enumerate() {
            let watch = watch(&watches, directory.path());
            watches.read();
            assert_eq!(watch.since(&watches), Since::Unchanged, "{number}");
            change();
            watches.read();
            assert_eq!(watch.since(&watches), Since::Changed, "{number}");
        }
        let watch = watch(&watches, directory.path());
        fs::write(at("file"), "new").unwrap();
        watches.read();
        assert_eq!(watch.since(&watches), Since::Unchanged);
    }

    #[test]
    fn a_deleted_directory_has_changed_and_is_watched_no_longer() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let watches = Watches::new().unwrap();
        let watch = watch(&watches, &inner);
        fs::remove_dir(&inner).unwrap();
        watches.read();
        assert_eq!(watch.since(&watches), Since::Changed);
        assert!(lock(&watches.state).watched.is_empty());
    }

    #[test]
    fn lost_reports_make_everything_unknown_until_it_is_compared() {
        let [one, other] = [(), ()].map(|()| tempfile::tempdir().unwrap());
        let watches = Watches::new().unwrap();
        let mut kept = watch(&watches, one.path());
        let _other = watch(&watches, other.path());
        let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let limit: usize = limit.trim().parse().unwrap();
        let file = other.path().join("file");
        for _ in 0..=limit / 2 {
            fs::write(&file, "").unwrap();
            fs::remove_file(&file).unwrap();
        }
        watches.read();
        assert_eq!(kept.since(&watches), Since::Unknown);
        kept.is_compared(watches.losses());
        assert_eq!(kept.since(&watches), Since::Unchanged);
    }

    #[test]
    fn directories_of_which_not_everything_is_reported_are_not_watched() {
        let watches = Watches::new().unwrap();
        let proc = open(std::path::Path::new("/proc/self"));
        let device = rustix::fs::fstat(&proc).unwrap().st_dev;
        assert!(watches.watch(&proc, device).is_none());
    }
}
