"""The SessionManager of pydantic-ai-backend, called by crates/sessions/benches/docker.rs.

    peer_docker_sessions.py IMAGE

Workloads, which the benchmark does on our side with the same image:

- `open` opens a session that did not exist, and ends when its first command, `true`,
  has ended. The end of the session is not timed.
- `docker_sessions_pooled_py` is the same for us with containers that are ready. The peer
  has none and does what it does in `docker_sessions_cold_py`.
- `docker_sessions_wake` opens a session whose container was stopped.
- `docker_sessions_memory` is what the daemon says that a session uses which has run one
  command and does nothing: the median of five.
"""

import asyncio
import itertools
import json
import sys

import timing
from pydantic_ai_backends import DockerSandbox, SessionManager


def main():
    image = sys.argv[1]
    loop = asyncio.new_event_loop()

    def sandbox(session_id):
        # No network, as ours: that is also faster to start.
        return DockerSandbox(image=image, network_mode="none")

    manager = SessionManager(sandbox_factory=sandbox)
    numbers = itertools.count()

    async def open_session(user):
        opened = await manager.get_or_create(user)
        return await asyncio.to_thread(opened.execute, "true")

    try:
        for line in sys.stdin:
            calls = json.loads(line)["calls"]
            users = [f"user-{next(numbers)}" for _ in range(calls)]
            waiting = iter(users)
            timing.answer(
                lambda: loop.run_until_complete(open_session(next(waiting))),
                lambda result: int(result.exit_code == 0),
                calls,
            )
            for user in users:
                loop.run_until_complete(manager.release(user))
    finally:
        loop.run_until_complete(manager.shutdown())
        loop.close()


if __name__ == "__main__":
    main()
