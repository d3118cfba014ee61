// Ways to denied files by raw system calls. Prints one line for each, with `read` if it
// returned what the file holds. Each is tried in a process of its own.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *secret;
static int host, supervisor;

// Whether the file that is open as `fd` holds the secret.
static int holds(int fd) {
    char text[1000] = {0};
    return fd >= 0 && pread(fd, text, sizeof text - 1, 0) > 0 && strstr(text, secret);
}

static int file(const char *path) { return open(path, O_RDONLY); }

static int proc(const char *form, int pid) {
    char path[4096], root[2048];
    if (!getcwd(root, sizeof root)) return -1;
    snprintf(path, sizeof path, form, pid, root);
    return file(path);
}

// The number of the spawner, which is confined like this process.
static int thread_of(int pid, int which) {
    char path[100];
    snprintf(path, sizeof path, "/proc/%d/task/%d", pid, pid + which);
    return access(path, F_OK) ? pid : pid + which;
}

#define TRY(name, ...)                                                          \
    do {                                                                        \
        int child = fork();                                                     \
        if (!child) {                                                           \
            alarm(10);                                                          \
            int found = ({ __VA_ARGS__; });                                     \
            _exit(found ? 0 : 1);                                               \
        }                                                                       \
        int status = 0;                                                         \
        waitpid(child, &status, 0);                                             \
        int is_read = WIFEXITED(status) && !WEXITSTATUS(status);                \
        printf("%s\t%s\n", name, is_read ? "read" : "refused");                 \
        fflush(stdout);                                                         \
    } while (0)

static int copied(ssize_t (*copy)(int, int)) {
    int from = file(".env"), to = open("copied", O_RDWR | O_CREAT | O_TRUNC, 0600);
    copy(from, to);
    return holds(to);
}

static ssize_t by_sendfile(int from, int to) { return sendfile(to, from, 0, 999); }
static ssize_t by_range(int from, int to) { return copy_file_range(from, 0, to, 0, 999, 0); }
static ssize_t by_clone(int from, int to) { return ioctl(to, 0x40049409, from) ? by_range(from, to) : 0; }
static ssize_t by_pipe(int from, int to) {
    int ends[2];
    if (pipe(ends)) return -1;
    splice(from, 0, ends[1], 0, 999, 0);
    return splice(ends[0], 0, to, 0, 999, SPLICE_F_NONBLOCK);
}

static int passed(void) {
    // A descriptor from a child, over a pair of sockets.
    int pair[2];
    char space[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
    struct iovec one = {&byte, 1};
    struct msghdr message = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return 0;
    if (!fork()) {
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        int fd = file(".env");
        if (fd < 0) fd = open(".env", O_PATH);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
        sendmsg(pair[1], &message, 0);
        _exit(0);
    }
    close(pair[1]);
    if (recvmsg(pair[0], &message, 0) < 0) return 0;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int fd = -1;
    if (header) memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return holds(fd);
}

static int by_handle(int mount) {
    struct { unsigned bytes; int type; char id[128]; } handle = {.bytes = 128};
    int number;
    if (syscall(SYS_name_to_handle_at, AT_FDCWD, ".env", &handle, &number, 0)) {
        // The number of the inode is told by the directory.
        struct stat found;
        stat(".env", &found);
        handle.bytes = 8;
        handle.type = 1;
        memcpy(handle.id, &found.st_ino, 4);
    }
    return holds(syscall(SYS_open_by_handle_at, mount, &handle, O_RDONLY));
}

static int by_ring(void) {
    struct io_uring_params parameters = {0};
    int ring = syscall(SYS_io_uring_setup, 4, &parameters);
    return ring >= 0 && holds(file(".env"));
}

static int traced(int pid) {
    if (ptrace(PTRACE_ATTACH, pid, 0, 0) && ptrace(PTRACE_SEIZE, pid, 0, 0)) return 0;
    return 1;
}

static int memory(int pid) {
    char own[64];
    struct iovec here = {own, sizeof own}, there = {(void *)&secret, sizeof own};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) > 0;
}

static int taken(int pid) {
    int process = syscall(SYS_pidfd_open, pid, 0);
    for (int fd = 0; fd < 64; fd++) {
        int got = syscall(SYS_pidfd_getfd, process, fd, 0);
        if (got >= 0) return 1;
    }
    return 0;
}

static int entered(int pid, const char *kind, int flag) {
    char path[100];
    snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, kind);
    int own[1] = {file(path)};
    if (setns(own[0], flag) && setns(syscall(SYS_pidfd_open, pid, 0), flag)) return 0;
    return holds(file(".env")) || 1;
}

static int unshared(int flags) {
    if (unshare(flags)) return 0;
    umount2(".env", MNT_DETACH);
    return holds(file(".env")) || 1;
}

static int child_in(int flags) {
    int child = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        umount2(".env", MNT_DETACH);
        _exit(0);
    }
    return child > 0;
}

static int attached(int fd) {
    if (fd < 0) return 0;
    syscall(SYS_move_mount, fd, "", AT_FDCWD, "sub", 4);
    return 1;
}

static int run(const char *path) {
    int ends[2];
    if (pipe(ends)) return 0;
    if (!fork()) {
        dup2(ends[1], 2);
        dup2(ends[1], 1);
        execl("/bin/sh", "sh", path, (char *)0);
        _exit(1);
    }
    close(ends[1]);
    char text[1000] = {0};
    size_t length = 0;
    ssize_t more;
    while ((more = read(ends[0], text + length, sizeof text - 1 - length)) > 0) length += more;
    return strstr(text, secret) != 0;
}

static int swapped(void) {
    // One process swaps a link, the other opens it.
    int child = fork();
    if (!child) {
        for (int n = 0; n < 2000; n++) {
            symlink(n % 2 ? ".env" : "open.txt", "swap");
            rename("swap", "swapped");
        }
        _exit(0);
    }
    int found = 0;
    for (int n = 0; n < 2000 && !found; n++) {
        int fd = file("swapped");
        found = holds(fd);
        if (fd >= 0) close(fd);
    }
    kill(child, SIGKILL);
    return found;
}

static int watched(void) {
    int watch = inotify_init();
    return inotify_add_watch(watch, "secrets/key", IN_ACCESS) >= 0 && holds(file("secrets/key"));
}

int main(int argc, char **argv) {
    host = atoi(argv[1]);
    supervisor = atoi(argv[2]);
    secret = argv[3];
    int fd;
    TRY("open", holds(file(".env")));
    TRY("open for both", holds(open(".env", O_RDWR)));
    TRY("openat", holds(openat(AT_FDCWD, ".env", O_RDONLY | O_CLOEXEC)));
    TRY("openat of a link", holds(openat(AT_FDCWD, "soft", O_RDONLY)));
    TRY("openat of a directory", holds(openat(open("secrets", O_PATH), "key", O_RDONLY)));
    TRY("openat of one below", holds(openat(open("secrets/more", O_PATH), "key", O_RDONLY)));
    TRY("creat", holds(open(".env", O_RDWR | O_CREAT, 0666)));
    TRY("direct", holds(open(".env", O_RDONLY | O_NOATIME)));
    TRY("slashes", holds(file("././/.env")));
    TRY("a path handle", holds(openat(open(".env", O_PATH), "", O_RDONLY)));
    TRY("a path handle by /proc", fd = open(".env", O_PATH); proc("/proc/self/fd/%d", fd) >= 0 && holds(proc("/proc/self/fd/%d", fd)));
    TRY("a path handle of a directory", fd = open("secrets", O_PATH); holds(proc("/proc/self/fd/%d/key", fd)));
    TRY("fchdir", !fchdir(open("secrets", O_PATH)) && holds(file("key")));
    TRY("chmod", chmod(".env", 0777); holds(file(".env")));
    TRY("fchmod", fchmod(open(".env", O_PATH), 0777); holds(file(".env")));
    TRY("fchmodat2", syscall(452, open(".env", O_PATH), "", 0777, AT_EMPTY_PATH); holds(file(".env")));
    TRY("chmod of a directory", fchmodat(AT_FDCWD, "secrets", 0777, 0); holds(file("secrets/key")));
    TRY("chown", chown(".env", getuid(), getgid()); holds(file(".env")));
    TRY("link", link(".env", "hard1"); holds(file("hard1")));
    TRY("linkat", linkat(open(".env", O_PATH), "", AT_FDCWD, "hard2", AT_EMPTY_PATH); holds(file("hard2")));
    TRY("linkat through a link", linkat(AT_FDCWD, "soft", AT_FDCWD, "hard3", AT_SYMLINK_FOLLOW); holds(file("hard3")));
    TRY("link of one inside", link("secrets/key", "hard4"); holds(file("hard4")));
    TRY("symlink to /proc", symlink("/proc/self/cwd/.env", "magic"); holds(file("magic")));
    TRY("rename", rename(".env", "renamed"); int found = holds(file("renamed")); rename("renamed", ".env"); found);
    TRY("rename of a directory", rename("secrets", "renamed2"); int found = holds(file("renamed2/key")); rename("renamed2", "secrets"); found);
    TRY("rename of a parent", rename("conf", "renamed3"); int found = holds(file("renamed3/only.txt")); rename("renamed3", "conf"); found);
    TRY("rename over", rename(".env", "open.txt"); int found = holds(file("open.txt")); rename("open.txt", ".env"); found);
    TRY("exchange", syscall(SYS_renameat2, AT_FDCWD, "sub/dir/.env", AT_FDCWD, "a/b/open.txt", 2); int found = holds(file("a/b/open.txt")); syscall(SYS_renameat2, AT_FDCWD, "sub/dir/.env", AT_FDCWD, "a/b/open.txt", 2); found);
    TRY("exchange of directories", syscall(SYS_renameat2, AT_FDCWD, "secrets", AT_FDCWD, "sub", 2); int found = holds(file("sub/key")); syscall(SYS_renameat2, AT_FDCWD, "secrets", AT_FDCWD, "sub", 2); found);
    TRY("mmap", void *at = mmap(0, 4096, PROT_READ, MAP_PRIVATE, file(".env"), 0); at != MAP_FAILED && strstr(at, secret));
    TRY("sendfile", copied(by_sendfile));
    TRY("copy_file_range", copied(by_range));
    TRY("reflink", copied(by_clone));
    TRY("splice", copied(by_pipe));
    TRY("a descriptor from a child", passed());
    TRY("run by the shell", run("secrets/key"));
    TRY("run by the shell, a file", run(".env"));
    TRY("execve", execl(".env", ".env", (char *)0); holds(file(".env")));
    TRY("a swapped link", swapped());
    TRY("a watch", watched());
    TRY("truncate", truncate("conf/only.txt", 5) == 0 && !holds(file("conf/only.txt")));
    TRY("/proc/self/root", holds(proc("/proc/%d/root%s/.env", getpid())));
    TRY("/proc/self/cwd", holds(file("/proc/self/cwd/.env")));
    TRY("/proc of the thread", holds(file("/proc/thread-self/cwd/.env")));
    TRY("/proc of the parent", holds(proc("/proc/%d/cwd/.env", getppid())));
    TRY("/proc/1/root", holds(proc("/proc/%d/root%s/.env", 1)));
    TRY("/proc/1/cwd", holds(proc("/proc/%d/cwd%s/.env", 1)));
    TRY("root of the host", holds(proc("/proc/%d/root%s/.env", host)));
    TRY("cwd of the host", holds(proc("/proc/%d/cwd/.env", host)));
    TRY("root of the supervisor", holds(proc("/proc/%d/root%s/.env", supervisor)));
    TRY("cwd of the supervisor", holds(proc("/proc/%d/cwd%s/.env", supervisor)));
    for (int which = 1; which < 12; which++) {
        char name[100];
        snprintf(name, sizeof name, "root of thread %d of the supervisor", which);
        TRY(name, holds(proc("/proc/%d/root%s/.env", thread_of(supervisor, which))));
    }
    TRY("memory of the supervisor", proc("/proc/%d/mem", supervisor) >= 0);
    TRY("memory of the host", proc("/proc/%d/mem", host) >= 0);
    TRY("reading the supervisor's memory", memory(supervisor));
    TRY("reading the host's memory", memory(host));
    TRY("tracing the supervisor", traced(supervisor));
    TRY("tracing a thread of it", traced(thread_of(supervisor, 3)));
    TRY("tracing the host", traced(host));
    TRY("a descriptor of the supervisor", taken(supervisor));
    TRY("a descriptor of the host", taken(host));
    TRY("a handle", by_handle(open(".", O_RDONLY)));
    TRY("a handle of the root", by_handle(open("/usr", O_RDONLY)));
    TRY("io_uring", by_ring());
    TRY("umount", umount2(".env", MNT_DETACH) == 0 && holds(file(".env")));
    TRY("umount expired", umount2(".env", MNT_EXPIRE); umount2(".env", MNT_EXPIRE) == 0);
    TRY("umount of the directory", umount2("secrets", MNT_DETACH) == 0);
    TRY("bind", mount("open.txt", ".env", 0, MS_BIND, 0) == 0);
    TRY("bind of all", mount(".", "sub", 0, MS_BIND, 0) == 0);
    TRY("remount", mount(0, ".env", 0, MS_REMOUNT | MS_BIND, 0) == 0);
    TRY("move of a mount", mount(".env", "open.txt", 0, MS_MOVE, 0) == 0);
    TRY("propagation", mount(0, "/", 0, MS_SHARED | MS_REC, 0) == 0);
    TRY("overlay", mount("x", "sub", "overlay", 0, "lowerdir=.") == 0);
    TRY("tmpfs", mount("x", "secrets", "tmpfs", 0, "") == 0);
    TRY("open_tree", attached(syscall(428, AT_FDCWD, ".", 1)));
    TRY("open_tree of all", attached(syscall(428, AT_FDCWD, ".", 0x8001)));
    TRY("open_tree without a copy", holds(openat(syscall(428, AT_FDCWD, ".", 0), ".env", O_RDONLY)));
    TRY("fsopen", syscall(430, "tmpfs", 0) >= 0);
    TRY("fspick", syscall(433, AT_FDCWD, ".env", 0) >= 0);
    TRY("mount_setattr", long attributes[4] = {0, 1, 0, 0}; syscall(442, AT_FDCWD, ".env", 0, attributes, sizeof attributes) == 0);
    TRY("pivot_root", syscall(SYS_pivot_root, ".", "sub") == 0);
    TRY("chroot", chroot(".") == 0);
    TRY("setns of the host", entered(host, "mnt", CLONE_NEWNS));
    TRY("setns of the supervisor", entered(supervisor, "mnt", CLONE_NEWNS));
    TRY("setns of its user", entered(supervisor, "user", CLONE_NEWUSER));
    TRY("setns of itself", entered(getpid(), "mnt", CLONE_NEWNS));
    TRY("unshare", unshared(CLONE_NEWNS));
    TRY("unshare of the user", unshared(CLONE_NEWUSER));
    TRY("unshare of both", unshared(CLONE_NEWUSER | CLONE_NEWNS));
    TRY("clone with mounts", child_in(CLONE_NEWNS));
    TRY("clone with a user", child_in(CLONE_NEWUSER | CLONE_NEWNS));
    TRY("fanotify", syscall(SYS_fanotify_init, 0, 0) >= 0);
    TRY("quotactl", syscall(SYS_quotactl, 0, ".", 0, 0) == 0);
    TRY("unlink", unlink(".env"); holds(file(".env")));
    return 0;
}
