"""The rows that are called by turns with ours: peer_turns.py SUITE [IMAGE]"""

import asyncio
import concurrent.futures
import functools
import itertools
import shutil
import sys

import timing
from pydantic_ai_backends import DockerSandbox, LocalBackend, SessionManager

backend_at = functools.cache(lambda root: LocalBackend(root_dir=root))


def local(op, root, pattern=None, path=None, content=None, old=None, new=None):
    backend = backend_at(root)
    match op:
        case "grep":
            return lambda: backend.grep_raw(pattern), size_of_list
        case "glob":
            return lambda: backend.glob_info(pattern), size_of_list
        case "read":
            return lambda: backend.read(path), size_of_text
        case "write":
            return lambda: backend.write(path, content), size_of_change
    # Each edit undoes the one before.
    texts = itertools.cycle([(old, new), (new, old)])
    return lambda: backend.edit(path, *next(texts)), size_of_change


def size_of_list(result):
    # A failed search is a string.
    assert isinstance(result, list), result
    return len(result)


def size_of_text(result):
    assert not result.startswith("Error"), result
    return result.count("\n") + 1


def size_of_change(result):
    assert result.error is None, result.error
    return getattr(result, "occurrences", 1)


def sandbox(session_id=None):
    # No network, as ours: that is also faster to start.
    return DockerSandbox(image=sys.argv[2], network_mode="none")


def docker():
    container = sandbox()
    kib = "x" * 1024

    @functools.cache
    def prepare(op):
        write = functools.partial(container.write, f"/workspace/{op}.txt", kib)
        if op == "write":
            return write, lambda result: size_of_change(result) * len(kib)
        size_of_change(write())
        return lambda: container.read_bytes("/workspace/read.txt"), len

    return prepare, container.stop


def daytona():
    # Only here: it imports the SDK of Daytona.
    from pydantic_ai_backends import DaytonaSandbox

    box = DaytonaSandbox()
    home, kib = "/home/daytona", "x" * 1024
    threads = concurrent.futures.ThreadPoolExecutor(16)
    lines = "a line of text\n" * 30
    files = {"read": kib, "write": kib, "edit": f"{lines}one\n{lines}"}
    files |= {f"tree/{number}": f"{lines}needle\n{lines}" for number in range(20)}
    for name, content in files.items():
        size_of_change(box.write(f"{home}/{name}.txt", content))
    # Each edit undoes the one before.
    texts = itertools.cycle([("one", "two"), ("two", "one")])

    def read(_=None):
        return box.read_bytes(f"{home}/read.txt")

    def reads():
        return sum(map(len, threads.map(read, range(64))))

    def write():
        return box.write(f"{home}/write.txt", kib)

    calls = {
        "read": (read, len),
        "write": (write, lambda result: size_of_change(result) * len(kib)),
        "edit": (lambda: box.edit(f"{home}/edit.txt", *next(texts)), size_of_change),
        "ls": (lambda: box.ls_info(f"{home}/tree"), size_of_list),
        "search": (lambda: box.grep_raw("needle", f"{home}/tree"), size_of_list),
        "execute": (lambda: box.execute("true"), lambda result: int(result.exit_code == 0)),
        "reads": (reads, int),
    }

    def end():
        threads.shutdown()
        box.stop()

    return lambda op: calls[op], end


def sessions():
    loop = asyncio.new_event_loop()
    numbers = itertools.count()
    manager = SessionManager(sandbox_factory=sandbox)

    async def open_session(user):
        opened = await manager.get_or_create(user)
        return await asyncio.to_thread(opened.execute, "true")

    def prepare(op):
        user = f"user-{next(numbers)}"

        def size_of(result):
            # The end of the session is not timed.
            loop.run_until_complete(manager.release(user))
            return int(result.exit_code == 0)

        return lambda: loop.run_until_complete(open_session(user)), size_of

    return prepare, lambda: loop.run_until_complete(manager.shutdown())


if __name__ == "__main__":
    match sys.argv[1]:
        case "local":
            assert shutil.which("rg"), "rg is not on the PATH: the peer would search without it"
            prepare, end = local, lambda: None
        case "docker":
            prepare, end = docker()
        case "docker_sessions":
            prepare, end = sessions()
        case "daytona":
            prepare, end = daytona()
    try:
        timing.serve(prepare)
    finally:
        end()
