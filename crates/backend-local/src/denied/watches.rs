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

/// The most directories that are watched. Each takes about a kilobyte of the kernel's
/// memory, and the user's other programs share its limit, so at most half of that is
/// used. The others are compared.
const MOST_WATCHED: usize = 10_000;

/// The most events that are read at once, more than the kernel keeps by default. A
/// process that causes more of them all the time must not keep a command from starting.
const MOST_EVENTS: usize = 32 * 1024;

/// The events of what changes a directory's entries, its path, or who may list it.
/// Without `MASK_ADD`, none is reported for a moment while it is watched a second time.
const ENTRIES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::MASK_ADD);

/// The file systems of which all changes are reported: ext2 to 4, XFS, Btrfs, tmpfs, F2FS
/// and bcachefs. The layers of an overlay can be changed behind it, and so can network
/// file systems.
const REPORTING: [u64; 6] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0xf2f5_2010,
    0xca45_1a4e,
];

/// The watched directories of this process.
#[derive(Debug)]
pub(super) struct Watches {
    inotify: OwnedFd,
    most: usize,
    /// Reports to `poll` when anything was mounted or unmounted: something else may be at
    /// the path of a directory that has not changed.
    mountinfo: File,
    /// The number of these reports.
    mounts: AtomicU64,
    /// By the kernel's number of the watch.
    watched: Mutex<HashMap<i32, Arc<Reports>>>,
}

/// The number of reports about a directory.
#[derive(Debug, Default)]
struct Reports(AtomicU64);

impl Reports {
    fn add(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A directory that is watched, from before it was listed.
#[derive(Debug)]
pub(super) struct Watch {
    reports: Arc<Reports>,
    /// The numbers up to then.
    reported: u64,
    mounts: u64,
}

/// The knowledge about a watched directory since it was listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    Unchanged,
    Changed,
    /// Another directory may be at its path, so it is to be compared.
    Unknown,
}

impl Watches {
    /// Returns the instance of this process, or `None` if the kernel refuses it.
    pub(super) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Watches>> = OnceLock::new();
        SHARED.get_or_init(|| Self::new().ok()).as_ref()
    }

    fn new() -> std::io::Result<Self> {
        let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches")?;
        let limit = limit.trim().parse().unwrap_or(0);
        Ok(Self {
            inotify: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?,
            most: MOST_WATCHED.min(limit / 2),
            mountinfo: File::open("/proc/self/mountinfo")?,
            mounts: AtomicU64::new(0),
            watched: Mutex::default(),
        })
    }

    /// Reads the kernel's reports. Changes that were made before this call are known
    /// after it.
    pub(super) fn read(&self) {
        // Held to the end: another thread must not go on before these are counted.
        let mut watched = lock(&self.watched);
        let mut polled = [PollFd::new(&self.mountinfo, PollFlags::PRI)];
        if rustix::event::poll(&mut polled, Some(&Timespec::default())) != Ok(0) {
            self.mounts.fetch_add(1, Ordering::SeqCst);
        }
        if !self.count(&mut watched) {
            // Even the report that a watch has ended may be lost.
            watched.values().for_each(|reports| reports.add());
        }
        if watched.len() >= self.most {
            watched.retain(|number, reports| {
                let is_used = Arc::strong_count(reports) > 1;
                if !is_used {
                    let _ = inotify::remove_watch(&self.inotify, *number);
                }
                is_used
            });
        }
    }

    /// Counts the reports. Returns `false` if some were lost.
    fn count(&self, watched: &mut HashMap<i32, Arc<Reports>>) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut events = Reader::new(&self.inotify, &mut buffer);
        for _ in 0..MOST_EVENTS {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(error) => return error == Errno::AGAIN,
            };
            let flags = event.events();
            if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                return false;
            }
            // The attributes of an entry, not its own.
            if flags.contains(ReadFlags::ATTRIB) && event.file_name().is_some() {
                continue;
            }
            if let Some(reports) = watched.get(&event.wd()) {
                reports.add();
            }
            if flags.contains(ReadFlags::IGNORED) {
                // It was deleted or unmounted, and its watch with it.
                watched.remove(&event.wd());
            }
        }
        false
    }

    /// Returns the number of reports so far that something was mounted or unmounted.
    pub(super) fn mounts(&self) -> u64 {
        self.mounts.load(Ordering::SeqCst)
    }

    /// Watches a directory, which was opened after `mounts` was read and is listed
    /// afterwards. Returns `None` if not everything would be reported, or the kernel
    /// refuses.
    pub(super) fn watch(&self, directory: &OwnedFd, mounts: u64) -> Option<Watch> {
        let kind = rustix::fs::fstatfs(directory).ok()?.f_type;
        if !REPORTING.contains(&(kind as u64)) {
            return None;
        }
        let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let mut watched = lock(&self.watched);
        if watched.len() >= self.most {
            return None;
        }
        let number = inotify::add_watch(&self.inotify, path, ENTRIES).ok()?;
        let reports = Arc::clone(watched.entry(number).or_default());
        Some(Watch {
            reported: reports.get(),
            mounts,
            reports,
        })
    }
}

impl Watch {
    /// Returns what is known since the directory was listed, of what was
    /// [read](Watches::read).
    pub(super) fn since(&self, watches: &Watches) -> Since {
        if self.reports.get() != self.reported {
            Since::Changed
        } else if watches.mounts() != self.mounts {
            Since::Unknown
        } else {
            Since::Unchanged
        }
    }

    /// Notes that another directory may be at its path.
    pub(super) fn doubt(&mut self) {
        self.mounts = u64::MAX;
    }

    /// Notes that the directory had not changed when it was compared, after `mounts` was
    /// read.
    pub(super) fn is_compared(&mut self, mounts: u64) {
        self.mounts = mounts;
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
        watches.watch(&open(path), watches.mounts()).unwrap()
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
        assert!(lock(&watches.watched).is_empty());
    }

    #[test]
    fn after_lost_reports_everything_counts_as_changed() {
        let [one, other] = [(), ()].map(|()| tempfile::tempdir().unwrap());
        let watches = Watches::new().unwrap();
        let kept = watch(&watches, one.path());
        let _other = watch(&watches, other.path());
        let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        let limit: usize = limit.trim().parse().unwrap();
        let file = other.path().join("file");
        for _ in 0..=limit / 2 {
            fs::write(&file, "").unwrap();
            fs::remove_file(&file).unwrap();
        }
        watches.read();
        assert_eq!(kept.since(&watches), Since::Changed);
        let kept = watch(&watches, one.path());
        watches.read();
        assert_eq!(kept.since(&watches), Since::Unchanged);
    }

    #[test]
    fn a_directory_that_is_watched_again_is_reported_meanwhile() {
        let directory = tempfile::tempdir().unwrap();
        let watches = Watches::new().unwrap();
        let file = directory.path().join("file");
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    inotify::add_watch(&watches.inotify, directory.path(), ENTRIES).unwrap();
                }
            });
            let missed = (0..20_000).find(|_| {
                let first = watch(&watches, directory.path());
                fs::write(&file, "").unwrap();
                watches.read();
                let is_missed = first.since(&watches) != Since::Changed;
                fs::remove_file(&file).unwrap();
                watches.read();
                is_missed
            });
            // Before it is judged: a panic would wait for the other thread.
            is_over.store(true, Ordering::SeqCst);
            assert_eq!(missed, None);
        });
    }

    #[test]
    fn there_is_a_limit_and_room_again_when_some_are_used_no_longer() {
        let directory = tempfile::tempdir().unwrap();
        let at = |number: usize| directory.path().join(number.to_string());
        (0..4).for_each(|number| fs::create_dir(at(number)).unwrap());
        let mut watches = Watches::new().unwrap();
        watches.most = 3;
        let mut kept: Vec<_> = (0..3).map(|number| watch(&watches, &at(number))).collect();
        let more = || watches.watch(&open(&at(3)), watches.mounts()).is_some();
        watches.read();
        assert!(!more());
        kept.pop();
        watches.read();
        assert!(more());
    }

    #[test]
    fn directories_of_which_not_everything_is_reported_are_not_watched() {
        let watches = Watches::new().unwrap();
        let proc = open(std::path::Path::new("/proc/self"));
        assert!(watches.watch(&proc, watches.mounts()).is_none());
    }
}
