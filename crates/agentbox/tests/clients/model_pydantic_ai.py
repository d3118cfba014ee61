"""Checks the results that a model gets through pydantic-ai with its default settings.

    model_pydantic_ai.py AGENTBOX
"""

import asyncio
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent, BinaryContent, UnexpectedModelBehavior
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from scripted import Seen, conversation, servers


def seen(part):
    """Returns the parts of a result that a provider gets: its text and its files."""
    assert isinstance(part, ToolReturnPart), part
    files = [file for file in part.files if isinstance(file, BinaryContent)]
    return Seen(part.model_response_str(), [(file.media_type, file.data) for file in files])


def scripted(calls):
    """A model that makes these calls."""

    def model(messages, info):
        last = messages[-1].parts[-1]
        try:
            name, arguments = calls.send(seen(last) if len(messages) > 1 else None)
        except StopIteration:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(name, arguments)])

    return FunctionModel(model)


async def run(line, calls, **settings):
    server = StdioTransport(command=line[0], args=line[1:], keep_alive=False)
    agent = Agent(scripted(calls), toolsets=[MCPToolset(server, **settings)])
    return (await agent.run("go on")).output


def missing():
    for path in ("one", "two", "three"):
        result = yield "read_file", {"path": path}
        assert "Error: " in result.text, result


async def main():
    agentbox = sys.argv[1]
    for line, commands in servers(agentbox):
        assert await run(line, conversation(commands)) == "done", line
    # The reason why failures are not marked, and the setting to use if they are.
    marked = [agentbox, "mcp", "--backend", "state", "--mark-failures"]
    assert await run(marked, missing(), tool_error_behavior="failed") == "done"
    try:
        await run(marked, missing())
    except UnexpectedModelBehavior:
        print("pydantic-ai is content")
    else:
        sys.exit("a run survives marked failures now: docs/tools.md should say so")


asyncio.run(main())
