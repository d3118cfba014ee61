// One file operation: `actor OPERATION A [B]`. Exits with its error number.
#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>

static int is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static int io(const char *path, int flags) {
    int fd = open(path, flags, 0644);
    if (fd < 0) return -1;
    char byte = 'x';
    return (flags & O_ACCMODE) == O_RDONLY ? read(fd, &byte, 1) : write(fd, &byte, 1);
}

static int list(const char *path) {
    DIR *dir = opendir(path);
    return dir && readdir(dir) ? 0 : -1;
}

static int dial(const char *port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, sizeof to);
}

int main(int argc, char **argv) {
    const char *op = argv[1], *a = argv[2], *b = argc > 3 ? argv[3] : 0;
    int got = -1;
    errno = EINVAL;
    if (is(op, "read")) got = io(a, O_RDONLY);
    if (is(op, "write")) got = io(a, O_WRONLY);
    if (is(op, "append")) got = io(a, O_WRONLY | O_APPEND);
    if (is(op, "create")) got = io(a, O_WRONLY | O_CREAT);
    if (is(op, "truncate")) got = truncate(a, 0);
    if (is(op, "remove")) got = unlink(a);
    if (is(op, "mkdir")) got = mkdir(a, 0755);
    if (is(op, "rmdir")) got = rmdir(a);
    if (is(op, "list")) got = list(a);
    if (is(op, "rename")) got = rename(a, b);
    if (is(op, "link")) got = link(a, b);
    if (is(op, "symlink")) got = symlink(a, b);
    if (is(op, "exec")) execl(a, a, (char *)0);
    if (is(op, "connect")) got = dial(a);
    return got < 0 ? errno : 0;
}
