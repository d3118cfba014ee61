//! Files that are being written, under names that no listing shows.

use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};

use backend_core::Result;
use backend_core::limits::TEMPORARY_PREFIX;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::{Errno, retry_on_intr};

use crate::fs::errno;
use crate::fs::freeing::{close_later, retry_when_freed};
use crate::fs::resolve::{ENTRY, clone_handle, open_at};
use crate::fs::roots::is_local_filesystem;
use crate::random::random;

/// Permission bits that a file passes on to its replacement. Set-user-ID and
/// set-group-ID are not among them.
const KEPT_BITS: u32 = 0o777;

/// A file that does not have its final name yet. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct TempFile {
    directory: OwnedFd,
    name: OsString,
    pub(crate) file: OwnedFd,
    /// Whether it still has this name.
    named: bool,
}

/// The model for a new file's owner and permission bits.
#[derive(Clone, Copy)]
pub(crate) enum Attributes<'a> {
    /// None: it gets the default permission bits of a new file.
    New,
    /// A file that it replaces: owner and permission bits.
    Replaced(&'a Stat),
    /// A file or directory that it copies: permission bits.
    Copied(&'a Stat),
}

/// The condition for moving a finished file to its final name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfExists {
    /// Only if the name is free.
    Fail,
    /// Also if a file has that name, which is replaced.
    Replace,
}

impl TempFile {
    pub(crate) fn create(directory: &OwnedFd, attributes: Attributes<'_>) -> Result<Self> {
        // The replacement of a private file must never be readable by other
        // users, not even for a moment.
        let mode = Mode::from_raw_mode(match attributes {
            Attributes::New => 0o666,
            Attributes::Replaced(_) | Attributes::Copied(_) => 0o600,
        });
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (directory, name) = (clone_handle(directory)?, random_name());
        let create = || retry_on_intr(|| rustix::fs::openat(&directory, &name, flags, mode));
        let file = retry_when_freed(create);
        let temporary = Self {
            file: file.map_err(errno::error)?,
            directory,
            name,
            named: true,
        };
        match attributes {
            Attributes::New => {}
            Attributes::Replaced(old) => temporary.resemble(old)?,
            Attributes::Copied(source) => set_mode(&temporary.file, source)?,
        }
        Ok(temporary)
    }

    pub(crate) fn link(directory: &OwnedFd, text: &CStr) -> Result<Self> {
        let (directory, name) = (clone_handle(directory)?, random_name());
        rustix::fs::symlinkat(text, &directory, &name).map_err(errno::error)?;
        match open_at(&directory, &name, ENTRY) {
            Ok(file) => Ok(Self {
                directory,
                name,
                file,
                named: true,
            }),
            Err(error) => {
                let _ = rustix::fs::unlinkat(&directory, &name, AtFlags::empty());
                Err(errno::error(error))
            }
        }
    }

    /// Takes on the permission bits and, if permitted, the owner.
    fn resemble(&self, old: &Stat) -> Result<()> {
        let own = rustix::fs::fstat(&self.file).map_err(errno::error)?;
        if (own.st_uid, own.st_gid) != (old.st_uid, old.st_gid) {
            let (owner, group) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
            // A user who may not give the file away may still be in its group.
            if rustix::fs::fchown(&self.file, Some(owner), Some(group)).is_err() {
                let _ = rustix::fs::fchown(&self.file, None, Some(group));
            }
        }
        set_mode(&self.file, old)
    }

    pub(crate) fn write_at(&self, mut content: &[u8], mut offset: u64) -> Result<()> {
        while !content.is_empty() {
            let write = || retry_on_intr(|| rustix::io::pwrite(&self.file, content, offset));
            let written = retry_when_freed(write).map_err(errno::error)?;
            content = content.get(written..).unwrap_or_default();
            offset += written as u64;
        }
        Ok(())
    }

    /// Waits until the content is on the disk.
    pub(crate) fn sync(&self) -> Result<()> {
        retry_on_intr(|| rustix::fs::fdatasync(&self.file)).map_err(errno::error)
    }

    /// Gives the file its final name.
    pub(crate) fn rename_to(
        &mut self,
        directory: impl AsFd,
        name: &OsStr,
        if_exists: IfExists,
    ) -> rustix::io::Result<()> {
        let directory = directory.as_fd();
        match if_exists {
            IfExists::Replace => {
                // Network file systems keep a file that is still open under another name.
                let is_local = is_local_filesystem(&self.directory);
                let replaced = is_local.then(|| open_at(directory, name, ENTRY));
                rustix::fs::renameat(&self.directory, &self.name, directory, name)?;
                if let Some(Ok(replaced)) = replaced {
                    close_later(replaced);
                }
            }
            IfExists::Fail => rename_free(&self.directory, &self.name, directory, name)?,
        }
        self.named = false;
        Ok(())
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        if self.named {
            // The error cannot be reported here, and a later listing removes
            // the file.
            let _ = rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty());
        }
    }
}

/// Returns a name for a file that is being written. With 64 random bits it is
/// never taken.
fn random_name() -> OsString {
    OsString::from(format!("{TEMPORARY_PREFIX}{:016x}", random()))
}

/// Gives an open file or directory the permission bits of another.
pub(crate) fn set_mode(file: impl AsFd, model: &Stat) -> Result<()> {
    let mode = Mode::from_raw_mode(model.st_mode & KEPT_BITS);
    rustix::fs::fchmod(file, mode).map_err(errno::error)
}

/// Renames a file to a free name. Fails with `EXIST` if the name is taken.
pub(crate) fn rename_free(
    from: impl AsFd,
    name: &OsStr,
    to: impl AsFd,
    new_name: &OsStr,
) -> rustix::io::Result<()> {
    let (from, to) = (from.as_fd(), to.as_fd());
    match rustix::fs::renameat_with(from, name, to, new_name, RenameFlags::NOREPLACE) {
        // The file system does not support the flag. A hard link is refused if
        // the name is taken.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            rustix::fs::linkat(from, name, to, new_name, AtFlags::empty())?;
            rustix::fs::unlinkat(from, name, AtFlags::empty())
        }
        done => done,
    }
}
