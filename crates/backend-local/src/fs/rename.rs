//! Moving, within a file system or across file systems.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;

use backend_core::derived::{refuse_into_itself, refuse_working_dir};
use backend_core::ops::{CopyOptions, RenameOptions};
use backend_core::{Error, Result, VPath};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::cancel::CancelFlag;
use crate::fs::copy::{Endpoints, Job, check_inside};
use crate::fs::delete::{delete_tree, own_name};
use crate::fs::errno;
use crate::fs::list::LIST;
use crate::fs::resolve::{is_directory, open_at};
use crate::fs::rooted::RootedFs;
use crate::fs::temp_file::{IfExists, rename_free};
use crate::fs::write::make_directories;

impl RootedFs {
    pub(crate) fn rename(
        &self,
        from: &VPath,
        to: &VPath,
        options: &RenameOptions,
        cancel: &CancelFlag,
    ) -> Result<()> {
        self.writable()?;
        refuse_into_itself(from, to)?;
        refuse_working_dir(from, &self.working_dir())?;
        let as_copy = CopyOptions::default().links(options.links).recursive(true);
        let endpoints = self.endpoints(from, to, &as_copy.overwrite(options.overwrite))?;
        let name = own_name(&endpoints.source)?;
        self.refuse_home(&endpoints.found)?;
        if is_directory(&endpoints.found) && gets_longer(from, to) {
            match open_at(&endpoints.source.directory, name, LIST | OFlags::NOFOLLOW) {
                Ok(top) => check_inside(&top, to, false)?,
                Err(Errno::ACCESS) => {}
                Err(error) => return Err(errno::error(error)),
            }
        }
        let new_name = endpoints.target.name.as_deref();
        let new_name = new_name.ok_or_else(Error::already_exists)?;
        let made = make_directories(&endpoints.target, false)?;
        let directory = made.as_ref().unwrap_or(&endpoints.target.directory);
        let held = self
            .locks
            .hold(&[(&endpoints.source.directory, name), (directory, new_name)])?;
        cancel.check()?;
        match move_entry(&endpoints, name, directory, new_name) {
            Ok(()) => Ok(()),
            Err(Errno::XDEV) => {
                drop(held);
                let moved = true;
                self.copy_endpoints(&endpoints, to, Job { cancel, moved })?;
                let source = &endpoints.source.directory;
                if is_directory(&endpoints.found) {
                    return delete_tree(source, name);
                }
                rustix::fs::unlinkat(source, name, AtFlags::empty()).map_err(errno::error)
            }
            Err(Errno::INVAL) => Err(Error::into_itself()),
            Err(Errno::ISDIR | Errno::NOTDIR | Errno::NOTEMPTY) => Err(errno::error(Errno::EXIST)),
            Err(error) => Err(errno::error(error)),
        }
    }
}

/// Whether entries inside would get a longer or deeper path.
fn gets_longer(from: &VPath, to: &VPath) -> bool {
    to.as_str().len() > from.as_str().len() || to.components().count() > from.components().count()
}

fn move_entry(
    endpoints: &Endpoints,
    name: &OsStr,
    directory: &OwnedFd,
    new_name: &OsStr,
) -> rustix::io::Result<()> {
    let source = &endpoints.source.directory;
    if is_directory(&endpoints.found) {
        return move_directory(source, name, directory, new_name);
    }
    if endpoints.if_exists == IfExists::Fail {
        return rename_free(source, name, directory, new_name);
    }
    rustix::fs::renameat(source, name, directory, new_name)?;
    // If both names are hard links to the same file, the kernel does nothing
    // and the old name stays.
    let replaced = endpoints.target.found.as_ref();
    if endpoints.found.st_nlink > 1
        && replaced.is_some_and(|file| {
            (file.st_dev, file.st_ino) == (endpoints.found.st_dev, endpoints.found.st_ino)
        })
    {
        return rustix::fs::unlinkat(source, name, AtFlags::empty());
    }
    Ok(())
}

/// Moves a directory to a free name.
fn move_directory(
    source: &OwnedFd,
    name: &OsStr,
    directory: &OwnedFd,
    new_name: &OsStr,
) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(source, name, directory, new_name, RenameFlags::NOREPLACE) {
        // The file system does not support the flag. A directory can only
        // replace an empty directory, so one is created for it.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            rustix::fs::mkdirat(directory, new_name, Mode::from_raw_mode(0o700))?;
            let moved = rustix::fs::renameat(source, name, directory, new_name);
            if moved.is_err() {
                let _ = rustix::fs::unlinkat(directory, new_name, AtFlags::REMOVEDIR);
            }
            moved
        }
        done => done,
    }
}
