"""Takes the snippet for MCP clients out of README.md and uses it, and runs the program
that `mcp-config python` prints.

    readme.py README AGENTBOX

The snippet is the first block of JSON with `mcpServers`. Its command is the
program's name; here it is the program that was just built.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile

from mcp import Client, StdioServerParameters


def snippet(readme):
    with open(readme, encoding="utf-8") as file:
        blocks = re.findall(r"^```json\n(.*?)^```", file.read(), re.M | re.S)
    configs = [json.loads(block) for block in blocks if "mcpServers" in block]
    assert configs, "README has no snippet for MCP clients"
    (server,) = configs[0]["mcpServers"].values()
    return server


async def main():
    readme, agentbox = sys.argv[1:3]
    server = snippet(readme)
    assert server["command"] == "agentbox", server
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(os.path.join(directory, "project"))
        args = [word.replace("/path/to/project", f"{directory}/project") for word in server["args"]]
        assert any(directory in word for word in args), args
        async with Client(StdioServerParameters(command=agentbox, args=args)) as client:
            listed = await client.list_tools()
            assert "read_file" in {tool.name for tool in listed.tools}
            wrote = await client.call_tool("write_file", {"path": "a.txt", "content": "hello\n"})
            assert not wrote.is_error, wrote
            read = await client.call_tool("read_file", {"path": "a.txt"})
            assert "hello" in read.content[0].text, read
        with open(f"{directory}/project/a.txt", encoding="utf-8") as file:
            assert file.read() == "hello\n"
        os.mkdir(os.path.join(directory, "printed"))
        config = [agentbox, "mcp-config", "python", "--backend", f"local:{directory}/printed"]
        program = subprocess.run(config, check=True, stdout=subprocess.PIPE, text=True).stdout
        subprocess.run([sys.executable, "-c", program], check=True)
        with open(f"{directory}/printed/hello.txt", encoding="utf-8") as file:
            assert file.read() == "hello\n"
    print("the snippet of README works, and so does what mcp-config prints")


asyncio.run(main())
