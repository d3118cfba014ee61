"""The local backend of pydantic-ai-backend, called by crates/backend-local/benches/local.rs.

Workloads, which the benchmark repeats on our side:

- The tree holds sources of crates from cargo's registry, copied once into the
  cache; at least 10,000 of its files are Rust. Searches start at its root.
- `grep` is `grep_raw` with ripgrep on the PATH, which the peer then uses. It has
  no maximum, so it returns every hit where we return the first 100.
- `glob` is `glob_info`. Its `*.toml` is that of the top directory alone; the
  pattern that finds the same files as ours is `**/*.toml`.
- ripgrep is started anew for each call and timed until it has ended and its
  output is read: `rg --no-require-git --line-number PATTERN .` and
  `rg --no-require-git --files -g PATTERN`.
- Results may differ a little. This peer honours no ignore files outside a git
  repository, and its glob also finds what is hidden or ignored; so does a `-g`
  that names a file. ripgrep gives up on a file at the first NUL wherever that
  is; we look for one in the first 8 KiB.
- `read` reads a whole file of 50 lines, `edit` replaces one line of such a file,
  `write` overwrites a file with 1 KiB.
"""

import functools
import itertools
import shutil

import timing
from pydantic_ai_backends import LocalBackend


def grep(backend, pattern):
    return lambda: backend.grep_raw(pattern), size_of_list


def glob(backend, pattern):
    return lambda: backend.glob_info(pattern), size_of_list


def read(backend, path):
    return lambda: backend.read(path), size_of_text


def edit(backend, path, old, new):
    # Each edit undoes the one before.
    texts = itertools.cycle([(old, new), (new, old)])
    return lambda: backend.edit(path, *next(texts)), size_of_edit


def write(backend, path, content):
    return lambda: backend.write(path, content), size_of_write


OPERATIONS = {"grep": grep, "glob": glob, "read": read, "edit": edit, "write": write}


def size_of_list(result):
    # A failed search is a string.
    assert isinstance(result, list), result
    return len(result)


def size_of_text(result):
    assert not result.startswith("Error"), result
    return result.count("\n") + 1


def size_of_edit(result):
    assert result.error is None, result.error
    return result.occurrences


def size_of_write(result):
    assert result.error is None, result.error
    return 1


@functools.cache
def backend_at(root):
    return LocalBackend(root_dir=root)


def prepare(op, root, **arguments):
    return OPERATIONS[op](backend_at(root), **arguments)


if __name__ == "__main__":
    assert shutil.which("rg"), "rg is not on the PATH: the peer would search without it"
    timing.serve(prepare)
