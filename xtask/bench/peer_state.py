"""Times the in-memory backend of pydantic-ai-backend for `cargo xtask bench`.

Workloads, which crates/backend-state/benches/state.rs repeats:

- The 20k store has 100 directories `/d0000` .. `/d0099` with 200 files each,
  `f000.py`, `f001.txt`, `f002.py` and so on, so that half of them are Python.
  Each file has 20 lines, and each line contains `value`.
- The 1M store has 5,000 such directories; each file has one line.
- `state_write` overwrites `/d0050/f100.py` with 16 lines of 64 bytes.
- The listings are of `/d0050`, the searches start at `/`.
- A snapshot is a shallow copy of the map of files: the peer has none of its own.
- The 100 MB file is `big.txt` with 2,000,000 lines of 50 bytes, newline
  included; 50 lines are read from the line with index 1,000,000. In memory the
  peer keeps a list of lines, so that it only cuts it; on disk it is the peer's
  LocalBackend that reads.
"""

import tempfile

import timing
from pydantic_ai_backends import LocalBackend, StateBackend

FILES_PER_DIR = 200
LINES_PER_FILE = 20
BIG_FILE_LINES = 2_000_000
NOW = "2026-01-01T00:00:00+00:00"


def stored(lines):
    return {"content": lines, "created_at": NOW, "modified_at": NOW}


def store(n_dirs, content):
    """A backend over `n_dirs` directories; `content` makes the lines of a file."""
    files = {}
    for d in range(n_dirs):
        for f in range(FILES_PER_DIR):
            extension = "txt" if f % 2 else "py"
            files[f"/d{d:04}/f{f:03}.{extension}"] = stored(content(d, f))
    return StateBackend(files=files)


def small_store():
    return store(
        100,
        lambda d, f: [f"value_{line:02} = compute({d}, {f})" for line in range(LINES_PER_FILE)],
    )


def large_store():
    # All files share one list: a million of them would not fit into memory.
    line = ["value = 1"]
    return store(5_000, lambda _d, _f: line)


def big_lines():
    return [f"{number:08} ".ljust(49, "x") for number in range(BIG_FILE_LINES)]


def big_file():
    return StateBackend(files={"/big.txt": stored([*big_lines(), ""])})


class OnDisk:
    """The peer's local backend in a temporary directory that is removed with it."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.backend = LocalBackend(root_dir=self.directory.name)
        with open(f"{self.directory.name}/big.txt", "w") as file:
            file.write("\n".join([*big_lines(), ""]))

    def read(self, path, offset, limit):
        return self.backend.read(path.lstrip("/"), offset=offset, limit=limit)


def write(backend):
    text = ("x" * 63 + "\n") * 16
    return lambda: backend.write("/d0050/f100.py", text)


def listing(backend):
    return expecting(FILES_PER_DIR, lambda: backend.ls_info("/d0050"))


def glob(backend):
    return expecting(10_000, lambda: backend.glob_info("**/*.py", "/"))


def grep(backend):
    return expecting(400_000, lambda: backend.grep_raw("value", "/"))


def snapshot(backend):
    return expecting(1_000_000, lambda: dict(backend.files))


def window(backend):
    def read():
        return backend.read("/big.txt", offset=1_000_000, limit=50)

    # After the 50 lines come an empty one and one that counts the rest.
    expecting(52, lambda: read().split("\n"))
    return read


def expecting(n_results, operation):
    """The operation, tried once: a time for a wrong answer is worth nothing."""
    found = len(operation())
    assert found == n_results, f"{found} results instead of {n_results}"
    return operation


STORE = {}


def on(build, workload):
    """A workload on a store, which is built once and dropped before the next is built."""

    def prepare():
        if build not in STORE:
            STORE.clear()
            STORE[build] = build()
        return workload(STORE[build])

    return prepare


WORKLOADS = {
    "state_ls_20k": on(small_store, listing),
    "state_glob_20k": on(small_store, glob),
    "state_grep_20k": on(small_store, grep),
    # It changes a file that the search counts.
    "state_write": on(small_store, write),
    "state_ls_1m": on(large_store, listing),
    "state_snapshot_1m": on(large_store, snapshot),
    "state_window_100mb": on(big_file, window),
    "text_window_100mb": on(OnDisk, window),
}

if __name__ == "__main__":
    # Some of these calls take a large part of a second.
    timing.main(WORKLOADS, least=5, most=100, seconds=2.0)
