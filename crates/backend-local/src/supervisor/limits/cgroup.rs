//! A control group that limits the number of processes and threads of a
//! supervisor and everything it starts.
//!
//! The supervisor enters the group itself, so every command starts in it. The
//! group is locked while its supervisor lives. An unlocked group is left over
//! from a supervisor that was killed, and the next one removes it.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::FlockOperation;

use crate::random::random;

const PREFIX: &str = "agentbox-";

/// Attempts to create a group that another supervisor's sweep removes.
const ATTEMPTS: usize = 8;

/// An existing group, and the group this process was in before it entered.
#[derive(Debug)]
pub(super) struct Group {
    directory: PathBuf,
    home: PathBuf,
    entered: bool,
    /// Holds the lock.
    _handle: File,
}

impl Group {
    /// Creates a group below `parent` that limits tasks to `max`.
    pub(super) fn create(parent: &Parent, max: u64) -> io::Result<Self> {
        sweep(&parent.directory);
        for _ in 0..ATTEMPTS {
            let name = format!("{PREFIX}{:016x}", random());
            let directory = parent.directory.join(name);
            fs::create_dir(&directory)?;
            let Some(handle) = lock(&directory) else {
                continue;
            };
            let group = Self {
                directory,
                home: parent.home.clone(),
                entered: false,
                _handle: handle,
            };
            match fs::write(group.directory.join("pids.max"), max.to_string()) {
                // A sweep was faster than the lock.
                Err(error) if !group.directory.exists() => drop(error),
                Err(error) => return Err(error),
                Ok(()) => return Ok(group),
            }
        }
        Err(io::Error::other(
            "other supervisors remove every group that is created",
        ))
    }

    pub(super) fn enter(&mut self) -> io::Result<()> {
        fs::write(self.directory.join("cgroup.procs"), "0")?;
        self.entered = true;
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.entered {
            let _ = fs::write(self.home.join("cgroup.procs"), "0");
        }
        // Fails while a process still runs in it. The next sweep removes it
        // then.
        let _ = fs::remove_dir(&self.directory);
    }
}

/// A directory in which groups can be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) directory: PathBuf,
    /// The group of this process.
    pub(super) home: PathBuf,
    /// Whether it is in the version 2 hierarchy.
    unified: bool,
}

impl Parent {
    /// Finds the first directory where this process may limit its tasks. The
    /// error says why there is none.
    pub(super) fn find() -> Result<Self, String> {
        let read = |path| fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        let candidates = candidates(&read("/proc/self/cgroup")?, &read("/proc/self/mountinfo")?);
        let mut reason = String::from("no control group hierarchy with `pids` is mounted");
        for candidate in candidates {
            let usable = || {
                if candidate.unified {
                    delegated(&candidate.directory)?;
                    // Moving a process needs permission in the group above
                    // both.
                    open_procs(&candidate.directory)?;
                }
                // Processes can be moved in and back.
                open_procs(&Group::create(&candidate, 1)?.directory)?;
                open_procs(&candidate.home)
            };
            match usable() {
                Ok(_) => return Ok(candidate),
                Err(error) => reason = format!("{}: {error}", candidate.directory.display()),
            }
        }
        Err(reason)
    }
}

/// Returns the directories where a group could be created, given
/// `/proc/self/cgroup` and `/proc/self/mountinfo`. In version 1 that is below
/// the group of this process. In version 2 a group that has processes cannot
/// pass controllers on, so it is a group above it, nearest first.
fn candidates(groups: &str, mounts: &str) -> Vec<Parent> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let unified = controllers.is_empty();
        if !unified && !controllers.split(',').any(|name| name == "pids") {
            continue;
        }
        let Some((mount, home)) = locate(mounts, unified, Path::new(path)) else {
            continue;
        };
        let candidate = |directory: &Path| Parent {
            directory: directory.into(),
            home: home.clone(),
            unified,
        };
        if unified {
            found.extend(
                home.ancestors()
                    .take_while(|above| above.starts_with(&mount))
                    .map(candidate),
            );
        } else {
            found.push(candidate(&home));
        }
    }
    found
}

/// Returns the mount of a hierarchy, and the group `path` in it.
fn locate(mounts: &str, unified: bool, path: &Path) -> Option<(PathBuf, PathBuf)> {
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, point) = (mount.next()?, mount.next()?);
        let mut kind = kind.split(' ');
        let wanted = match (kind.next()?, unified) {
            ("cgroup2", true) => true,
            ("cgroup", false) => kind.nth(1)?.split(',').any(|option| option == "pids"),
            _ => false,
        };
        // A path with `..` is outside this process's view.
        if !wanted || path.components().any(|part| part == Component::ParentDir) {
            return None;
        }
        let below = path.strip_prefix(root).ok()?;
        // Joining an empty path would add a slash.
        let home = if below.as_os_str().is_empty() {
            PathBuf::from(point)
        } else {
            Path::new(point).join(below)
        };
        Some((point.into(), home))
    })
}

/// Parses text as `/proc/self/cgroup` and `/proc/self/mountinfo`.
#[cfg(fuzzing)]
pub(super) fn fuzz(groups: &str, mounts: &str) {
    drop(candidates(groups, mounts));
}

/// Opens the list of a group's processes for writing.
fn open_procs(group: &Path) -> io::Result<File> {
    let procs = group.join("cgroup.procs");
    File::options().write(true).open(procs)
}

/// Checks that groups below `directory` get the controller.
fn delegated(directory: &Path) -> io::Result<()> {
    let passed = fs::read_to_string(directory.join("cgroup.subtree_control"))?;
    if passed.split_whitespace().any(|name| name == "pids") {
        Ok(())
    } else {
        Err(io::Error::other("`pids` is not in cgroup.subtree_control"))
    }
}

/// Removes groups that are not locked.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().as_bytes().starts_with(PREFIX.as_bytes())
            && let Some(_held) = lock(&entry.path())
        {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn lock(directory: &Path) -> Option<File> {
    let handle = File::open(directory).ok()?;
    rustix::fs::flock(&handle, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        24 1 0:22 / /proc rw - proc proc rw\n\
        30 29 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        31 29 0:27 / /sys/fs/cgroup/pids rw shared:1 - cgroup cgroup rw,pids\n\
        32 29 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    fn directories(groups: &str, mounts: &str) -> Vec<String> {
        let shown = |candidate: Parent| candidate.directory.display().to_string();
        candidates(groups, mounts).into_iter().map(shown).collect()
    }

    #[test]
    fn version_1_is_below_the_own_group() {
        let found = directories("8:pids:/job/7\n4:memory:/x\n", MOUNTS);
        assert_eq!(found, ["/sys/fs/cgroup/pids/job/7"]);
        assert_eq!(directories("8:pids:/\n", MOUNTS), ["/sys/fs/cgroup/pids"]);
    }

    #[test]
    fn version_2_climbs_to_its_mount() {
        let mounts = "32 29 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(
            directories("0::/user.slice/app.scope\n", mounts),
            [
                "/sys/fs/cgroup/user.slice/app.scope",
                "/sys/fs/cgroup/user.slice",
                "/sys/fs/cgroup"
            ]
        );
    }

    #[test]
    fn a_mount_of_a_part_is_understood() {
        let mounts = "32 29 0:28 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(
            directories("0::/docker/abc/sub\n", mounts),
            ["/sys/fs/cgroup/sub", "/sys/fs/cgroup"]
        );
        assert!(directories("0::/elsewhere\n", mounts).is_empty());
        assert!(directories("0::/../other\n", MOUNTS).is_empty());
    }

    #[test]
    fn nonsense_is_no_place() {
        for groups in ["", ":", "0", "a:b", "8:cpu:/\n"] {
            assert!(candidates(groups, MOUNTS).is_empty(), "{groups:?}");
        }
        for mounts in ["", " - ", "1 2 3 4 - cgroup2", "1 2 3 / /x - cgroup"] {
            assert!(
                candidates("8:pids:/\n0::/\n", mounts).is_empty(),
                "{mounts:?}"
            );
        }
    }

    /// Plain directories suffice: a sweep only locks and removes.
    #[test]
    fn a_sweep_leaves_what_is_held() {
        let parent = tempfile::tempdir().unwrap();
        let [held, left, other] = ["agentbox-1", "agentbox-2", "other"].map(|name| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        });
        let lock = lock(&held).unwrap();
        sweep(parent.path());
        assert!(held.exists() && !left.exists() && other.exists());
        drop(lock);
        sweep(parent.path());
        assert!(!held.exists() && other.exists());
    }
}
