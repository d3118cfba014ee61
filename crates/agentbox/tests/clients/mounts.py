"""Three named directories through the official Python SDK.

    mounts.py AGENTBOX

One to read, one to write reports to, one whose files are shown only after
approval. The server runs with the tools of the profile `filesystem`.
"""

import asyncio
import pathlib
import sys
import tempfile

from mcp import Client, StdioServerParameters, types

MOUNTS = """
[[mounts]]
host_path = "input"
mount_point = "/input"

[[mounts]]
host_path = "output"
mount_point = "/output"
mode = "rw"
suffixes = [".md", ".txt"]
max_file_bytes = 1000
write_approval = false

[[mounts]]
host_path = "config"
mount_point = "/config"
read_approval = true
"""


class Person:
    """Gives a fixed answer, and counts the questions."""

    def __init__(self):
        self.answer = "deny"
        self.questions = 0

    async def elicited(self, context, params):
        self.questions += 1
        return types.ElicitResult(action="accept", content={"decision": self.answer})


async def converse(client, person, root):
    async def call(tool, **arguments):
        result = await client.call_tool(tool, arguments)
        return "console-tools/failure" in (result.meta or {}), result.content[0].text

    async def works(tool, **arguments):
        failed, text = await call(tool, **arguments)
        assert not failed, (tool, arguments, text)
        return text

    async def fails(tool, **arguments):
        failed, text = await call(tool, **arguments)
        assert failed, (tool, arguments, text)
        return text

    tools = sorted(tool.name for tool in (await client.list_tools()).tools)
    assert "execute" not in tools and "read_file" in tools, tools

    assert "quarterly" in await works("read_file", path="/input/report.txt")
    await fails("write_file", path="/input/report.txt", content="changed")
    await works("write_file", path="/output/summary.md", content="# Summary\n")
    assert (root / "output/summary.md").read_text() == "# Summary\n"
    await fails("write_file", path="/output/run.sh", content="rm -rf /\n")
    await fails("write_file", path="/output/large.txt", content="x" * 2000)
    await fails("read_file", path="/etc/passwd")
    await fails("read_file", path="/input/../../etc/passwd")
    assert person.questions == 0, person.questions

    person.answer = "deny"
    await fails("read_file", path="/config/app.toml")
    person.answer = "allow once"
    assert "debug" in await works("read_file", path="/config/app.toml")
    assert person.questions == 2, person.questions
    await fails("write_file", path="/config/app.toml", content="debug = true\n")

    names = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    assert names == ["config/app.toml", "input/report.txt", "mounts.toml", "output/summary.md"], names


async def main():
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name in ["input", "output", "config"]:
            (root / name).mkdir()
        (root / "input/report.txt").write_text("quarterly figures\n")
        (root / "config/app.toml").write_text("debug = false\n")
        (root / "mounts.toml").write_text(MOUNTS)
        flags = ["mcp", "--backend", f"mounts:{root}/mounts.toml", "--profile", "filesystem"]
        server = StdioServerParameters(command=sys.argv[1], args=flags)
        person = Person()
        async with Client(server, elicitation_callback=person.elicited) as client:
            await converse(client, person, root)
    print("three mounts: as expected")


asyncio.run(main())
