//! Making masks: the mounts of a view.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatVfsMountFlags, Statx, StatxAttributes,
    StatxFlags,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, FsPickFlags, MountAttrFlags, MountFlags, MoveMountFlags,
    OpenTreeFlags,
};

use super::super::protocol::{Entry, Masked, With};

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
    device: (u32, u32),
    /// The entry beneath a file or directory that is a mask, by the number of its mount.
    covered: HashMap<u64, Entry>,
}

/// The result of masking paths.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// The places, by their number, where something else was found than what was meant.
    pub(super) missed: Vec<u32>,
    pub(super) problem: Option<String>,
}

impl Mounts {
    pub(super) fn open(place: &Path) -> Result<Self, String> {
        let open = |name: &str| {
            let path = place.join(name);
            let opened = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            opened.map_err(|error| format!("its masks are gone: {error}"))
        };
        let (file, directory) = (open(FILE)?, open(DIRECTORY)?);
        let found = look_at(&file).map_err(|error| error.to_string())?;
        Ok(Self {
            file,
            directory,
            device: Entry::new(&found).device,
            covered: HashMap::new(),
        })
    }

    /// Masks these paths. One that is masked already stays as it is. A path that cannot
    /// be masked keeps none of the others from it.
    pub(super) fn apply(&mut self, places: &[Masked], strict: bool) -> Applied {
        let mut applied = Applied::default();
        // The host may have mounted something since the namespace was made.
        let mounted = OnceCell::new();
        for (number, place) in (0..).zip(places) {
            let path = Path::new(std::ffi::OsStr::from_bytes(&place.path));
            let problem = match self.mask(path, place, &mounted) {
                Ok(true) => continue,
                // It was removed or moved since it was listed.
                Ok(false) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                    applied.missed.push(number);
                    if !strict {
                        continue;
                    }
                    format!(
                        "{} was moved while the command was starting; run it again",
                        path.display()
                    )
                }
                Err(error) => refused(&format!("mask {}", path.display()), error),
            };
            applied.problem.get_or_insert(problem);
        }
        applied
    }

    /// Masks what is meant. Returns `false` if something else is at the path by now.
    fn mask(
        &mut self,
        path: &Path,
        place: &Masked,
        mounted: &OnceCell<rustix::io::Result<Vec<PathBuf>>>,
    ) -> rustix::io::Result<bool> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let target = rustix::fs::openat2(CWD, path, flags, Mode::empty(), links)?;
        let found = look_at(&target)?;
        let entry = Entry::new(&found);
        if entry.device == self.device {
            // It may be the mask of what a command has moved to this path.
            return Ok(self.covered.get(&found.stx_mnt_id) == Some(&place.entry));
        }
        if entry != place.entry {
            return Ok(false);
        }
        let kind = FileType::from_raw_mode(found.stx_mode.into());
        match (place.with, kind) {
            (With::Nothing, kind) => {
                let mask = match kind {
                    FileType::Directory => &self.directory,
                    _ => &self.file,
                };
                let mask = attach(mask, false, &target)?;
                self.covered.insert(look_at(&mask)?.stx_mnt_id, entry);
            }
            (With::Itself, FileType::Directory) if !is_mount_root(&found) => {
                attach(&target, true, &target)?;
            }
            (With::Itself, _) => {}
            (With::ReadOnly, kind) => {
                let whole = kind == FileType::Directory;
                if !is_read_only(&target)? {
                    make_read_only(&attach(&target, whole, &target)?)?;
                }
                if whole {
                    let mounted = mounted.get_or_init(mount_points).as_ref();
                    freeze_beneath(path, mounted.map_err(|error| *error)?)?;
                }
            }
        }
        Ok(true)
    }
}

/// Makes all that is mounted beneath a directory read-only.
fn freeze_beneath(path: &Path, mounted: &[PathBuf]) -> rustix::io::Result<()> {
    let beneath = |mounted: &&PathBuf| *mounted != path && mounted.starts_with(path);
    for mounted in mounted.iter().filter(beneath) {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::open(mounted, flags, Mode::empty()) {
            Ok(mounted) if is_read_only(&mounted)? => {}
            Ok(mounted) => make_read_only(&mounted)?,
            // The host has taken it away since.
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Mounts `what`, as a tree if asked, over `target`, and returns the mount.
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

fn is_read_only(entry: &OwnedFd) -> rustix::io::Result<bool> {
    Ok(flags_of(entry)?.contains(StatVfsMountFlags::RDONLY))
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
fn is_mount_root(found: &Statx) -> bool {
    found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
}

pub(super) fn look_at(entry: &OwnedFd) -> rustix::io::Result<Statx> {
    let wanted = StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::INO | StatxFlags::MNT_ID;
    rustix::fs::statx(entry, "", AtFlags::EMPTY_PATH, wanted)
}

/// Returns where anything is mounted in this thread's namespace.
fn mount_points() -> rustix::io::Result<Vec<PathBuf>> {
    let list = std::fs::read("/proc/thread-self/mountinfo");
    let list = list.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let lines = list.split(|byte| *byte == b'\n');
    Ok(lines.filter_map(mount_point).collect())
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
