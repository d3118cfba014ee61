"""Tests a server with the official Python SDK.

    client.py --server "COMMAND {dir}" --asking "COMMAND {dir}" --structured "COMMAND {dir}"
        [--http "COMMAND {dir}"]

{dir} is a new directory. The server of --asking asks before it runs commands or
writes. The server of --structured has data in its results. The server of --http
listens and prints its URL on standard error.
"""

import argparse
import asyncio
import base64
import contextlib
import os
import pathlib
import shlex
import tempfile

from mcp import Client, StdioServerParameters, types

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
FOR_EVER = "echo $$; exec sleep 1000"


def command(line, directory):
    words = [word.replace("{dir}", directory) for word in shlex.split(line)]
    return StdioServerParameters(command=words[0], args=words[1:])


def text(result):
    return result.content[0].text


def failure(result):
    return (result.meta or {}).get("console-tools/failure")


async def gone(pid):
    """Waits until a process is gone."""
    async with asyncio.timeout(20):
        while os.path.exists(f"/proc/{pid}"):
            await asyncio.sleep(0.02)


async def tools(client):
    listed = await client.list_tools()
    names = {tool.name for tool in listed.tools}
    assert {"read_file", "write_file", "execute"} <= names, names
    read = next(tool for tool in listed.tools if tool.name == "read_file")
    assert read.annotations.read_only_hint and not read.output_schema, read


async def files(client):
    wrote = await client.call_tool("write_file", {"path": "notes.md", "content": "- three\n"})
    assert not wrote.is_error and not wrote.structured_content, wrote
    failed = await client.call_tool("edit_file", {"path": "notes.md", "old_string": "- four"})
    assert failure(failed) == "fixable" and "new_string" in text(failed), failed


async def structured(line):
    """Data beside the text, which the SDK checks against the schemas."""
    with tempfile.TemporaryDirectory() as directory:
        pathlib.Path(directory, "pixel.png").write_bytes(PIXEL)
        async with Client(command(line, directory)) as client:
            listed = await client.list_tools()
            assert sum(bool(tool.output_schema) for tool in listed.tools) > 5, listed
            note = {"path": "notes.md", "content": "- three\n"}
            for tool, arguments in [
                ("write_file", note),
                ("read_file", {"path": "notes.md"}),
                ("grep", {"pattern": "three", "output_mode": "content"}),
                ("edit_file", {"path": "notes.md", "old_string": "- four", "new_string": ""}),
                ("execute", {"command": "echo a; exit 3"}),
                ("list_shells", {}),
            ]:
                result = await client.call_tool(tool, arguments)
                assert result.structured_content["text"] == text(result), result
            picture = await client.call_tool("read_file", {"path": "pixel.png"})
            assert isinstance(picture.content[1], types.ImageContent), picture
            assert not picture.structured_content, picture


async def picture(client, directory):
    pathlib.Path(directory, "pixel.png").write_bytes(PIXEL)
    result = await client.call_tool("read_file", {"path": "pixel.png"})
    image = result.content[1]
    assert isinstance(image, types.ImageContent) and image.mime_type == "image/png"
    assert base64.b64decode(image.data).startswith(b"\x89PNG")
    pathlib.Path(directory, "tiny.pdf").write_bytes(b"%PDF-1.4 tiny")
    result = await client.call_tool("read_file", {"path": "tiny.pdf"})
    document = result.content[1].resource
    assert document.mime_type == "application/pdf" and document.uri, document


async def cancel(client):
    """Cancels a running command, and waits until it is gone."""
    told = asyncio.get_running_loop().create_future()

    async def progress(done, total, message):
        if message and message.isdigit() and not told.done():
            told.set_result(int(message))

    call = asyncio.create_task(
        client.call_tool("execute", {"command": FOR_EVER}, progress_callback=progress)
    )
    async with asyncio.timeout(20):
        pid = await told
    call.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await call
    await gone(pid)
    result = await client.call_tool("execute", {"command": "echo alive"})
    assert text(result) == "alive\n", result


async def resources(client):
    listed = await client.list_resources()
    uris = [str(resource.uri) for resource in listed.resources]
    assert "file:///notes.md" in uris, uris
    read = await client.read_resource("file:///notes.md")
    assert "- three" in read.contents[0].text, read


async def approvals(line):
    asked = []

    async def answer(context, params):
        asked.append(params.message)
        choice = "allow once" if len(asked) == 1 else "deny"
        return types.ElicitResult(action="accept", content={"decision": choice})

    with tempfile.TemporaryDirectory() as directory:
        server = command(line, directory)
        async with Client(server, elicitation_callback=answer) as client:
            yes = await client.call_tool("execute", {"command": "echo approved"})
            assert text(yes) == "approved\n", yes
            no = await client.call_tool("execute", {"command": "touch denied"})
            assert failure(no) == "refused" and "not approved" in text(no), no
        assert len(asked) == 2 and "echo approved" in asked[0], asked
        assert not os.path.exists(os.path.join(directory, "denied"))
        # Without the capability, a refusal with advice.
        async with Client(server) as client:
            refused = await client.call_tool("execute", {"command": "echo x"})
            assert failure(refused) and "elicitation" in text(refused), refused


async def roots(line):
    with tempfile.TemporaryDirectory() as directory:
        for name in ("in", "out"):
            os.mkdir(os.path.join(directory, name))
            pathlib.Path(directory, name, "a.txt").write_text(name)

        async def answer(context):
            uri = pathlib.Path(directory, "in").as_uri()
            return types.ListRootsResult(roots=[types.Root(uri=uri)])

        async with Client(command(line, directory), list_roots_callback=answer) as client:
            inside = await client.call_tool("read_file", {"path": "in/a.txt"})
            assert not failure(inside), inside
            outside = await client.call_tool("read_file", {"path": "out/a.txt"})
            assert failure(outside), outside


async def leaves_nothing(line):
    """A client's commands end when it disconnects."""
    with tempfile.TemporaryDirectory() as directory:
        async with Client(command(line, directory)) as client:
            shell = "echo $$ > pid.new; mv pid.new pid; exec sleep 1000"
            await client.call_tool("run_in_background", {"command": shell})
            wait = "until test -e pid; do sleep 0.01; done; cat pid"
            pid = int(text(await client.call_tool("execute", {"command": wait})))
            assert os.path.exists(f"/proc/{pid}")
        await gone(pid)


async def everything(server, directory):
    async with Client(server) as client:
        await tools(client)
        await files(client)
        await resources(client)
        await picture(client, directory)
        await cancel(client)
        return client.protocol_version


async def over_http(line):
    with tempfile.TemporaryDirectory() as directory:
        words = [word.replace("{dir}", directory) for word in shlex.split(line)]
        process = await asyncio.create_subprocess_exec(*words, stderr=asyncio.subprocess.PIPE)
        try:
            async with asyncio.timeout(20):
                url = ""
                while not url.startswith("http"):
                    url = (await process.stderr.readline()).decode().strip()
            await everything(url, directory)
        finally:
            process.kill()
            await process.wait()


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--asking", required=True)
    parser.add_argument("--structured", required=True)
    parser.add_argument("--http")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        version = await everything(command(wanted.server, directory), directory)
    await structured(wanted.structured)
    await approvals(wanted.asking)
    await roots(wanted.server)
    await leaves_nothing(wanted.server)
    if wanted.http:
        await over_http(wanted.http)
    print(f"the Python SDK is content (protocol {version})")


asyncio.run(main())
