"""Uses a stand-in for Daytona through a recent release of the official Python SDK.

The variables DAYTONA_API_URL and DAYTONA_API_KEY name the stand-in.
"""

import asyncio

from daytona import AsyncDaytona, CreateSandboxFromSnapshotParams, Daytona, SessionExecuteRequest
from daytona.common.errors import DaytonaError
from daytona.common.pty import PtySize


def files(sandbox):
    content = bytes(range(256))
    sandbox.fs.upload_file(content, "up/é x.bin")
    assert sandbox.fs.download_file("up/é x.bin") == content
    assert [file.name for file in sandbox.fs.list_files("up")] == ["é x.bin"]
    sandbox.fs.move_files("up/é x.bin", "up/moved")
    assert sandbox.fs.get_file_info("up/moved").size == 256
    sandbox.fs.delete_file("up", recursive=True)
    try:
        sandbox.fs.download_file("up/moved")
        raise AssertionError("a file that was deleted was downloaded")
    except DaytonaError as error:
        assert "moved" in str(error), error


def commands(sandbox):
    answer = sandbox.process.exec("echo $A; pwd; exit 4", cwd="/tmp", env={"A": "one"}, timeout=30)
    assert (answer.exit_code, answer.result) == (4, "one\n/tmp\n"), answer
    try:
        sandbox.process.exec("sleep 600", timeout=1)
        raise AssertionError("a command outlived its time")
    except DaytonaError as error:
        assert "timeout" in str(error).lower(), error


def sessions(sandbox):
    sandbox.process.create_session("s")
    run = sandbox.process.execute_session_command
    run("s", SessionExecuteRequest(command="cd /tmp"))
    answer = run("s", SessionExecuteRequest(command="pwd; echo e >&2; (exit 3)"))
    assert (answer.stdout, answer.stderr, answer.exit_code) == ("/tmp\n", "e\n", 3), answer
    started = run("s", SessionExecuteRequest(command="read x; echo got=$x", run_async=True))
    sandbox.process.send_session_command_input("s", started.cmd_id, "it")
    lines = []
    follow = sandbox.process.get_session_command_logs_async
    asyncio.run(follow("s", started.cmd_id, lines.append, lines.append))
    assert "got=it\n" in "".join(lines), lines
    assert sandbox.process.get_session_command("s", started.cmd_id).exit_code == 0
    sandbox.process.delete_session("s")
    assert sandbox.process.list_sessions() == []


def terminal(sandbox):
    handle = sandbox.process.create_pty_session("p", pty_size=PtySize(rows=24, cols=80))
    printed = []
    handle.send_input("echo $((40 + 2)); exit 3\n")
    result = handle.wait(on_data=printed.append, timeout=60)
    assert result.exit_code == 3, result
    handle.disconnect()


def lifecycle(daytona):
    sandbox = daytona.create(CreateSandboxFromSnapshotParams(name="sdk", labels={"a": "1"}))
    assert sandbox.state == "started", sandbox.state
    assert daytona.get("sdk").id == sandbox.id
    assert [it.id for it in daytona.list()] == [sandbox.id]
    assert sandbox.set_labels({"b": "2"}) == {"b": "2"}
    for use in (files, commands, sessions, terminal):
        use(sandbox)
    sandbox.stop()
    assert sandbox.state == "stopped", sandbox.state
    sandbox.start()
    assert sandbox.process.exec("echo back").result == "back\n"
    sandbox.delete()
    try:
        daytona.get("sdk")
        raise AssertionError("a sandbox that was deleted was found")
    except DaytonaError as error:
        assert "not found" in str(error).lower(), error


async def asynchronous():
    async with AsyncDaytona() as daytona:
        sandbox = await daytona.create()
        answers = await asyncio.gather(*(sandbox.process.exec(f"echo {n}") for n in range(16)))
        assert [answer.result for answer in answers] == [f"{n}\n" for n in range(16)]
        await sandbox.delete()


lifecycle(Daytona())
asyncio.run(asynchronous())
print("create, exec, upload, download, list, sessions, terminals, delete: as expected")
