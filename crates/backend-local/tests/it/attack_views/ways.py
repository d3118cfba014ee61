# Ways to denied files by system calls, as a table of name and function. Prints, for each
# name, `read` if a function returned what the files hold.
import ctypes, mmap, os, shutil, socket, subprocess, sys, threading, multiprocessing

SECRET = sys.argv[1].encode()
ROOT = os.getcwd()
libc = ctypes.CDLL(None, use_errno=True)


def slurp(path, flags=os.O_RDONLY, dir_fd=None):
    fd = os.open(path, flags, dir_fd=dir_fd)
    try:
        return os.read(fd, 999)
    finally:
        os.close(fd)


def mapped():
    fd = os.open('.env', os.O_RDONLY)
    return mmap.mmap(fd, 0, prot=mmap.PROT_READ)[:]


def sendfile(name):
    fd, (a, b) = os.open(name, os.O_RDONLY), os.pipe()
    os.sendfile(b, fd, 0, 999)
    return os.read(a, 999)


def copied_range():
    fd, out = os.open('.env', os.O_RDONLY), os.open('out', os.O_RDWR | os.O_CREAT)
    os.copy_file_range(fd, out, 999, 0, 0)
    return os.pread(out, 999, 0)


def spliced():
    fd, (a, b) = os.open('.env', os.O_RDONLY), os.pipe()
    os.splice(fd, b, 999)
    return os.read(a, 999)


def below(directory, name):
    return slurp(name, dir_fd=os.open(directory, os.O_RDONLY))


def by_path_handle():
    fd = os.open('.env', os.O_PATH)
    return slurp(f'/proc/self/fd/{fd}')


def by_path_handle_directory():
    fd = os.open('secrets', os.O_PATH)
    return slurp(f'/proc/self/fd/{fd}/key')


def linked():
    fd = os.open('.env', os.O_PATH)
    AT_EMPTY_PATH, AT_FDCWD = 0x1000, -100
    libc.linkat(fd, b'', AT_FDCWD, b'hard', AT_EMPTY_PATH)
    return slurp('hard')


def fchdir():
    here = os.open('.', os.O_RDONLY)
    try:
        os.fchdir(os.open('secrets', os.O_RDONLY))
        return slurp('key')
    finally:
        os.fchdir(here)


def dotdot():
    here = os.open('.', os.O_RDONLY)
    try:
        os.chdir('sub/dir')
        return slurp('../../.env')
    finally:
        os.fchdir(here)


def handle():
    buffer = ctypes.create_string_buffer(136)
    ctypes.memmove(buffer, (128).to_bytes(4, sys.byteorder), 4)
    mount = ctypes.c_int()
    AT_FDCWD = -100
    libc.name_to_handle_at(AT_FDCWD, b'.env', buffer, ctypes.byref(mount), 0)
    here = os.open('.', os.O_RDONLY)
    fd = libc.open_by_handle_at(here, buffer, os.O_RDONLY)
    return os.read(fd, 999)


def exchanged():
    AT_FDCWD, EXCHANGE = -100, 2
    libc.renameat2(AT_FDCWD, b'.env', AT_FDCWD, b'open.txt', EXCHANGE)
    return slurp('open.txt')


def whiteout():
    AT_FDCWD, WHITEOUT = -100, 4
    libc.renameat2(AT_FDCWD, b'.env', AT_FDCWD, b'other', WHITEOUT)
    return slurp('other')


def open_tree():
    fd = libc.syscall(428, -100, b'.', 1)
    return slurp('.env', dir_fd=fd)


def openat2():
    how = (os.O_RDONLY).to_bytes(8, sys.byteorder) + bytes(16)
    fd = libc.syscall(437, -100, b'.env', how, 24)
    return os.read(fd, 999)


def setns(pid):
    os.setns(os.open(f'/proc/{pid}/ns/mnt', os.O_RDONLY), 0)
    return slurp('.env')


def unshared(flags):
    os.unshare(flags)
    libc.umount2(b'.env', 2)
    return slurp('.env')


def child():
    return subprocess.run(['cat', '.env'], capture_output=True).stdout


def detached():
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            try:
                os.write(writer, slurp('.env'))
            except OSError:
                os.write(writer, b'no')
        os._exit(0)
    return os.read(reader, 999)


def threaded():
    found = []
    work = lambda: found.append(slurp('.env'))
    threading.excepthook = lambda args: None
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


def raced():
    # Renames of the directory above while others look.
    for _ in range(200):
        os.rename('a', 'a2')
        for path in ('a/b/x.pem', 'a2/b/x.pem'):
            try:
                return slurp(path)
            except OSError:
                pass
        os.rename('a2', 'a')
    return b''


def raced_links():
    for _ in range(200):
        os.symlink('open.txt', 'swap')
        try:
            os.replace('swap', 'other')
            os.symlink('.env', 'swap')
            os.replace('swap', 'other')
            return slurp('other')
        except OSError:
            pass
        finally:
            if os.path.islink('swap'):
                os.remove('swap')
    return b''


def executed():
    return subprocess.run(['./secrets/key'], capture_output=True).stderr + slurp('secrets/key')


def walked():
    return b''.join(
        open(os.path.join(top, name), 'rb').read()
        for top, _, names in os.walk('secrets')
        for name in names
    )


def many():
    # Files are opened until one can be.
    found = b''
    for top, _, names in os.walk('.'):
        for name in names:
            try:
                found += slurp(os.path.join(top, name))
            except OSError:
                pass
    return found


HOST, SUPERVISOR = sys.argv[2], sys.argv[3]
WAYS = {
    'open': lambda: slurp('.env'),
    'open read-write': lambda: slurp('.env', os.O_RDWR),
    'open for appending': lambda: slurp('.env', os.O_RDWR | os.O_APPEND),
    'open without following': lambda: slurp('.env', os.O_NOFOLLOW),
    'open directly': lambda: slurp('.env', os.O_NOATIME),
    'open non-blocking': lambda: slurp('.env', os.O_NONBLOCK),
    'read by path object': lambda: open('.env', 'rb').read(),
    'bytes path': lambda: slurp(b'.env'),
    'double slash': lambda: slurp('.//.env'),
    'absolute': lambda: slurp(ROOT + '/.env'),
    'mmap': mapped,
    'sendfile': lambda: sendfile('.env'),
    'sendfile from a directory': lambda: sendfile('secrets/key'),
    'copy_file_range': copied_range,
    'splice': spliced,
    'openat of the root': lambda: below('.', '.env'),
    'openat of a denied directory': lambda: below('secrets', 'key'),
    'openat of its parent': lambda: below('conf', 'only.txt'),
    'openat above': lambda: below('sub', '../.env'),
    'O_PATH': by_path_handle,
    'O_PATH of a directory': by_path_handle_directory,
    'linkat of a handle': linked,
    'os.link': lambda: (os.link('.env', 'hard1'), slurp('hard1'))[1],
    'os.link through a link': lambda: (os.link('soft', 'hard2', follow_symlinks=True), slurp('hard2'))[1],
    'os.link of a denied file inside': lambda: (os.link('a/b/x.pem', 'hard3'), slurp('hard3'))[1],
    'rename': lambda: (os.rename('.env', 'gone'), slurp('gone'))[1],
    'rename of a directory': lambda: (os.rename('secrets', 'gone'), slurp('gone/key'))[1],
    'replace': lambda: (os.replace('open.txt', '.env'), slurp('.env'))[1],
    'renameat2 exchange': exchanged,
    'renameat2 whiteout': whiteout,
    'chmod': lambda: (os.chmod('.env', 0o644), slurp('.env'))[1],
    'chmod of a directory': lambda: (os.chmod('secrets', 0o755), slurp('secrets/key'))[1],
    'truncate': lambda: (os.truncate('.env', 5), slurp('.env'))[1],
    'fchdir': fchdir,
    'chdir and up': dotdot,
    'shutil.copy': lambda: (shutil.copy('.env', 'out2'), slurp('out2'))[1],
    'shutil.copytree': lambda: (shutil.copytree('secrets', 'out3'), slurp('out3/key'))[1],
    'shutil.move': lambda: (shutil.move('.env', 'out4'), slurp('out4'))[1],
    'a child': child,
    'a detached child': detached,
    'a thread': threaded,
    'run as a program': executed,
    'a walk': walked,
    'every file': many,
    'a race of renames': raced,
    'a race of links': raced_links,
    '/dev/fd of a handle': lambda: slurp(f"/dev/fd/{os.open('.', os.O_RDONLY)}/.env"),
    'handle of a file': handle,
    'open_tree': open_tree,
    'openat2': openat2,
    'setns of the host': lambda: setns(HOST),
    'setns of the supervisor': lambda: setns(SUPERVISOR),
    'setns of itself': lambda: setns('self'),
    'unshare mounts': lambda: unshared(0x20000),
    'unshare users and mounts': lambda: unshared(0x10020000),
}

for name, way in WAYS.items():
    try:
        found = way() or b''
    except BaseException as error:
        found = b''
    print(name, 'read' if SECRET in found else 'refused', sep='\t', flush=True)
