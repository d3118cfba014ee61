//! Describing and listing entries.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, SystemTime};

use backend_core::limits::TEMPORARY_PREFIX;
use backend_core::ops::{Entry, FileKind, Links, Listing, LsOptions, Skipped};
use backend_core::{Error, ErrorKind, Result, VPath};
use rustix::fs::{AtFlags, FileType, OFlags, RawDir, Stat};
use rustix::io::Errno;

use crate::cancel::CancelFlag;
use crate::fs::errno;
use crate::fs::read::size_of;
use crate::fs::resolve::{ENTRY, kind_of, stat_at};
use crate::fs::rooted::RootedFs;

/// The age at which a temporary file counts as left behind by a crash.
const STALE: Duration = Duration::from_secs(60 * 60);

/// The number of temporary files that one listing removes.
const STALE_REMOVED: usize = 1_000;

/// Flags to open a directory for listing or as the directory of a command.
pub(crate) const LIST: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Calls `each` for every name in a directory, which must be open for listing,
/// until `each` fails.
pub(crate) fn each_name(
    directory: impl AsFd,
    mut each: impl FnMut(&OsStr, FileType) -> Result<()>,
) -> Result<()> {
    let mut buffer = [MaybeUninit::uninit(); 32 * 1024];
    let mut names = RawDir::new(directory, &mut buffer);
    while let Some(entry) = names.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(Errno::INTR) => continue,
            // The directory itself was deleted, so it is empty.
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(errno::error(error)),
        };
        let name: &CStr = entry.file_name();
        match name.to_bytes() {
            b"." | b".." => {}
            name => each(OsStr::from_bytes(name), entry.file_type())?,
        }
    }
    Ok(())
}

pub(crate) fn is_temporary(name: &OsStr) -> bool {
    name.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes())
}

/// Returns the modification time, if [`SystemTime`] can represent it.
fn modified(found: &Stat) -> Option<SystemTime> {
    let (seconds, nanos) = (found.st_mtime, u64::from(found.st_mtime_nsec as u32));
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let time = if seconds >= 0 {
        SystemTime::UNIX_EPOCH.checked_add(whole)
    } else {
        SystemTime::UNIX_EPOCH.checked_sub(whole)
    };
    time?.checked_add(Duration::from_nanos(nanos))
}

/// Describes an entry. Links are described as links without a target.
pub(crate) fn entry(path: VPath, found: &Stat) -> Entry {
    let mode = Some(found.st_mode & 0o7777);
    let entry = match kind_of(found) {
        FileType::RegularFile => Entry::file(path, size_of(found)).with_modified(modified(found)),
        FileType::Directory => Entry::directory(path),
        FileType::Symlink => Entry::of_kind(path, FileKind::Link).with_link(true),
        _ => Entry::of_kind(path, FileKind::Other),
    };
    entry.with_mode(mode)
}

impl RootedFs {
    /// [`stat`](Self::stat), if that takes no blocking.
    pub(crate) fn stat_cached(&self, path: &VPath, links: Links) -> Option<Entry> {
        let opened = self.open_cached(path, ENTRY, links)?;
        let found = rustix::fs::fstat(&opened).ok()?;
        (kind_of(&found) != FileType::Symlink).then(|| entry(path.clone(), &found))
    }

    pub(crate) fn stat(&self, path: &VPath, links: Links) -> Result<Entry> {
        let opened = self.open_path(path, ENTRY, links)?;
        let found = rustix::fs::fstat(&opened).map_err(errno::error)?;
        match (kind_of(&found), links) {
            (FileType::Symlink, Links::Refuse) => Err(Error::is_a_link()),
            (FileType::Symlink, Links::Follow) => self.target(path),
            _ => Ok(entry(path.clone(), &found)),
        }
    }

    /// Describes a link by its target.
    fn target(&self, path: &VPath) -> Result<Entry> {
        let target = self.open_path(path, OFlags::PATH, Links::Follow)?;
        let found = rustix::fs::fstat(&target).map_err(errno::error)?;
        Ok(entry(path.clone(), &found).with_link(true))
    }

    /// Describes the entry `name` in an open directory. Returns `None` if it is
    /// gone.
    fn child(&self, directory: &OwnedFd, path: VPath, name: &OsStr) -> Result<Option<Entry>> {
        let Some(found) = stat_at(directory, name)? else {
            return Ok(None);
        };
        match kind_of(&found) {
            FileType::Symlink => match self.target(&path) {
                Ok(target) => Ok(Some(target)),
                // A link that is broken or leads outside is still listed.
                Err(error) => match error.kind() {
                    ErrorKind::NotFound
                    | ErrorKind::NotADirectory
                    | ErrorKind::PermissionDenied
                    | ErrorKind::InvalidPath => Ok(Some(entry(path, &found))),
                    _ => Err(error),
                },
            },
            _ => Ok(Some(entry(path, &found))),
        }
    }

    pub(crate) fn ls(
        &self,
        path: &VPath,
        options: &LsOptions,
        cancel: &CancelFlag,
    ) -> Result<Listing> {
        let directory = match self.open_path(path, LIST, options.links) {
            Ok(directory) => directory,
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                let alone = self.stat(path, options.links)?;
                return if alone.is_dir() {
                    // It was not a directory a moment ago.
                    Err(error)
                } else {
                    options.listing(vec![alone], Skipped::default())
                };
            }
            Err(error) => return Err(error),
        };
        let mut total = 0;
        // The first entries in the order of the listing, up to its limit: whether
        // it is no directory, its path, and its description if that is known.
        let mut kept: BTreeMap<(bool, VPath), Option<Entry>> = BTreeMap::new();
        let mut skipped = Skipped::default();
        let mut stale = Vec::new();
        each_name(&directory, |name, kind| {
            cancel.check()?;
            if is_temporary(name) {
                if stale.len() < STALE_REMOVED {
                    stale.push(name.to_owned());
                }
                return Ok(());
            }
            let Some(text) = name.to_str() else {
                skipped.not_utf8 += 1;
                return Ok(());
            };
            let Ok(path) = path.child(text) else {
                skipped.unreadable += 1;
                return Ok(());
            };
            if options.exclude.hides(&path) {
                return Ok(());
            }
            // Only entries of these two kinds may turn out to be something
            // else.
            let known = match kind {
                FileType::Symlink | FileType::Unknown => {
                    match self.child(&directory, path.clone(), name)? {
                        None => return Ok(()),
                        known => known,
                    }
                }
                _ => None,
            };
            let is_directory = kind == FileType::Directory;
            let is_directory = known.as_ref().map_or(is_directory, Entry::is_dir);
            // A name can be listed twice if the directory changes meanwhile.
            if kept.insert((!is_directory, path), known).is_none() {
                total += 1;
            }
            if kept.len() > options.limit {
                kept.pop_last();
            }
            Ok(())
        })?;
        self.remove_stale(&directory, &stale);
        if total == 0 {
            self.check_root(path)?;
        }
        if options.exclude.hides(path) {
            skipped = Skipped::default();
        }
        let mut entries = Vec::with_capacity(kept.len());
        for ((_, path), known) in kept {
            let entry = match known {
                Some(known) => Some(known),
                None => {
                    let name = path.file_name().unwrap_or_default().to_owned();
                    self.child(&directory, path, OsStr::new(&name))?
                }
            };
            match entry {
                Some(entry) => entries.push(entry),
                None => total -= 1,
            }
        }
        let mut listing = options.listing(entries, skipped)?;
        listing.total = total;
        Ok(listing)
    }

    /// Removes temporary files left behind by a crash. Errors do not fail the
    /// listing.
    fn remove_stale(&self, directory: &OwnedFd, names: &[std::ffi::OsString]) {
        if self.read_only {
            return;
        }
        let now = SystemTime::now();
        for name in names {
            let found = stat_at(directory, name).ok().flatten();
            let is_stale = found.is_some_and(|found| {
                matches!(kind_of(&found), FileType::RegularFile | FileType::Symlink)
                    && modified(&found)
                        .and_then(|time| now.duration_since(time).ok())
                        .is_some_and(|age| age > STALE)
            });
            if is_stale {
                let removed = rustix::fs::unlinkat(directory, name, AtFlags::empty());
                tracing::debug!(?removed, "a temporary file was left behind");
            }
        }
    }
}
