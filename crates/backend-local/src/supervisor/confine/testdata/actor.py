"""One file operation: `actor.py OPERATION A [B]`. Exits with its error number."""
import os, socket, sys

op, a, b = (sys.argv + [None])[1:4]
try:
    if op == "read": open(a, "rb").read(1)
    elif op == "write": os.write(os.open(a, os.O_WRONLY), b"x")
    elif op == "append": open(a, "ab").write(b"x")
    elif op == "create": open(a, "wb").write(b"x")
    elif op == "truncate": os.truncate(a, 0)
    elif op == "remove": os.remove(a)
    elif op == "mkdir": os.mkdir(a)
    elif op == "rmdir": os.rmdir(a)
    elif op == "list": os.listdir(a)
    elif op == "rename": os.rename(a, b)
    elif op == "link": os.link(a, b)
    elif op == "symlink": os.symlink(a, b)
    elif op == "exec": os.execv(a, [a])
    elif op == "connect": socket.create_connection(("127.0.0.1", int(a)))
    else: sys.exit(22)
except OSError as error:
    sys.exit(error.errno)
