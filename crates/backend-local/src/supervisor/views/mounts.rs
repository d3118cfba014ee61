//! Making masks: the mounts of a view.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatVfsMountFlags, StatxAttributes,
    StatxFlags,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, FsPickFlags, MountAttrFlags, MountFlags, MoveMountFlags,
    OpenTreeFlags,
};

use super::super::protocol::{Masked, With};

/// The names of the masks, beneath the directory in which they are mounted.
const FILE: &str = "file";
const DIRECTORY: &str = "directory";

/// Mounts a small file system at `place`, with a file and a directory that no one may
/// open. It is read-only as a whole, so their owner cannot change that.
pub(super) fn make_masks(place: &Path) -> Result<(), String> {
    let make = || -> rustix::io::Result<()> {
        let context = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (name, value) in [("size", "4k"), ("nr_inodes", "8"), ("mode", "0700")] {
            rustix::mount::fsconfig_set_string(&context, name, value)?;
        }
        rustix::mount::fsconfig_create(&context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let masks = rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        drop(rustix::fs::openat(&masks, FILE, flags, Mode::empty())?);
        rustix::fs::mkdirat(&masks, DIRECTORY, Mode::empty())?;
        let flags = FsPickFlags::FSPICK_EMPTY_PATH | FsPickFlags::FSPICK_CLOEXEC;
        let context = rustix::mount::fspick(&masks, "", flags)?;
        rustix::mount::fsconfig_set_flag(&context, "ro")?;
        rustix::mount::fsconfig_reconfigure(&context)?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        rustix::mount::move_mount(&masks, "", CWD, place, flags)
    };
    make().map_err(|error| refused("mount a file system", error))
}

/// The masks, opened in a view's namespace by its keeper.
pub(super) struct Mounts {
    file: OwnedFd,
    directory: OwnedFd,
    device: u64,
    /// Where something was mounted when the namespace was made.
    mounted: Vec<PathBuf>,
}

impl Mounts {
    pub(super) fn open(place: &Path) -> Result<Self, String> {
        let open = |name: &str| {
            let path = place.join(name);
            let opened = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            opened.map_err(|error| format!("its masks are gone: {error}"))
        };
        let (file, directory) = (open(FILE)?, open(DIRECTORY)?);
        let found = rustix::fs::fstat(&file).map_err(|error| error.to_string())?;
        let list = std::fs::read("/proc/thread-self/mountinfo");
        let list = list.map_err(|error| format!("its mounts cannot be listed: {error}"))?;
        let paths = list.split(|byte| *byte == b'\n').filter_map(mount_point);
        Ok(Self {
            file,
            directory,
            device: found.st_dev,
            mounted: paths.collect(),
        })
    }

    /// Masks these paths. One that is masked already stays as it is.
    pub(super) fn apply(&self, places: &[Masked], strict: bool) -> Result<(), String> {
        for place in places {
            let path = Path::new(std::ffi::OsStr::from_bytes(&place.path));
            match self.mask(path, place.with) {
                Ok(()) => {}
                // It was removed or moved since it was listed.
                Err(Errno::NOENT | Errno::NOTDIR) if !strict => {}
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                    return Err(format!(
                        "{} was moved while the command was starting; run it again",
                        path.display()
                    ));
                }
                Err(error) => {
                    return Err(refused(&format!("mask {}", path.display()), error));
                }
            }
        }
        Ok(())
    }

    fn mask(&self, path: &Path, with: With) -> rustix::io::Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let target = rustix::fs::openat2(CWD, path, flags, Mode::empty(), links)?;
        let found = rustix::fs::fstat(&target)?;
        if found.st_dev == self.device {
            return Ok(());
        }
        let kind = FileType::from_raw_mode(found.st_mode);
        match (with, kind) {
            (With::Nothing, FileType::Directory) => cover(&self.directory, false, &target),
            (With::Nothing, _) => cover(&self.file, false, &target),
            (With::Itself, FileType::Directory) if !is_mount(&target)? => {
                cover(&target, true, &target)
            }
            (With::Itself, _) => Ok(()),
            (With::ReadOnly, kind) => self.freeze(path, &target, kind == FileType::Directory),
        }
    }

    /// Makes a file, or a directory with all that is mounted beneath it, read-only.
    fn freeze(&self, path: &Path, target: &OwnedFd, whole: bool) -> rustix::io::Result<()> {
        if flags_of(target)?.contains(StatVfsMountFlags::RDONLY) {
            return Ok(());
        }
        let tree = attach(target, whole, target)?;
        make_read_only(&tree)?;
        let beneath = |mounted: &&PathBuf| whole && *mounted != path && mounted.starts_with(path);
        for mounted in self.mounted.iter().filter(beneath) {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mounted = rustix::fs::open(mounted, flags, Mode::empty())?;
            make_read_only(&mounted)?;
        }
        Ok(())
    }
}

/// Mounts `what`, as a tree if asked, over `target`.
fn cover(what: &OwnedFd, whole: bool, target: &OwnedFd) -> rustix::io::Result<()> {
    attach(what, whole, target).map(drop)
}

fn attach(what: &OwnedFd, whole: bool, target: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    if whole {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    let tree = rustix::mount::open_tree(what, "", flags)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(&tree, "", target, "", flags)?;
    Ok(tree)
}

/// Makes the mount of an open entry read-only, and leaves its other options.
fn make_read_only(mount: &OwnedFd) -> rustix::io::Result<()> {
    let found = flags_of(mount)?;
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    for (has, keep) in [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ] {
        if found.contains(has) {
            flags |= keep;
        }
    }
    let path = format!("/proc/thread-self/fd/{}", mount.as_raw_fd());
    rustix::mount::mount_remount(path, flags, "")
}

fn flags_of(entry: impl AsFd) -> rustix::io::Result<StatVfsMountFlags> {
    Ok(rustix::fs::fstatvfs(entry)?.f_flag)
}

/// Returns the text for a refused call, with the next step.
pub(super) fn refused(what: &str, error: Errno) -> String {
    let step = match error {
        Errno::PERM | Errno::ACCESS | Errno::NOSPC | Errno::USERS => {
            "; allow user namespaces (`sysctl user.max_user_namespaces`, and \
             `kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu) or, in a container, give it a \
             seccomp profile that lets mounts pass, or CAP_SYS_ADMIN"
        }
        _ => "",
    };
    format!("the system does not let it {what}: {error}{step}")
}

/// Whether something is mounted exactly here.
fn is_mount(entry: &OwnedFd) -> rustix::io::Result<bool> {
    let found = rustix::fs::statx(entry, "", AtFlags::EMPTY_PATH, StatxFlags::TYPE)?;
    Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Returns the path in a line of `mountinfo`: the fifth field, with octal escapes.
fn mount_point(line: &[u8]) -> Option<PathBuf> {
    let field = line.split(|byte| *byte == b' ').nth(4)?;
    let mut path = Vec::new();
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.first_chunk::<3>().filter(|_| byte == b'\\');
        let octal = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|octal| u8::from_str_radix(octal, 8).ok()) {
            Some(escaped) => {
                path.push(escaped);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                path.push(byte);
                rest = after;
            }
        }
    }
    Some(PathBuf::from(OsString::from_vec(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_point_is_read_from_its_line() {
        let line = br"36 35 98:0 /mnt1 /mnt/a\040b\134 rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(mount_point(line).unwrap(), Path::new("/mnt/a b\\"));
        assert_eq!(mount_point(b""), None);
    }
}
