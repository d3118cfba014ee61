//! The directories of which the kernel reports changes. Those without a report are as
//! they were and need no look, however many there are.
//!
//! All views of this process share one inotify instance: a user has few of them, and
//! directories are watched once for all rules.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use backend_core::sync::lock;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::fs::{AtFlags, StatxFlags};
use rustix::io::Errno;

/// The most directories that are watched. Each takes about a kilobyte of the kernel's
/// memory, and the user's other programs share its limit, so at most an eighth of that
/// is used. The others are compared.
const MOST_WATCHED: usize = 10_000;

/// The most events that are read at once, more than the kernel keeps by default. A
/// process that causes more of them all the time must not keep a command from starting.
const MOST_EVENTS: usize = 32 * 1024;

/// The events of what changes a directory's entries, its path, or who may list it.
/// That it was deleted is reported without being asked for (`IGNORED`). Without
/// `MASK_ADD`, none is reported for a moment while it is watched a second time.
const ENTRIES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::MASK_ADD);

/// The file systems of which all changes are reported. The layers of an overlay can be
/// changed behind it, and network file systems and shares by other machines.
const REPORTING: [&str; 8] = [
    "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "tmpfs", "xfs",
];

/// The mounts of this process, a line for each.
const MOUNTS: &str = "/proc/self/mountinfo";

/// The watched directories of this process.
#[derive(Debug)]
pub(super) struct Watches {
    inotify: OwnedFd,
    most: usize,
    mounts: Mutex<Mounts>,
    /// By the kernel's number of the watch.
    watched: Mutex<HashMap<i32, Arc<Reports>>>,
}

/// The mounts of this process.
#[derive(Debug)]
struct Mounts {
    /// Reports to `poll` when anything was mounted or unmounted: something else may be at
    /// the path of a directory that has not changed.
    reports: File,
    /// The number of these reports.
    changes: u64,
    /// The numbers of the mounts of [`REPORTING`] file systems, if they were read since.
    reporting: Option<HashSet<u64>>,
}

impl Mounts {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            reports: File::open(MOUNTS)?,
            changes: 0,
            reporting: None,
        })
    }

    fn count(&mut self) {
        let mut polled = [PollFd::new(&self.reports, PollFlags::PRI)];
        if rustix::event::poll(&mut polled, Some(&Timespec::default())) != Ok(0) {
            self.changes += 1;
            self.reporting = None;
        }
    }

    /// Whether all changes to an open directory are reported. While it is open, no other
    /// mount gets the number of its mount.
    fn reports_on(&mut self, directory: &OwnedFd) -> bool {
        let Ok(found) = rustix::fs::statx(directory, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)
        else {
            return false;
        };
        if found.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
            return false;
        }
        self.count();
        let reporting = self.reporting.get_or_insert_with(|| {
            let list = std::fs::read(MOUNTS).unwrap_or_default();
            let list = String::from_utf8_lossy(&list);
            list.lines().filter_map(reporting_mount).collect()
        });
        reporting.contains(&found.stx_mnt_id)
    }
}

/// Returns the number of the mount in a line of `mountinfo`, if it is of a [`REPORTING`]
/// file system.
fn reporting_mount(line: &str) -> Option<u64> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let kind = filesystem.split(' ').next()?;
    if !REPORTING.contains(&kind) {
        return None;
    }
    mount.split(' ').next()?.parse().ok()
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
    /// The number of them up to then.
    reported: u64,
    /// The number of changed mounts up to then, or `None` if another directory may be at
    /// its path.
    mounts: Option<u64>,
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
            most: MOST_WATCHED.min(limit / 8),
            mounts: Mutex::new(Mounts::new()?),
            watched: Mutex::default(),
        })
    }

    /// Reads the kernel's reports. Changes that were made before this call are known
    /// after it.
    pub(super) fn read(&self) {
        // Held to the end: another thread must not go on before these are counted.
        let mut watched = lock(&self.watched);
        lock(&self.mounts).count();
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
        lock(&self.mounts).changes
    }

    /// Watches a directory, which was opened after `mounts` was read and is listed
    /// afterwards. Returns `None` if not everything would be reported, the kernel refuses,
    /// or there are too many; one that `is_watched` is not one more.
    pub(super) fn watch(
        &self,
        directory: &OwnedFd,
        mounts: u64,
        is_watched: bool,
    ) -> Option<Watch> {
        if !lock(&self.mounts).reports_on(directory) {
            return None;
        }
        let path = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let mut watched = lock(&self.watched);
        if watched.len() >= self.most && !is_watched {
            return None;
        }
        let number = inotify::add_watch(&self.inotify, path, ENTRIES).ok()?;
        let reports = Arc::clone(watched.entry(number).or_default());
        Some(Watch {
            reported: reports.get(),
            mounts: Some(mounts),
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
        } else if self.mounts != Some(watches.mounts()) {
            Since::Unknown
        } else {
            Since::Unchanged
        }
    }

    /// Notes that another directory may be at its path.
    pub(super) fn doubt(&mut self) {
        self.mounts = None;
    }

    /// Notes that the directory had not changed when it was compared, after `mounts` was
    /// read.
    pub(super) fn confirm(&mut self, mounts: u64) {
        self.mounts = Some(mounts);
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
        watches.watch(&open(path), watches.mounts(), false).unwrap()
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
        let again = |number, is_watched| {
            let watch = watches.watch(&open(&at(number)), watches.mounts(), is_watched);
            watch.is_some()
        };
        let more = || again(3, false);
        watches.read();
        assert!(!more());
        assert!(again(2, true));
        kept.pop();
        watches.read();
        assert!(more());
    }

    #[test]
    fn directories_of_which_not_everything_is_reported_are_not_watched() {
        let watches = Watches::new().unwrap();
        let proc = open(std::path::Path::new("/proc/self"));
        assert!(watches.watch(&proc, watches.mounts(), false).is_none());
        let line = |kind| format!("36 35 0:98 / /mnt/a\\040b rw,noatime master:1 - {kind} x rw");
        assert_eq!(reporting_mount(&line("ext4")), Some(36));
        for kind in ["9p", "fuse", "fuse.ext4", "nfs4", "overlay", "virtiofs", ""] {
            assert_eq!(reporting_mount(&line(kind)), None, "{kind}");
        }
        assert_eq!(reporting_mount("36 35"), None);
    }
}
