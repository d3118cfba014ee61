//! The system call filter: refuses operations that Landlock does not cover.
//!
//! Pointer arguments cannot be examined here, so calls that take a path are
//! refused entirely or not at all. Arguments are compared as 32 bits where the
//! kernel reads 32 bits, because the caller can choose the upper half freely.

use std::collections::BTreeMap;

use nix::libc;
use rustix::thread::Pid;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

/// Calls above this one are unknown to this file and fail with "not
/// implemented", which every program must expect. So do those of the x32 ABI,
/// which are the known calls with numbers from 0x4000_0000 on.
const LAST_KNOWN: u32 = 467;

// Calls of newer kernels with the same number on every architecture, which not
// every C library names.
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;

#[cfg(target_arch = "aarch64")]
const KEXEC_FILE_LOAD: i64 = 294;
#[cfg(not(target_arch = "aarch64"))]
const KEXEC_FILE_LOAD: i64 = 320;

/// Refused for all arguments.
const REFUSED: &[i64] = &[
    // Run file and socket operations that no filter sees.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Reach into other processes. The supervisor has a thread in this domain.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_bpf,
    // Mounts and name spaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_unshare,
    libc::SYS_setns,
    // Open a file without a path, and watch files everywhere.
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // Keys of the user's session.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Memory and messages shared by number, not by path.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // The machine itself.
    libc::SYS_syslog,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
];

/// Refused as if the file system did not support them, so that `cp -a` and
/// similar programs go on. An access control list is an extended attribute, and
/// Landlock covers neither.
const ATTRIBUTES: &[i64] = &[
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SETXATTRAT,
    REMOVEXATTRAT,
];

/// Refused as on an old kernel: programs fall back to `clone`, `kill` and
/// `openat`, whose arguments can be examined. A process descriptor may refer to
/// the thread that starts commands.
const MISSING: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_pidfd_send_signal,
    libc::SYS_openat2,
];

const NAMESPACE_FLAGS: &[i32] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

// Two that type into a terminal, and two that set the process that a descriptor
// signals.
const TIOCSTI: i32 = 0x5412;
const TIOCLINUX: i32 = 0x541c;
const FIOSETOWN: i32 = 0x8901;
const SIOCSPGRP: i32 = 0x8902;

/// The flag that creates a file without a name. [`libc::O_TMPFILE`] also
/// contains `O_DIRECTORY`.
const TMPFILE: i32 = libc::O_TMPFILE & !libc::O_DIRECTORY;

/// The `fcntl` command that sets the process that a descriptor signals, by a
/// structure.
const F_SETOWN_EX: i32 = 15;

/// A comparison of the lower 32 bits of an argument.
type Condition = (u8, SeccompCmpOp, i32);

/// A refused call. With conditions, it is refused only if all of them hold.
type Refusal = (i64, Vec<Condition>);

/// Returns the architecture, if there are filters for it.
pub(super) fn architecture() -> Option<TargetArch> {
    match std::env::consts::ARCH {
        "x86_64" => Some(TargetArch::x86_64),
        "aarch64" => Some(TargetArch::aarch64),
        _ => None,
    }
}

/// Installs filters permanently. All of them apply.
pub(super) fn apply(filters: &[BpfProgram]) -> Result<(), String> {
    filters.iter().try_for_each(|program| {
        apply_filter(program)
            .map_err(|error| format!("cannot enter the system call filter: {error}"))
    })
}

/// The ID in compiled filters of the thread that will start processes: larger than
/// the kernel gives, and no other number in a filter.
const ANY_SPAWNER: i32 = 0x7fed_cba9;

/// Compiled filters, but for the thread that will start processes.
#[derive(Debug)]
pub(super) struct Filters(Vec<BpfProgram>);

impl Filters {
    pub(super) fn new(network: bool) -> Result<Self, String> {
        Ok(Self(vec![
            compile(not_permitted(network), libc::EPERM)?,
            compile(whole(ATTRIBUTES), libc::EOPNOTSUPP)?,
            compile(whole(MISSING), libc::ENOSYS)?,
            unknown_calls(),
        ]))
    }

    /// Returns the filters for processes that the thread `spawner` starts.
    pub(super) fn for_thread(&self, spawner: Pid) -> Vec<BpfProgram> {
        let mut filters = self.0.clone();
        let (any, own) = (ANY_SPAWNER, spawner.as_raw_nonzero().get());
        for step in filters.iter_mut().flatten() {
            if step.k == any.unsigned_abs() {
                step.k = own.unsigned_abs();
            }
        }
        filters
    }
}

fn compile(refused: Vec<Refusal>, errno: i32) -> Result<BpfProgram, String> {
    let architecture = architecture().ok_or("there is no system call filter for this processor")?;
    let build = || -> Result<BpfProgram, seccompiler::BackendError> {
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
        for (call, conditions) in refused {
            // A call without rules is refused for all arguments. So none is both
            // refused whole and with conditions: the conditions would win.
            let of_call = rules.entry(call).or_default();
            if !conditions.is_empty() {
                let conditions = conditions.into_iter().map(|(argument, operator, value)| {
                    let value = value.unsigned_abs().into();
                    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
                });
                of_call.push(SeccompRule::new(conditions.collect::<Result<_, _>>()?)?);
            }
        }
        let refuse = SeccompAction::Errno(errno.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture)?.try_into()
    };
    build().map_err(|error| format!("cannot build the system call filter: {error}"))
}

fn whole(calls: &[i64]) -> Vec<Refusal> {
    calls.iter().map(|&call| (call, Vec::new())).collect()
}

fn not_permitted(network: bool) -> Vec<Refusal> {
    let mut refused = whole(REFUSED);
    refused.extend(sockets(network));
    refused.extend(signals());
    refused.extend(set_user_id());
    let namespaces = NAMESPACE_FLAGS.iter();
    refused.extend(namespaces.map(|&flag| (libc::SYS_clone, vec![has(0, flag)])));
    let requests = [TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP];
    refused.extend(requests.map(|request| (libc::SYS_ioctl, vec![is(1, request)])));
    // Limits of another process: a CPU time limit of zero would kill it.
    refused.push((libc::SYS_prlimit64, vec![is_not(0, 0)]));
    refused
}

/// The creation of set-user-ID programs.
fn set_user_id() -> Vec<Refusal> {
    let set_user_id = |argument| has(argument, libc::S_ISUID.cast_signed());
    // Each call with the position of its mode argument.
    let modes = [
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_chmod, 1),
        (libc::SYS_fchmod, 1),
        (libc::SYS_fchmodat, 2),
        (FCHMODAT2, 2),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_mknod, 1),
        (libc::SYS_mknodat, 2),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_creat, 1),
    ];
    let mut refused = modes
        .map(|(call, mode)| (call, vec![set_user_id(mode)]))
        .to_vec();
    // If no file is created, the mode may be anything.
    for makes in [libc::O_CREAT, TMPFILE] {
        #[cfg(target_arch = "x86_64")]
        refused.push((libc::SYS_open, vec![has(1, makes), set_user_id(2)]));
        refused.push((libc::SYS_openat, vec![has(2, makes), set_user_id(3)]));
    }
    refused
}

fn sockets(network: bool) -> Vec<Refusal> {
    let mut refused: Vec<Refusal> = Vec::new();
    if network {
        let inet = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
        refused.push((
            libc::SYS_socket,
            inet.map(|domain| is_not(0, domain)).into(),
        ));
        // Of netlink only protocol 0, which lists addresses and routes.
        let other_netlink = vec![is(0, libc::AF_NETLINK), is_not(2, 0)];
        refused.push((libc::SYS_socket, other_netlink));
    } else {
        // Landlock alone would allow everything but TCP, and of TCP what connects
        // without `connect` or listens without `bind`.
        refused.push((libc::SYS_socket, Vec::new()));
    }
    // A datagram socket can be redirected even if it was created as one of a
    // pair, and `SOCK_RAW` is another name for it.
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
        let is_kind = (1, SeccompCmpOp::MaskedEq(0xf), kind);
        refused.push((libc::SYS_socketpair, vec![is_kind]));
    }
    refused
}

/// Signals to the thread that starts commands. Landlock lets processes of one
/// domain signal each other, and this thread is in the commands' domain: a fatal
/// signal to it would end the supervisor.
fn signals() -> Vec<Refusal> {
    let to = |argument| is(argument, ANY_SPAWNER);
    // The last two are signals that a descriptor sends: to a process ID, or by a
    // structure that cannot be examined here.
    [
        (libc::SYS_kill, to(0)),
        (libc::SYS_tkill, to(0)),
        (libc::SYS_tgkill, to(1)),
        (libc::SYS_rt_sigqueueinfo, to(0)),
        (libc::SYS_rt_tgsigqueueinfo, to(1)),
        (libc::SYS_fcntl, is(1, libc::F_SETOWN)),
        (libc::SYS_fcntl, is(1, F_SETOWN_EX)),
    ]
    .map(|(call, condition)| (call, vec![condition]))
    .into()
}

fn is(argument: u8, value: i32) -> Condition {
    (argument, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: i32) -> Condition {
    (argument, SeccompCmpOp::Ne, value)
}

/// A condition that all bits of `value` are set.
fn has(argument: u8, value: i32) -> Condition {
    let mask = SeccompCmpOp::MaskedEq(value.unsigned_abs().into());
    (argument, mask, value)
}

/// Builds the filter for [`LAST_KNOWN`], which the compiler cannot express.
fn unknown_calls() -> BpfProgram {
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let not_implemented = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    vec![
        // Load the number. If it is above the last known one go on, else skip
        // one.
        step(0x20, 0, 0, 0),
        step(0x25, 0, 1, LAST_KNOWN),
        step(0x06, 0, 0, not_implemented.into()),
        step(0x06, 0, 0, SeccompAction::Allow.into()),
    ]
}
