// Ways to a denied file by raw system calls. Prints one line for each, with `read` if it
// returned what the file holds.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *secret;

static void say(const char *name, int fd) {
    char text[1000] = {0};
    int read_it = fd >= 0 && pread(fd, text, sizeof text - 1, 0) > 0 && strstr(text, secret);
    printf("%s\t%s\n", name, read_it ? "read" : "refused");
    fflush(stdout);
    if (fd >= 0) close(fd);
}

int main(int argc, char **argv) {
    secret = argv[argc - 1];
    say("open", open(".env", O_RDONLY));
    say("openat", openat(AT_FDCWD, ".env", O_RDONLY | O_CLOEXEC));
    say("openat of a link", openat(AT_FDCWD, "soft", O_RDONLY));
    say("openat of a directory", openat(open("secrets", O_PATH), "key", O_RDONLY));
    say("creat", open(".env", O_RDWR | O_CREAT, 0666));
    say("three slashes", open("././/.env", O_RDONLY));
    chmod(".env", 0777);
    say("chmod", open(".env", O_RDONLY));
    fchmodat(AT_FDCWD, "secrets", 0777, 0);
    say("chmod of a directory", open("secrets/key", O_RDONLY));
    umount2(".env", MNT_DETACH);
    say("umount", open(".env", O_RDONLY));
    umount2(".env", MNT_EXPIRE);
    umount2(".env", MNT_EXPIRE);
    say("umount expired", open(".env", O_RDONLY));
    mount("open.txt", ".env", 0, MS_BIND, 0);
    say("bind", open(".env", O_RDONLY));
    mount(0, ".env", 0, MS_REMOUNT | MS_BIND, 0);
    say("remount", open(".env", O_RDONLY));
    link(".env", "hard");
    say("link", open("hard", O_RDONLY));
    linkat(open(".env", O_PATH), "", AT_FDCWD, "hard", AT_EMPTY_PATH);
    say("linkat", open("hard", O_RDONLY));
    rename(".env", "renamed");
    say("rename", open("renamed", O_RDONLY));
    rename("renamed", ".env");
    syscall(SYS_renameat2, AT_FDCWD, "secrets", AT_FDCWD, "sub", 2);
    say("exchange of directories", open("sub/key", O_RDONLY));
    syscall(SYS_renameat2, AT_FDCWD, "secrets", AT_FDCWD, "sub", 2);
    unlink(".env");
    say("unlink", open(".env", O_RDONLY));
    return 0;
}
