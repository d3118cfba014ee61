//! Files that must not be destroyed, and programs that destroy.

use crate::word_list::words;

/// Trees that, like [`DEEP_TREES`], must not be destroyed with all of their children.
pub(crate) const TREES: &[&str] = words!(
    "/dev /home /libx32 /media /mnt /opt /root /run /snap /srv /usr /var /usr/lib /usr/lib64
     /usr/libexec /usr/share /usr/local /usr/include /var/lib /nix /nix/store /Library
     /Applications /Users /Volumes /private /private/var /cores /mnt/c"
);

/// Trees in which nothing may be destroyed recursively.
pub(crate) const DEEP_TREES: &[&str] = words!(
    "/bin /boot /etc /lib /lib32 /lib64 /proc /sbin /sys /usr/bin /usr/sbin /System /private/etc"
);

/// Trees whose children are homes.
pub(crate) const HOMES: &[&str] = &["/home", "/Users"];

/// Files that give control of the system to a program that can write them.
pub(crate) const CRITICAL_FILES: &[&str] = words!(
    "/etc/passwd /etc/shadow /etc/gshadow /etc/group /etc/sudoers /etc/sudoers.d /etc/fstab
     /etc/crontab /etc/ld.so.preload /etc/pam.d /etc/ssh/sshd_config /proc/sysrq-trigger /proc/sys
     /sys/power /boot"
);

/// Prefixes of names in `/dev` of devices that hold file systems or memory.
pub(crate) const DEVICES: &[&str] = words!(
    "sd hd vd xvd nvme mmcblk dm- mapper/ disk/ md loop sr nbd zd zvol/ mem kmem port rdisk disk
     block/ ram pmem bcache mtd root fd0 fd1 st0 st1 nst sg drbd rbd dasd ubi zram watchdog"
);

/// Directories in `/dev` without file systems or memory. All others hold volumes.
pub(crate) const DEVICE_DIRS: &[&str] = words!(
    "bus char cpu dma_heap dri fd hugepages input mqueue net pts serial shm snd tcp udp usb v4l
     vfio"
);

/// Programs that destroy the contents of a device, whatever their arguments.
pub(crate) const FORMATTERS: &[&str] = words!(
    "mke2fs mkswap wipefs blkdiscard mkdosfs mkntfs mkreiserfs newfs diskutil-erase pvcreate
     pvremove vgremove lvremove badblocks sfill nwipe dban scrub"
);

/// Programs that change partitions, unless an option makes them only show.
pub(crate) const PARTITIONERS: &[&str] =
    &["fdisk", "sfdisk", "cfdisk", "gdisk", "sgdisk", "parted"];

/// The options and words with which [`PARTITIONERS`] only show.
pub(crate) const LIST_ONLY_OPTIONS: &[&str] =
    words!("-l --list -p --print -d --dump --help --version -V -v -J print");

/// Programs that stop the machine.
pub(crate) const STOPPERS: &[&str] = words!("shutdown reboot halt poweroff killall5 kexec");

/// Words with which a service manager stops the machine.
pub(crate) const STOPPING_VERBS: &[&str] = words!(
    "poweroff reboot halt kexec soft-reboot rescue emergency suspend hibernate hybrid-sleep default
     exit isolate"
);

/// Words with which programs for disks and volumes erase them.
pub(crate) const ERASING_VERBS: &[&str] = words!(
    "eraseDisk eraseVolume partitionDisk secureErase zeroDisk destroy luksFormat luksErase erase
     format sanitize remove_all --zero-superblock --security-erase --trim-sector-ranges labelclear
     wipe_table"
);
