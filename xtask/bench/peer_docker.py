"""The containers of pydantic-ai-backend, called by crates/backend-docker/benches/docker.rs.

    peer_docker.py IMAGE

The container is made before the first answer and removed at the end of the input.

Workloads, which the benchmark repeats on our side, in a container of its own of
the same image:

- `read` and `write` are of 1 KiB, in the working directory. On the side of the
  Docker API they are `cat FILE` and `cat > FILE`, each by one exec: create,
  start, the output to its end, inspect.
- `docker_execute_cli` is `docker exec CONTAINER sh -c true`, from the start of
  the program to its end.
- `docker_grep_local`: the tree holds sources of crates from cargo's registry, at
  least 10,000 of them Rust, mounted read-only in the container; all hits.
- `docker_start_exec` begins with nothing and ends when the first command has
  ended; the removal that follows is not timed. Both sides have the same limits.
"""

import functools
import sys

import timing
from pydantic_ai_backends import DockerSandbox

KIB = "x" * 1024


def read(sandbox):
    assert sandbox.write("/workspace/read.txt", KIB).error is None
    return lambda: sandbox.read_bytes("/workspace/read.txt"), len


def write(sandbox):
    return lambda: sandbox.write("/workspace/write.txt", KIB), size_of_write


def size_of_write(result):
    assert result.error is None, result.error
    return len(KIB)


OPERATIONS = {"read": read, "write": write}


def main():
    # No network, as ours: that is also faster to start.
    sandbox = DockerSandbox(image=sys.argv[1], network_mode="none")
    try:
        timing.serve(functools.cache(lambda op: OPERATIONS[op](sandbox)))
    finally:
        sandbox.stop()


if __name__ == "__main__":
    main()
