"""Replays the calls of the scripted conversation with the official Python SDK.

    replay.py AGENTBOX BACKEND CONFIGS

The input and output are described in crates/console-testkit/examples/replay.rs.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import sys

from mcp import Client, StdioServerParameters, types


class Person:
    """Gives the step's answer, and counts the questions."""

    def __init__(self):
        self.answer = None
        self.questions = 0

    async def elicited(self, context, params):
        self.questions += 1
        choice = "allow once" if self.answer == "yes" else "deny"
        return types.ElicitResult(action="accept", content={"decision": choice})


def block(content):
    if isinstance(content, types.ImageContent):
        return {"media_type": content.mime_type, "base64": content.data}
    if isinstance(content, types.EmbeddedResource):
        resource = content.resource
        return {"media_type": resource.mime_type, "base64": resource.blob}
    return {"media_type": content.type, "base64": ""}


async def main():
    agentbox, backend, configs = sys.argv[1:4]
    person = Person()
    async with contextlib.AsyncExitStack() as stack:
        clients = {}
        for config in pathlib.Path(configs).glob("*.toml"):
            flags = ["mcp", "--config", str(config), "--backend", backend]
            # The daemon's address is in a variable that the SDK does not pass on by default.
            server = StdioServerParameters(command=agentbox, args=flags, env=dict(os.environ))
            client = Client(server, elicitation_callback=person.elicited)
            clients[config.stem] = await stack.enter_async_context(client)
        while line := await asyncio.to_thread(sys.stdin.readline):
            step = json.loads(line)
            person.answer, person.questions = step["answer"], 0
            client = clients[step["conversation"]]
            result = await client.call_tool(step["tool"], step["arguments"])
            text, *blocks = result.content
            answer = {
                "text": text.text,
                "is_error": bool(result.is_error),
                "blocks": [block(content) for content in blocks],
                "structured": result.structured_content,
                "questions": person.questions,
            }
            print(json.dumps(answer), flush=True)


asyncio.run(main())
