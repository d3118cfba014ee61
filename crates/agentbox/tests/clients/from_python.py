"""Runs the agent of docs/from-pydantic-ai.md, and the programs that `mcp-config` prints for Python.

    from_python.py DOC AGENTBOX

The agent is the first block of Python in the page; the second answers questions. Its
command is the program's name; here it is the program that was just built. Its model is
scripted: it calls two tools and repeats the result of the second one.
"""

import os
import re
import subprocess
import sys
import tempfile

import pydantic_ai
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

NOTES = "the tests are green\n"


def blocks(page):
    with open(page, encoding="utf-8") as file:
        agent, handler = re.findall(r"^```python\n(.*?)^```", file.read(), re.M | re.S)
    lines = [line for line in agent.splitlines() if line]
    assert len(lines) <= 10, f"{page} promises ten lines, not {len(lines)}"
    return agent, handler


def play(messages, info):
    """Writes a file, reads it, and repeats its content."""
    returned = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    match returned:
        case []:
            tools = {tool.name for tool in info.function_tools}
            assert {"ls", "read_file", "write_file", "edit_file", "grep", "execute"} <= tools, tools
            call = ToolCallPart("write_file", {"path": "notes.txt", "content": NOTES})
        case [_]:
            call = ToolCallPart("read_file", {"path": "notes.txt"})
        case [_, read]:
            return ModelResponse(parts=[TextPart(f"It says: {read.model_response_str()}")])
    return ModelResponse(parts=[call])


class Played(pydantic_ai.Agent):
    """An agent whose model is scripted, whichever model it names."""

    def __init__(self, model, **options):
        assert isinstance(model, str), model
        super().__init__(FunctionModel(play), **options)


def run(program):
    """Runs a program with a scripted agent, and returns its output."""
    printed = []
    pydantic_ai.Agent = Played
    exec(compile(program, "program", "exec"), {"print": printed.append})
    return printed


def main():
    page, agentbox = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as directory:
        notes = os.path.join(directory, "notes.txt")
        place = f"local:{directory}"
        program, handler = blocks(page)
        for written, meant in [('"agentbox"', repr(agentbox)), ("local:/path/to/project", place)]:
            assert program.count(written) == 1, (written, program)
            program = program.replace(written, meant)
        printed = subprocess.run(
            [agentbox, "mcp-config", "pydantic-ai", "--backend", place],
            check=True, stdout=subprocess.PIPE, text=True,
        ).stdout
        asking = program.replace('"--profile"', '"--permissions", "default", "--profile"')
        asking = asking.replace("include_instructions", "elicitation_handler=ask, include_instructions")
        for source, questions in [(program, 0), (printed, 0), (handler + asking, 1)]:
            *asked, text = run(source)
            assert len(asked) == questions and all("notes.txt" in one for one in asked), asked
            # The model is shown the file's content, not only its length.
            assert NOTES.strip() in text, text
            with open(notes, encoding="utf-8") as file:
                assert file.read() == NOTES
            os.remove(notes)
    print("the agent of the page works, and so does what mcp-config prints")


main()
