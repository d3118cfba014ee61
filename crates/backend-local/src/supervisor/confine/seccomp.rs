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
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;
const FIOSETOWN: u64 = 0x8901;
const SIOCSPGRP: u64 = 0x8902;

/// The flag that creates a file without a name. [`libc::O_TMPFILE`] also
/// contains `O_DIRECTORY`.
const TMPFILE: i32 = libc::O_TMPFILE & !libc::O_DIRECTORY;

/// The `fcntl` command that sets the process that a descriptor signals, by a
/// structure.
const F_SETOWN_EX: i32 = 15;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Compiled filters, all of which apply.
pub(super) struct Filters(Vec<BpfProgram>);

impl Filters {
    /// Installs the filters permanently.
    pub(super) fn apply(&self) -> Result<(), String> {
        self.0.iter().try_for_each(|program| {
            apply_filter(program)
                .map_err(|error| format!("cannot enter the system call filter: {error}"))
        })
    }
}

/// Returns the architecture, if there are filters for it.
pub(super) fn architecture() -> Option<TargetArch> {
    match std::env::consts::ARCH {
        "x86_64" => Some(TargetArch::x86_64),
        "aarch64" => Some(TargetArch::aarch64),
        _ => None,
    }
}

/// Builds the filters for processes that the thread `spawner` starts.
pub(super) fn filters(network: bool, spawner: Pid) -> Result<Filters, String> {
    let not_permitted = not_permitted(network, spawner)
        .map_err(|error| format!("cannot build the system call filter: {error}"))?;
    let programs = [
        compile(not_permitted, libc::EPERM)?,
        compile(whole(ATTRIBUTES), libc::EOPNOTSUPP)?,
        compile(whole(MISSING), libc::ENOSYS)?,
        unknown_calls(),
    ];
    Ok(Filters(programs.into()))
}

fn compile(rules: Rules, errno: i32) -> Result<BpfProgram, String> {
    let architecture = architecture().ok_or("there is no system call filter for this processor")?;
    SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno.unsigned_abs()),
        architecture,
    )
    .and_then(TryInto::try_into)
    .map_err(|error| format!("cannot build the system call filter: {error}"))
}

fn whole(calls: &[i64]) -> Rules {
    calls.iter().map(|&call| (call, Vec::new())).collect()
}

fn not_permitted(network: bool, spawner: Pid) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = whole(REFUSED);
    socket_rules(&mut rules, network)?;
    signal_rules(&mut rules, spawner)?;
    set_user_id_rules(&mut rules)?;
    let mut add = |call, conditions: Vec<SeccompCondition>| {
        rules
            .entry(call)
            .or_default()
            .push(SeccompRule::new(conditions)?);
        Ok::<_, seccompiler::BackendError>(())
    };
    for &flag in NAMESPACE_FLAGS {
        add(libc::SYS_clone, vec![has(0, flag.unsigned_abs().into())?])?;
    }
    for request in [TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP] {
        add(libc::SYS_ioctl, vec![is(1, request)?])?;
    }
    // Limits of another process: a CPU time limit of zero would kill it.
    add(libc::SYS_prlimit64, vec![is_not(0, 0)?])?;
    Ok(rules)
}

/// Prevents commands from creating set-user-ID programs.
fn set_user_id_rules(rules: &mut Rules) -> Result<(), seccompiler::BackendError> {
    let set_user_id = |argument| has(argument, u64::from(libc::S_ISUID));
    let mut add = |call, conditions: Vec<SeccompCondition>| {
        let of_call: &mut Vec<_> = rules.entry(call).or_default();
        of_call.push(SeccompRule::new(conditions)?);
        Ok::<_, seccompiler::BackendError>(())
    };
    // Each call with the position of its mode argument.
    for (call, mode) in [
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
    ] {
        add(call, vec![set_user_id(mode)?])?;
    }
    // If no file is created, the mode may be anything.
    for makes in [libc::O_CREAT, TMPFILE] {
        let makes = u64::from(makes.unsigned_abs());
        #[cfg(target_arch = "x86_64")]
        add(libc::SYS_open, vec![has(1, makes)?, set_user_id(2)?])?;
        add(libc::SYS_openat, vec![has(2, makes)?, set_user_id(3)?])?;
    }
    Ok(())
}

fn socket_rules(rules: &mut Rules, network: bool) -> Result<(), seccompiler::BackendError> {
    let mut sockets = Vec::new();
    if network {
        let inet = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]
            .map(|domain| is_not(0, u64::from(domain.unsigned_abs())));
        sockets.push(SeccompRule::new(
            inet.into_iter().collect::<Result<_, _>>()?,
        )?);
        // Of netlink only protocol 0, which lists addresses and routes.
        let netlink = is(0, u64::from(libc::AF_NETLINK.unsigned_abs()))?;
        sockets.push(SeccompRule::new(vec![netlink, is_not(2, 0)?])?);
    }
    // Without conditions, every socket is refused. Landlock alone would allow
    // everything but TCP, and of TCP what connects without `connect` or listens
    // without `bind`.
    rules.insert(libc::SYS_socket, sockets);
    // A datagram socket can be redirected even if it was created as one of a
    // pair, and `SOCK_RAW` is another name for it.
    let pairs = [libc::SOCK_DGRAM, libc::SOCK_RAW]
        .map(|kind| SeccompRule::new(vec![masked(1, 0xf, kind.unsigned_abs().into())?]));
    rules.insert(
        libc::SYS_socketpair,
        pairs.into_iter().collect::<Result<_, _>>()?,
    );
    Ok(())
}

/// Adds rules that protect the thread that starts commands. Landlock lets
/// processes of one domain signal each other, and this thread is in the
/// commands' domain: a fatal signal to it would end the supervisor.
fn signal_rules(rules: &mut Rules, spawner: Pid) -> Result<(), seccompiler::BackendError> {
    let spawner = u64::from(spawner.as_raw_nonzero().get().unsigned_abs());
    for (call, argument) in [
        (libc::SYS_kill, 0),
        (libc::SYS_tkill, 0),
        (libc::SYS_tgkill, 1),
        (libc::SYS_rt_sigqueueinfo, 0),
        (libc::SYS_rt_tgsigqueueinfo, 1),
    ] {
        let to_it = SeccompRule::new(vec![is(argument, spawner)?])?;
        rules.entry(call).or_default().push(to_it);
    }
    // Signals that a descriptor sends: to a process ID, or by a structure that
    // cannot be examined here.
    for command in [libc::F_SETOWN, F_SETOWN_EX] {
        let owner = SeccompRule::new(vec![is(1, u64::from(command.unsigned_abs()))?])?;
        rules.entry(libc::SYS_fcntl).or_default().push(owner);
    }
    Ok(())
}

fn is(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

/// A condition that all bits of `value` are set.
fn has(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    masked(argument, value, value)
}

fn masked(
    argument: u8,
    mask: u64,
    value: u64,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(
        argument,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(mask),
        value,
    )
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
