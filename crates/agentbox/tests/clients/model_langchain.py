"""Checks the results that a model gets through LangChain's adapters for MCP.

    model_langchain.py AGENTBOX
"""

import asyncio
import base64
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

from scripted import Seen, conversation, servers


def seen(message):
    """Returns the parts of a result that a provider gets: its text and its images."""
    assert isinstance(message, ToolMessage), message
    content = message.content
    if isinstance(content, str):
        return Seen(content, [])
    text = "".join(block["text"] for block in content if block["type"] == "text")
    pictures = [block for block in content if block["type"] == "image"]
    return Seen(text, [(each["mime_type"], base64.b64decode(each["base64"])) for each in pictures])


class Scripted(BaseChatModel):
    """A model that makes calls."""

    calls: Any

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        last = messages[-1]
        try:
            name, arguments = self.calls.send(seen(last) if len(messages) > 1 else None)
            call = {"name": name, "args": arguments, "id": f"call-{len(messages)}"}
            message = AIMessage(content="", tool_calls=[call])
        except StopIteration:
            message = AIMessage(content="done")
        return ChatResult(generations=[ChatGeneration(message=message)])


async def run(line, calls):
    server = {"transport": "stdio", "command": line[0], "args": line[1:]}
    # One session for all calls: otherwise each call starts a server.
    async with MultiServerMCPClient({"agentbox": server}).session("agentbox") as session:
        agent = create_agent(Scripted(calls=calls), await load_mcp_tools(session))
        asked = {"messages": [{"role": "user", "content": "go on"}]}
        answered = await agent.ainvoke(asked, {"recursion_limit": 100})
        return answered["messages"][-1].content


async def main():
    for line, commands in servers(sys.argv[1]):
        assert await run(line, conversation(commands)) == "done", line
    print("LangChain is content")


asyncio.run(main())
