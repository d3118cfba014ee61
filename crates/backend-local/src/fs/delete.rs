//! Deleting a file or a whole tree.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};

use backend_core::derived::refuse_working_dir;
use backend_core::ops::{DeleteOptions, Links};
use backend_core::{Error, Result, VPath};
use rustix::fs::{AtFlags, FileType, OFlags, Stat};
use rustix::io::Errno;

use crate::cancel::CancelFlag;
use crate::fs::cursor::{Cursor, lies_in};
use crate::fs::errno;
use crate::fs::list::{LIST, each_name};
use crate::fs::resolve::{ATTEMPTS, LastLink, ResolvedEntry, is_directory, open_at};
use crate::fs::rooted::RootedFs;

impl RootedFs {
    pub(crate) fn delete(
        &self,
        path: &VPath,
        options: &DeleteOptions,
        cancel: &CancelFlag,
    ) -> Result<()> {
        self.writable()?;
        refuse_working_dir(path, &self.working_dir())?;
        let target = self.resolve_entry(path, options.links, LastLink::Keep)?;
        let found = target.found.ok_or_else(Error::not_found)?;
        let name = own_name(&target)?;
        self.refuse_home(&found)?;
        let held = self.locks.hold(&[(&target.directory, name)])?;
        cancel.check()?;
        if is_directory(&found) {
            if !options.recursive {
                return Err(Error::needs_recursive_delete());
            }
            // Deleting a tree takes time, and other paths may share the lock.
            drop(held);
            return delete_tree(&target.directory, name);
        }
        rustix::fs::unlinkat(&target.directory, name, AtFlags::empty()).map_err(errno::error)
    }

    /// Returns an error for a directory that contains the working directory.
    /// This is checked by identity, because the path does not show it if it
    /// leads through a link or another spelling.
    pub(crate) fn refuse_home(&self, found: &Stat) -> Result<()> {
        if !self.home_is_inside() || !is_directory(found) {
            return Ok(());
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let home = self.open_path(&self.working_dir(), flags, Links::Follow);
        if home.is_ok_and(|home| lies_in(&home, (found.st_dev, found.st_ino)).unwrap_or(true)) {
            return refuse_working_dir(&VPath::root(), &self.working_dir());
        }
        Ok(())
    }
}

/// Returns the name of the entry to move or delete. The directories that the
/// backend is made of have none.
pub(crate) fn own_name(target: &ResolvedEntry) -> Result<&OsStr> {
    target.name.as_deref().ok_or_else(|| {
        Error::invalid_input("it is a directory that the backend is made of; name what is in it")
    })
}

pub(crate) fn delete_tree(parent: &OwnedFd, name: &OsStr) -> Result<()> {
    for _ in 0..ATTEMPTS {
        match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) => return Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(Errno::NOTDIR) => {
                // It has become a link or a file.
                return remove(parent, name, AtFlags::empty());
            }
            Err(error) => return Err(errno::error(error)),
        }
        let top = match open_at(parent, name, LIST | OFlags::NOFOLLOW) {
            Ok(top) => top,
            Err(Errno::LOOP | Errno::NOTDIR | Errno::NOENT) => continue,
            Err(error) => return Err(errno::error(error)),
        };
        empty(Cursor::new(top)?)?;
    }
    // It is refilled as fast as it is emptied.
    Err(errno::keeps_changing())
}

/// Deletes the contents of a directory. Only the names of subdirectories at
/// each level of the current path are kept in memory.
fn empty(mut cursor: Cursor) -> Result<()> {
    let mut levels = vec![clear(cursor.directory())?];
    let mut way: Vec<OsString> = Vec::new();
    let mut refills = ATTEMPTS;
    while let Some(level) = levels.last_mut() {
        if let Some(name) = level.pop() {
            match cursor.enter(&name)? {
                Ok(()) => {
                    levels.push(clear(cursor.directory())?);
                    way.push(name);
                }
                Err(Errno::NOENT) => {}
                Err(Errno::LOOP | Errno::NOTDIR) => {
                    remove(cursor.directory(), &name, AtFlags::empty())?;
                }
                // A directory that cannot be listed can still be removed if it
                // is empty.
                Err(_) => remove(cursor.directory(), &name, AtFlags::REMOVEDIR)?,
            }
            continue;
        }
        levels.pop();
        let Some(name) = way.pop() else { break };
        cursor.leave()?;
        match rustix::fs::unlinkat(cursor.directory(), &name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) if refills > 0 => {
                refills -= 1;
                if let Some(level) = levels.last_mut() {
                    level.push(name);
                }
            }
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Err(errno::keeps_changing()),
            Err(error) => return Err(errno::error(error)),
        }
    }
    Ok(())
}

/// Deletes the entries of a directory, except directories, which it returns.
fn clear(directory: &OwnedFd) -> Result<Vec<OsString>> {
    let mut directories = Vec::new();
    each_name(directory, |name, kind| {
        if kind == FileType::Directory {
            directories.push(name.to_owned());
            return Ok(());
        }
        match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::ISDIR) => {
                directories.push(name.to_owned());
                Ok(())
            }
            Err(error) => Err(errno::error(error)),
        }
    })?;
    Ok(directories)
}

fn remove(directory: impl AsFd, name: &OsStr, flags: AtFlags) -> Result<()> {
    match rustix::fs::unlinkat(directory, name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::NOTEMPTY) => Err(errno::error(Errno::ACCESS)),
        Err(error) => Err(errno::error(error)),
    }
}
