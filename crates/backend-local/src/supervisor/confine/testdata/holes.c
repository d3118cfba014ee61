// Tries operations that Landlock does not refuse: `holes OUTSIDE-FILE SOCKET
// HOST-PID SPAWNER-TID`. Prints a line for each that was not refused.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/capability.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/xattr.h>

static void expect(const char *what, long got, int wanted) {
    int seen = got < 0 ? errno : 0;
    if (seen != wanted) printf("%s: %s\n", what, seen ? strerror(seen) : "not refused");
}

static void refused(const char *what, long got) {
    if (got >= 0) printf("%s: not refused\n", what);
    else if (errno != EPERM && errno != EACCES) printf("%s: %s\n", what, strerror(errno));
}

static void sockets(const char *path) {
    const int families[] = {AF_UNIX, AF_PACKET, AF_VSOCK, AF_ALG, AF_BLUETOOTH, AF_XDP};
    for (unsigned i = 0; i < sizeof families / sizeof *families; i++)
        refused("socket", socket(families[i], SOCK_STREAM, 0));
    refused("raw", socket(AF_INET, SOCK_RAW, 1));
    refused("netlink audit", socket(AF_NETLINK, SOCK_RAW, 9));
    // The kernel ignores the upper half of the argument.
    refused("wide", syscall(SYS_socket, 0x100000000L | AF_UNIX, SOCK_STREAM, 0));
    int pair[2];
    refused("datagram pair", socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair));
    refused("raw pair", socketpair(AF_UNIX, SOCK_RAW, 0, pair));
    expect("stream pair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    strncpy(to.sun_path, path, sizeof to.sun_path - 1);
    expect("pair", connect(pair[0], (struct sockaddr *)&to, sizeof to), EISCONN);
}

static void processes(int host, int spawner) {
    char byte;
    struct iovec here = {&byte, 1}, there = {&byte, 1};
    struct rlimit none = {0, 0};
    const int targets[] = {host, spawner};
    for (int i = 0; i < 2; i++) {
        int pid = targets[i];
        char path[64];
        refused("kill", kill(pid, 0));
        refused("tkill", syscall(SYS_tkill, pid, 0));
        refused("tgkill", syscall(SYS_tgkill, host, pid, 0));
        siginfo_t info = {.si_signo = SIGURG, .si_code = SI_QUEUE};
        refused("sigqueue", syscall(SYS_rt_sigqueueinfo, pid, SIGURG, &info));
        refused("tgsigqueue", syscall(SYS_rt_tgsigqueueinfo, host, pid, SIGURG, &info));
        refused("F_SETOWN", fcntl(0, F_SETOWN, pid));
        struct f_owner_ex owner = {F_OWNER_TID, pid};
        refused("F_SETOWN_EX", fcntl(0, F_SETOWN_EX, &owner));
        refused("FIOSETOWN", ioctl(0, 0x8901, &pid));
        refused("ptrace", ptrace(PTRACE_SEIZE, pid, 0, 0));
        refused("vm_readv", process_vm_readv(pid, &here, 1, &there, 1, 0));
        refused("vm_writev", process_vm_writev(pid, &here, 1, &there, 1, 0));
        refused("prlimit", prlimit(pid, RLIMIT_CPU, 0, &none));
        const char *files[] = {"environ", "mem", "maps", "cmdline", "fd"};
        for (int f = 0; f < 5; f++) {
            snprintf(path, sizeof path, "/proc/%d/%s", pid, files[f]);
            refused(path, open(path, O_RDONLY));
        }
    }
    int own = syscall(SYS_pidfd_open, getpid(), 0);
    expect("pidfd_send_signal", syscall(SYS_pidfd_send_signal, own, 0, 0, 0), ENOSYS);
    refused("pidfd_getfd", syscall(SYS_pidfd_getfd, own, 0, 0));
    // It may signal processes of its own domain.
    expect("own", kill(getpid(), 0), 0);
    expect("parent limits", prlimit(0, RLIMIT_CPU, 0, &none), 0);
}

static void kernel(void) {
    refused("unshare", unshare(CLONE_NEWUSER));
    refused("clone", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
    refused("clone", syscall(SYS_clone, CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0));
    expect("clone3", syscall(SYS_clone3, 0, 0), ENOSYS);
    refused("io_uring", syscall(SYS_io_uring_setup, 1, 0));
    refused("bpf", syscall(SYS_bpf, 0, 0, 0));
    refused("perf", syscall(SYS_perf_event_open, 0, 0, -1, -1, 0));
    refused("keyctl", syscall(SYS_keyctl, 0, -3, 0));
    refused("userfaultfd", syscall(SYS_userfaultfd, 1));
    refused("mount", syscall(SYS_mount, "none", "/", "tmpfs", 0, 0));
    refused("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/", 1));
    refused("handle", syscall(SYS_open_by_handle_at, AT_FDCWD, 0, 0));
    refused("fanotify", syscall(SYS_fanotify_init, 0, 0));
    refused("module", syscall(SYS_finit_module, 0, "", 0));
    refused("shm", shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600));
    refused("mq", syscall(SYS_mq_open, "x", O_CREAT | O_RDWR, 0600, 0));
    refused("syslog", syscall(SYS_syslog, 10, 0, 0));
    refused("terminal", ioctl(0, 0x5412, "x"));
    refused("wide terminal", syscall(SYS_ioctl, 0, 0x100005412L, "x"));
    expect("unknown", syscall(468), ENOSYS);
#ifdef __x86_64__
    expect("x32", syscall(0x40000000 | 39), ENOSYS);
#endif
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2];
    memset(sets, 0xff, sizeof sets);
    syscall(SYS_capget, &header, sets);
    for (int i = 0; i < 2; i++)
        if (sets[i].effective | sets[i].permitted | sets[i].inheritable) puts("capabilities left");
    memset(sets, 0xff, sizeof sets);
    refused("capset", syscall(SYS_capset, &header, sets));
}

// The file is inside, and so are files created in its directory.
static void set_user_id(const char *file, const char *inside) {
    char new[4096];
    snprintf(new, sizeof new, "%s-new", file);
    int handle = open(file, O_RDONLY);
    refused("chmod", chmod(file, 04755));
    refused("fchmod", fchmod(handle, 04755));
    refused("fchmodat", syscall(SYS_fchmodat, AT_FDCWD, file, 04755));
    refused("wide fchmodat", syscall(SYS_fchmodat, AT_FDCWD, file, 0x100000000L | 04755));
    // fchmodat2, which older headers do not name.
    refused("fchmodat2", syscall(452, AT_FDCWD, file, 04755, 0));
    refused("fchmodat2 by handle", syscall(452, handle, "", 04755, AT_EMPTY_PATH));
    close(handle);
    refused("mknod", mknod(new, S_IFREG | 04755, 0));
    refused("mknodat", syscall(SYS_mknodat, AT_FDCWD, new, S_IFREG | 04755, 0));
    refused("wide mknodat", syscall(SYS_mknodat, AT_FDCWD, new, 0x100000000L | S_IFREG | 04755, 0));
    refused("open", open(new, O_CREAT | O_WRONLY, 04755));
    refused("openat", syscall(SYS_openat, AT_FDCWD, new, O_CREAT | O_EXCL | O_RDWR, 06755));
#ifdef SYS_open
    refused("old open", syscall(SYS_open, new, O_CREAT | O_WRONLY, 04755));
    refused("creat", syscall(SYS_creat, new, 04755));
    refused("old mknod", syscall(SYS_mknod, new, S_IFREG | 04755, 0));
#endif
    refused("nameless", open(inside, O_TMPFILE | O_RDWR, 04755));
    struct { unsigned long long flags, mode, resolve; } how = {O_CREAT | O_WRONLY, 04755, 0};
    expect("openat2", syscall(SYS_openat2, AT_FDCWD, new, &how, sizeof how), ENOSYS);
    // The mode only matters if a file is created.
    expect("ordinary", syscall(SYS_openat, AT_FDCWD, file, O_RDONLY, 04755), 0);
    expect("made", open(new, O_CREAT | O_WRONLY, 0755), 0);
    expect("nameless made", open(inside, O_TMPFILE | O_RDWR, 0755), 0);
    struct stat found;
    expect("stat", stat(new, &found), 0);
    if (found.st_mode & S_ISUID) puts("set user id made");
    expect("stat", stat(file, &found), 0);
    if (found.st_mode & S_ISUID) puts("set user id set");
    unlink(new);
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    sockets(argv[2]);
    processes(atoi(argv[3]), atoi(argv[4]));
    kernel();
    expect("xattr", setxattr(argv[1], "user.x", "x", 1, 0), EOPNOTSUPP);
    expect("acl", removexattr(argv[1], "system.posix_acl_access"), EOPNOTSUPP);
    char *slash = strrchr(argv[1], '/');
    char inside[4096];
    snprintf(inside, sizeof inside, "%.*s", (int)(slash - argv[1]), argv[1]);
    set_user_id(argv[1], inside);
    puts("done");
    return 0;
}
